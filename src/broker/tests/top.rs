//! What `coretide top` makes of two looks at a page of metrics, two seconds apart.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::time::Duration;

use broker::top::{Page, View, draw};

fn view() -> View {
    let before = Page::parse(include_str!("top/before.txt")).unwrap();
    let after = Page::parse(include_str!("top/after.txt")).unwrap();
    View::between(&[Some((before, after))], Duration::from_secs(2))
}

fn picture(columns: usize, rows: usize) -> Vec<String> {
    draw(&view(), "coretide top", columns, rows)
}

/// Cores with rates and percentiles, groups with what lags and who idles, topics by traffic.
#[test]
fn everything_fits_into_80_columns() {
    let lines = picture(80, 24);
    let expected = "\
coretide top
offline 1  under-replicated 0  under-min-isr 0  connections 11  memory 100.0M

CORE  BUSY   MEM    REQ/S     IN/S    OUT/S   PROD99  FETCH99 COMMIT99  DELAY99
0      25%   25%     2.0k     1.0M     1.5K    995us        -    2.4ms    100us
1      75%   75%     2.5k     1.0M     1.5K    995us        -    2.4ms     2.2s

GROUP                  STATE               MEM IDLE PARTS      LAG   AGE  GROW/S
billing                Stable                6    2     4    23.5k   61s    +750
  2 of 6 members idle: 6 members share 4 partitions
  behind: orders-0 12.0k (61s), orders-1 11.0k (60s), orders-2 500 (3.5s)
say \"hi\"\\              Empty                 0    0     0        0  0.0s       0

TOPIC                                RECS IN/S       IN/S RECS OUT/S      OUT/S
orders                                    3.0k     293.0K       1.5k     146.5K
a-topic-with-a-name-that-is-longer…         10      1000B          5       500B
idle                                         0         0B          0         0B
";
    assert_eq!(lines.join("\n"), expected, "\n{}", lines.join("\n"));
    assert!(lines.iter().all(|line| line.chars().count() <= 80));
}

/// Where there is less room, nothing is longer or higher than it, and what is left out is counted.
#[test]
fn small_terminals_are_kept_to() {
    for columns in [20, 40, 80, 200] {
        for rows in [1, 5, 10, 12, 15, 24, 100] {
            let lines = picture(columns, rows);
            assert!(lines.len() <= rows, "{columns} x {rows}: {lines:?}");
            assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:?}");
        }
    }
    let text = picture(80, 14).join("\n");
    assert!(text.contains("more)"), "{text}");
}

/// For scripts the same in numbers.
#[test]
fn scripts_get_numbers() {
    let json = view().as_json();
    let group = &json["groups"][0];
    assert_eq!(group["group"], "billing");
    assert_eq!((&group["lag_records"], &group["lag_seconds"]), (&23500.0.into(), &61.25.into()));
    assert_eq!(group["members_idle"], 2.0);
    assert_eq!(group["lagging"][0]["partition"], 0);
    assert_eq!(group["idle_because"], "2 of 6 members idle: 6 members share 4 partitions");
    assert_eq!(json["cores"][1]["busy"], 0.75);
    assert_eq!(json["cores"][0]["requests_per_second"], 2000.0);
    assert_eq!(json["topics"][0]["records_in_per_second"], 3000.0);
    assert_eq!(json["partitions_offline"], 1.0);
}

/// A counter that fell belongs to a process that began anew: no rate is negative.
#[test]
fn a_restart_makes_no_negative_rates() {
    let before = Page::parse(include_str!("top/after.txt")).unwrap();
    let after = Page::parse(include_str!("top/before.txt")).unwrap();
    let view = View::between(&[Some((before, after))], Duration::from_secs(2));
    assert!(view.cores.iter().all(|it| it.requests >= 0.0 && it.bytes_in >= 0.0));
}

#[test]
fn what_is_no_page_is_refused() {
    for line in ["name", "name{", "name{a=\"b} 1", "name{a=\"b\"} one", "name{a=\"b\\"] {
        assert!(Page::parse(line).is_err(), "{line}");
    }
    let why = Page::parse("# HELP a b\na 1\nb\n").unwrap_err().to_string();
    assert!(why.contains("line 3"), "{why}");
}

#[test]
fn several_hosts_are_told_apart_and_one_without_metrics_is_left_out() {
    let page = || Page::parse(include_str!("top/after.txt")).unwrap();
    let view = View::between(
        &[Some((page(), page())), None, Some((page(), page()))],
        Duration::from_secs(1),
    );
    let names: Vec<_> = view.cores.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["0/0", "0/1", "2/0", "2/1"]);
    assert_eq!(view.topics.len(), 3);
}
