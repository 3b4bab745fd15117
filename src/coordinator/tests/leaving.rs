//! What goes in pieces: groups with very many offsets, and topics that very many committed to.

use std::collections::BTreeSet;

use protocol::messages::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use protocol::messages::offset_commit::OffsetCommitRequestPartition;
use protocol::{ErrorCode, Str};

use crate::bench::{Bench, committing, joining, text};

const WAIT: ErrorCode = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;

/// As the handler does: a thousand at a time.
pub fn commit_many(bench: &mut Bench, group: &str, topic: &str, count: i32) {
    for first in (0..count).step_by(1_000) {
        let mut request = committing(group, "", -1, (topic, 0, 1), "");
        let each = (first..count.min(first + 1_000)).map(|index| OffsetCommitRequestPartition {
            partition_index: index,
            committed_offset: i64::from(index),
            ..OffsetCommitRequestPartition::default()
        });
        request.topics[0].partitions = each.collect();
        let outcomes = bench.act(|it, world| it.commit_offsets(world, &request, 8)).unwrap();
        assert!(outcomes.iter().all(|it| *it == ErrorCode::NONE));
    }
}

pub fn delete_topics(bench: &mut Bench, names: &[&str]) {
    let names: BTreeSet<Str> = names.iter().map(|name| text(name)).collect();
    bench.act(|it, _| {
        it.on_topics_deleted(names);
        (Default::default(), ())
    });
}

fn beat_consumer(bench: &mut Bench, group: &str) -> ErrorCode {
    let request = ConsumerGroupHeartbeatRequest {
        group_id: text(group),
        member_id: text("a-member-of-the-new-kind"),
        rebalance_timeout_ms: 1_000,
        subscribed_topic_names: Some(vec![text("t")]),
        topic_partitions: Some(Vec::new()),
        ..ConsumerGroupHeartbeatRequest::default()
    };
    let answer =
        bench.act(|it, world| it.consumer_heartbeat(world, &Default::default(), &request, 1));
    answer.error_code
}

/// `Bench::act` sees to it that no piece is long.
#[test]
fn a_group_with_many_offsets_goes_in_pieces() {
    let mut bench = Bench::new();
    commit_many(&mut bench, "g", "t", 9_000);
    commit_many(&mut bench, "h", "t", 10);
    let ticket = bench.delete("g");
    let mut pieces = 1;
    while bench.coordinator.poll_wake().is_some() {
        bench.check_replay();
        assert_eq!(bench.deleted(ticket), None);
        // Nobody comes back to it while it goes, of either kind.
        let join = bench.join(5, &joining("g", ""));
        assert_eq!(bench.joined(join).unwrap().error_code, WAIT);
        assert_eq!(beat_consumer(&mut bench, "g"), WAIT);
        assert_eq!(bench.commit("g", "", -1, ("t", 0, 77), ""), WAIT);
        let again = bench.delete("g");
        assert_eq!(bench.deleted(again), Some(WAIT));
        // Nor does anyone see what is left of it.
        assert_eq!(bench.coordinator.check_fetch("g", None, -1), Err(WAIT));
        assert_eq!(bench.coordinator.check_fetch("h", None, -1), Ok(()));
        assert_eq!(bench.commit("h", "", -1, ("t", pieces, 77), ""), ErrorCode::NONE);
        bench.go_on();
        pieces += 1;
    }
    assert_eq!((bench.deleted(ticket), pieces), (Some(ErrorCode::NONE), 5));
    assert_eq!(bench.coordinator.check_fetch("g", None, -1), Ok(()));
    bench.check_replay();
    assert_eq!(bench.coordinator.offsets_count(), 10);
    assert!(bench.coordinator.list(&[], &[]).iter().all(|it| it.group_id == "h"));
    assert_eq!(bench.commit("g", "", -1, ("t", 0, 77), ""), ErrorCode::NONE);
    assert_eq!(bench.committed("g", "t", 0), Some(77));
}

