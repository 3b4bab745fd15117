//! The text that a Prometheus server reads.

use metrics::{Counter, Histogram, Kind, Snapshot, Text, render};

#[test]
fn counters_gauges_and_histograms_render_with_their_labels() {
    let requests = Counter::default();
    requests.add(3);
    let latency = Histogram::default();
    latency.record_nanos(80_000);
    latency.record_nanos(3_000_000);
    let mut snapshot = Snapshot::default();
    snapshot.counter("coretide_requests", "Requests.", &[("api", "Fetch")], requests.get());
    snapshot.gauge("coretide_budget_bytes", "Budget.", &[], 1.5);
    snapshot.histogram("coretide_request_seconds", "Latency.", &[("core", "0")], &latency);

    let text = render(&snapshot);

    assert!(text.contains("# TYPE coretide_requests_total counter\n"), "{text}");
    assert!(text.contains("coretide_requests_total{api=\"Fetch\"} 3\n"), "{text}");
    assert!(text.contains("coretide_budget_bytes 1.5\n"), "{text}");
    assert!(text.contains("coretide_request_seconds_bucket{core=\"0\",le=\"0.0001\"} 1\n"));
    assert!(text.contains("coretide_request_seconds_bucket{core=\"0\",le=\"0.005\"} 2\n"));
    assert!(text.contains("coretide_request_seconds_bucket{core=\"0\",le=\"+Inf\"} 2\n"));
    assert!(text.contains("coretide_request_seconds_count{core=\"0\"} 2\n"));
}

/// Where a value stands exactly on a bound, and where values lie beyond the last one.
#[test]
fn buckets_are_cumulative_up_to_their_bounds() {
    let latency = Histogram::default();
    for nanos in [1, 50_000, 60_000, 30_000_000_000, 59_000_000_000] {
        latency.record_nanos(nanos);
    }
    let cumulative = latency.cumulative();
    assert_eq!((cumulative[0], cumulative[1]), (2, 3));
    assert_eq!((cumulative[16], cumulative[17]), (3, 4));
}

#[test]
fn slots_merge_into_one_family_each() {
    let of_slot = |core: &str, value| {
        let mut snapshot = Snapshot::default();
        snapshot.counter("coretide_requests", "Requests.", &[("core", core)], value);
        snapshot
    };
    let mut all = of_slot("0", 1);
    all.merge(of_slot("1", 2));

    let text = render(&all);

    assert_eq!(text.matches("# TYPE").count(), 1);
    assert!(text.contains("{core=\"0\"} 1\n") && text.contains("{core=\"1\"} 2\n"), "{text}");
}

#[test]
fn label_values_that_contain_quotes_and_newlines_stay_one_line() {
    let mut snapshot = Snapshot::default();
    snapshot.counter("coretide_requests", "Requests.", &[("client", "a\"b\\c\nd")], 1);

    let text = render(&snapshot);

    assert!(text.contains(r#"{client="a\"b\\c\nd"} 1"#), "{text}");
    assert_eq!(text.lines().count(), 3);
}

#[test]
fn a_long_text_comes_in_pieces_that_end_with_a_line() {
    let mut text = Text::default();
    let mut family = text.family("coretide_partitions", Kind::Gauge, "Partitions.");
    for place in 0..10_000 {
        family.integer([("partition", &*place.to_string())], place);
    }
    let pieces = text.into_pieces();
    assert!(pieces.len() > 4, "{} pieces", pieces.len());
    assert!(pieces.iter().all(|it| it.len() < 65 << 10 && (it.is_empty() || it.ends_with('\n'))));
    let whole = pieces.concat();
    assert_eq!(whole.lines().count(), 10_002);
    assert!(whole.ends_with("{partition=\"9999\"} 9999\n"), "{}", &whole[whole.len() - 80..]);
}

#[test]
fn a_histogram_answers_quantiles_and_clamps_extremes() {
    let latency = Histogram::default();
    assert_eq!(latency.quantile_nanos(0.99), 0);
    latency.record_nanos(0);
    latency.record_nanos(u64::MAX / 4);
    assert_eq!(latency.count(), 2);
    assert!(latency.quantile_nanos(1.0) >= 59_000_000_000);
    assert!(latency.quantile_nanos(0.1) <= 1_100);
}
