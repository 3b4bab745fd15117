//! Plans for moving partitions between the slots of hosts.

use broker::rebalance::{Placed, even_out, gather, loads, loads_after};

/// `count` partitions of a topic on one node, numbered from `first`.
fn some(topic: &str, first: i32, count: i32, node: i32, bytes: u64) -> Vec<Placed> {
    let placed = |partition| Placed {
        topic: topic.to_owned(),
        partition,
        node,
        bytes: bytes * (1 + partition as u64),
        movable: true,
    };
    (first..first + count).map(placed).collect()
}

fn counts(nodes: &[i32], placed: &[Placed], emptied: &[i32]) -> Vec<usize> {
    let moves = even_out(nodes, placed, emptied);
    loads_after(nodes, placed, &moves).values().map(|load| load.partitions).collect()
}

#[test]
fn new_slots_get_their_share_of_every_topic() {
    let placed = [some("a", 0, 6, 1000, 10), some("b", 0, 3, 1000, 1)].concat();
    let nodes = [1000, 1001, 1002];
    let moves = even_out(&nodes, &placed, &[]);
    assert_eq!(moves.len(), 6, "each goes at most once: {moves:?}");
    for topic in ["a", "b"] {
        let of_topic: Vec<_> = placed.iter().filter(|it| it.topic == topic).cloned().collect();
        let after = loads_after(&nodes, &of_topic, &moves);
        let each = of_topic.len() / 3;
        assert!(after.values().all(|load| load.partitions == each), "{topic}: {after:?}");
    }
}

#[test]
fn odd_ones_even_each_other_out() {
    // Each topic by itself is even; together they are not.
    let topics = ["a", "b", "c", "d"];
    let placed: Vec<_> = topics.iter().flat_map(|topic| some(topic, 0, 1, 1000, 7)).collect();
    assert_eq!(counts(&[1000, 1001], &placed, &[]), [2, 2]);
    assert_eq!(counts(&[1000, 1001, 1002], &placed, &[]), [2, 1, 1]);
}

#[test]
fn what_is_even_stays() {
    let placed = [some("a", 0, 3, 1000, 1), some("a", 3, 2, 1001, 9)].concat();
    assert_eq!(even_out(&[1000, 1001], &placed, &[]), []);
    assert_eq!(even_out(&[1000], &placed[..3], &[]), []);
}

#[test]
fn of_several_that_could_go_the_best_size_goes() {
    // 10 + 20 + 30 here, nothing there: with 30 gone both have 30.
    let placed = some("a", 0, 3, 1000, 10);
    let moves = even_out(&[1000, 1001], &placed, &[]);
    assert_eq!(moves.iter().map(|it| it.bytes).collect::<Vec<_>>(), [30]);
}

#[test]
fn what_was_not_named_stays() {
    let mut placed = some("a", 0, 6, 1000, 1);
    placed[1..].iter_mut().for_each(|it| it.movable = false);
    let moves = even_out(&[1000, 1001], &placed, &[]);
    assert_eq!(moves.iter().map(|it| it.partition).collect::<Vec<_>>(), [0]);
}

#[test]
fn an_emptied_slot_keeps_nothing_and_gets_nothing() {
    let placed = [some("a", 0, 4, 1001, 1), some("a", 4, 1, 1000, 1)].concat();
    assert_eq!(counts(&[1000, 1001, 1002], &placed, &[1001]), [2, 0, 3]);
    // There is nowhere to go to.
    assert_eq!(even_out(&[1001], &placed[..4], &[1001]), []);
}

#[test]
fn hosts_are_evened_out_each_by_itself() {
    let placed = [some("a", 0, 4, 1000, 1), some("a", 0, 4, 2001, 1)].concat();
    let nodes = [1000, 1001, 2000, 2001];
    assert_eq!(counts(&nodes, &placed, &[]), [2, 2, 2, 2]);
    let moves = even_out(&nodes, &placed, &[]);
    assert!(moves.iter().all(|it| it.from / 1000 == it.to / 1000), "{moves:?}");
    assert_eq!(gather(&placed, 1001).len(), 4, "the other host's copies stay");
}

#[test]
fn a_plan_for_many_partitions_is_made_at_once() {
    let placed: Vec<_> = (0..50).flat_map(|it| some(&format!("t{it}"), 0, 100, 1000, 3)).collect();
    let nodes: Vec<i32> = (1000..1016).collect();
    let after = loads_after(&nodes, &placed, &even_out(&nodes, &placed, &[]));
    assert!(after.values().all(|load| (312..=313).contains(&load.partitions)), "{after:?}");
    assert_eq!(loads(&nodes, &placed)[&1000].partitions, 5000);
}