/// Whoever reads a group in pieces learns that it was deleted between two of them, however quickly
/// that went and whatever came under its name.
#[test]
fn a_deletion_is_noticed_by_who_was_reading() {
    let mut bench = Bench::new();
    let check = |bench: &Bench, group, begun| bench.coordinator.check_read(group, begun);
    for (group, count) in [("small", 1), ("large", 5_000), ("other", 1)] {
        commit_many(&mut bench, group, "t", count);
        let begun = bench.coordinator.deletions_begun();
        assert_eq!(check(&bench, group, begun), Ok(()));
        let ticket = bench.delete(group);
        assert_eq!(check(&bench, group, begun), Err(WAIT));
        assert_eq!(check(&bench, "another", begun), Ok(()));
        bench.pass(0);
        assert_eq!(bench.deleted(ticket), Some(ErrorCode::NONE));
        commit_many(&mut bench, group, "t", 1);
        assert_eq!(check(&bench, group, begun), Err(WAIT));
        assert_eq!(check(&bench, group, bench.coordinator.deletions_begun()), Ok(()));
    }
    // After very many, nobody knows any more which they were.
    let begun = bench.coordinator.deletions_begun();
    bench.delete("small");
    for number in 0..1_000 {
        let group = format!("group-{number}");
        commit_many(&mut bench, &group, "t", 1);
        bench.delete(&group);
    }
    assert_eq!(check(&bench, "small", begun), Err(WAIT));
    // One that is refused is none.
    let begun = bench.coordinator.deletions_begun();
    bench.delete("never-was");
    assert_eq!(bench.coordinator.deletions_begun(), begun);
}

/// What was not acknowledged is asked for again.
#[test]
fn a_restart_in_the_middle_leaves_a_group_that_can_be_deleted() {
    let mut bench = Bench::new();
    commit_many(&mut bench, "g", "t", 5_000);
    bench.delete("g");
    bench.restart();
    assert_eq!(bench.coordinator.offsets_count(), 3_000);
    assert_eq!(bench.commit("g", "", -1, ("t", 0, 77), ""), ErrorCode::NONE);
    let ticket = bench.delete("g");
    bench.pass(0);
    assert_eq!(bench.deleted(ticket), Some(ErrorCode::NONE));
    assert!(bench.replayed().list(&[], &[]).is_empty());
}

#[test]
fn what_was_committed_to_deleted_topics_goes_in_pieces() {
    let mut bench = Bench::new();
    for group in 0..3_000 {
        bench.commit(&format!("small-{group}"), "", -1, ("kept", 0, 5), "");
    }
    commit_many(&mut bench, "g", "gone", 5_000);
    commit_many(&mut bench, "g", "kept", 1_000);
    commit_many(&mut bench, "z", "too", 1_000);
    for topic in 0..2_500 {
        bench.commit("of-topics", "", -1, (&format!("topic-{topic:04}"), 0, 5), "");
    }
    delete_topics(&mut bench, &["gone", "too", "never", "topic-2400"]);
    let mut pieces = 0;
    while bench.coordinator.poll_wake().is_some() {
        // Who made a topic of this name anew never meets what was before.
        assert_eq!(bench.committed("g", "gone", 4_999), None);
        let topics: Vec<&Str> = bench.coordinator.committed_topics("g").collect();
        assert_eq!(topics, ["kept"]);
        assert!(bench.coordinator.committed_in("g", "gone").is_none());
        assert_eq!(bench.commit("a", "", -1, ("gone", 0, 1), ""), WAIT);
        assert_eq!(bench.commit("a", "", -1, ("kept", 0, 1), ""), ErrorCode::NONE);
        bench.go_on();
        bench.check_replay();
        pieces += 1;
    }
    assert!((5..10).contains(&pieces), "{pieces} pieces");
    assert_eq!(bench.coordinator.offsets_count(), 3_000 + 1_000 + 1 + 2_499);
    assert_eq!(bench.commit("a", "", -1, ("gone", 0, 1), ""), ErrorCode::NONE);
    assert_eq!(bench.committed("a", "gone", 0), Some(1));
}

