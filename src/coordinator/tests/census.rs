//! What monitoring is told of groups.

use crate::bench::{Bench, joining, syncing, text};
use crate::leaving::{commit_many, delete_topics};

/// A member that was given no partition is counted as idle, and only between rebalances.
#[test]
fn members_without_partitions_are_idle() {
    let mut bench = Bench::new();
    let first = bench.stable_group("g");
    let (second, waits) = bench.new_member("g");
    let rebalancing = bench.coordinator.census(None, 9).remove(0);
    assert_eq!(
        (rebalancing.state, rebalancing.members, rebalancing.idle),
        ("PreparingRebalance", 2, 0)
    );
    let again = bench.join(5, &joining("g", &first));
    assert!(bench.joined(again).is_some() && bench.joined(waits).is_some());
    // Version 0; one topic "t" with two partitions, against no topic at all.
    let owned = "\0\0\0\0\0\x01\0\x01t\0\0\0\x02\0\0\0\0\0\0\0\x01";
    let nothing = "\0\0\0\0\0\0";
    let shares = [(first.as_str(), owned), (second.as_str(), nothing)];
    bench.sync(&syncing("g", &first, 2, &shares));
    bench.sync(&syncing("g", &second, 2, &[]));
    let stable = bench.coordinator.census(None, 9).remove(0);
    assert_eq!((stable.state, stable.members, stable.idle), ("Stable", 2, 1));
}

/// Pages follow one another and miss no group; offsets are told with the group.
#[test]
fn groups_are_counted_in_pages() {
    let mut bench = Bench::new();
    for name in ["a", "b", "c"] {
        assert!(!bench.commit(name, "", -1, ("t", 0, 5), "").is_error());
    }
    let mut seen = Vec::new();
    let mut last = None;
    loop {
        let page = bench.coordinator.census(last.as_ref(), 2);
        let Some(end) = page.last() else { break };
        last = Some(end.id.clone());
        assert!(page.len() <= 2);
        seen.extend(page.into_iter().map(|it| (it.id, it.state, it.committed)));
    }
    let expected = ["a", "b", "c"].map(|id| (text(id), "Empty", vec![(text("t"), 0, 5)]));
    assert_eq!(seen, expected);
}

/// Nobody lags behind in a topic that is no more, nor does a group that is being deleted.
#[test]
fn what_goes_is_not_counted() {
    let mut bench = Bench::new();
    commit_many(&mut bench, "deleted", "kept", 5_000);
    commit_many(&mut bench, "stays", "gone", 5_000);
    bench.commit("stays", "", -1, ("kept", 0, 5), "");
    let ticket = bench.delete("deleted");
    delete_topics(&mut bench, &["gone"]);
    let mut pieces = 0;
    while bench.coordinator.poll_wake().is_some() {
        for group in bench.coordinator.census(None, 9) {
            let wanted = match &*group.id {
                "deleted" => Vec::new(),
                _ => vec![(text("kept"), 0, 5)],
            };
            assert!(group.committed == wanted, "{} of {}", group.committed.len(), group.id);
        }
        bench.go_on();
        pieces += 1;
    }
    assert!(pieces > 3 && bench.deleted(ticket).is_some(), "{pieces} pieces");
}