/// More topics than one piece has room for, most of which nobody ever committed to.
#[test]
fn very_many_topics_go_at_once() {
    let mut bench = Bench::new();
    let names: Vec<String> = (0..10_000).map(|number| format!("t{number:05}")).collect();
    for name in names.iter().step_by(50) {
        bench.commit("g", "", -1, (name, 0, 1), "");
    }
    commit_many(&mut bench, "h", "t00000", 2_001);
    let mut names: Vec<&str> = names.iter().map(|name| &**name).collect();
    names.retain(|name| *name != "t09950");
    delete_topics(&mut bench, &names);
    bench.pass(0);
    bench.check_replay();
    assert_eq!(bench.coordinator.offsets_count(), 1);
    assert_eq!(bench.committed("g", "t09950", 0), Some(1));
}

/// Deletions that come one by one while another is under way go together.
#[test]
fn topics_that_are_deleted_one_by_one_go_together() {
    let mut bench = Bench::new();
    commit_many(&mut bench, "g", "first", 2_500);
    let names: Vec<String> = (0..500).map(|number| format!("t{number:03}")).collect();
    for name in &names {
        bench.commit("g", "", -1, (name, 0, 1), "");
    }
    delete_topics(&mut bench, &["first"]);
    bench.go_on();
    for name in &names {
        delete_topics(&mut bench, &[name]);
        assert_eq!(bench.committed("g", name, 0), None);
        assert_eq!(bench.commit("g", "", -1, (name, 0, 2), ""), WAIT);
    }
    let mut pieces = 0;
    while bench.coordinator.poll_wake().is_some() {
        bench.go_on();
        bench.check_replay();
        pieces += 1;
    }
    assert_eq!((pieces, bench.coordinator.offsets_count()), (2, 0));
}

#[test]
fn the_offsets_of_one_large_group_expire_in_pieces() {
    let mut bench = Bench::new();
    commit_many(&mut bench, "f", "t", 10);
    commit_many(&mut bench, "g", "t", 4_500);
    commit_many(&mut bench, "g", "u", 4_500);
    bench.pass(bench.settings.offsets_retention_ms - 1);
    commit_many(&mut bench, "g", "u", 1_000);
    assert_eq!(bench.expire(), 5 + 1 + 1);
    assert_eq!(bench.coordinator.offsets_count(), 9_010);
    bench.pass(1);
    bench.expire();
    bench.check_replay();
    assert_eq!(bench.coordinator.offsets_count(), 1_000);
    assert_eq!(bench.coordinator.list(&[], &[]).len(), 1);
}

/// Deletions of all kinds and whatever comes in between, with restarts.
#[test]
fn live_and_replayed_state_are_one_between_pieces() {
    let mut refused = 0;
    for seed in 1..=6_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % limit
        };
        let mut bench = Bench::new();
        for group in ["a", "b", "c"] {
            commit_many(&mut bench, group, "t", 1_000);
            commit_many(&mut bench, group, "u", 3_000);
        }
        for _ in 0..60 {
            let group = ["a", "b", "c", "d"][below(4) as usize];
            let topic = ["t", "u"][below(2) as usize];
            match below(12) {
                0 => drop(bench.delete(group)),
                1 => delete_topics(&mut bench, &[topic]),
                2 => bench.restart(),
                3 => drop(bench.expire()),
                4 => bench.now_ms += 20_000,
                5..=8 => bench.go_on(),
                _ => {
                    let at = (topic, below(3_500) as i32, 77);
                    let taken = bench.commit(group, "", -1, at, "");
                    let shown = bench.committed(group, topic, at.1);
                    match taken {
                        ErrorCode::NONE => assert_eq!(shown, Some(77), "seed {seed}"),
                        _ => refused += 1,
                    }
                }
            }
            bench.check_replay();
        }
        bench.pass(0);
        bench.check_replay();
    }
    assert!(refused > 5, "{refused}");
}
