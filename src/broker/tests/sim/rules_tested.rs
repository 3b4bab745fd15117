//! The rules themselves are tested: for each, histories that break it and one that keeps it.

use protocol::{ErrorCode, Str, Uuid};

use super::history::{
    Commit, Consumed, Deletion, EARLIEST, Fate, Fetch, FinalLog, History, Key, Known, LATEST,
    Offsets, Outcome, Owned, Produce, SeenBatch, SeenRecord, Sequence, Share, Span, Value,
};
use super::rules::{RULES, check};

const KEY: Key = Key { topic: Uuid([1; 16]), partition: 0 };
const OTHER: Key = Key { topic: Uuid([2; 16]), partition: 0 };

fn span(invoked: u64) -> Span {
    Span { invoked, completed: invoked + 5 }
}

fn produce(at: u64, values: &[Value], outcome: Outcome) -> Produce {
    let values = values.to_vec();
    Produce { key: KEY, span: span(at), acks: -1, values, sequence: None, outcome, error: None }
}

fn acknowledged(at: u64, base_offset: i64, values: &[Value]) -> Produce {
    produce(at, values, Outcome::Acknowledged { base_offset })
}

fn sequence(first: i32) -> Option<Sequence> {
    Some(Sequence { producer_id: 9, epoch: 0, first })
}

fn batch(epoch: i32, base_offset: i64, values: &[Value]) -> SeenBatch {
    let record = |(offset, value): (i64, &Value)| SeenRecord {
        offset,
        timestamp: 100 * *value as i64,
        value: *value,
    };
    let records = (base_offset..).zip(values).map(record).collect();
    SeenBatch { epoch, sequence: None, records }
}

fn fetch(at: u64, offset: i64, high_watermark: i64, batches: Vec<SeenBatch>) -> Fetch {
    Fetch {
        key: KEY,
        span: span(at),
        offset,
        error: ErrorCode::NONE,
        high_watermark,
        last_stable_offset: high_watermark,
        log_start_offset: 0,
        batches,
    }
}

fn offsets(at: u64, wanted: i64, offset: i64) -> Offsets {
    Offsets { key: KEY, span: span(at), wanted, error: ErrorCode::NONE, offset, timestamp: -1 }
}

fn end(high_watermark: i64, batches: Vec<SeenBatch>) -> FinalLog {
    FinalLog { high_watermark, batches, ..FinalLog::default() }
}

/// Two batches were written, acknowledged, read, and are there in the end.
fn sound() -> History {
    let mut log = end(3, vec![batch(0, 0, &[1, 2]), batch(0, 2, &[3])]);
    log.times = vec![(150, 1, 200), (100, 0, 100), (301, -1, -1)];
    History {
        produces: vec![acknowledged(10, 0, &[1, 2]), acknowledged(30, 2, &[3])],
        fetches: vec![
            fetch(20, 0, 2, vec![batch(0, 0, &[1, 2])]),
            fetch(40, 1, 3, vec![batch(0, 0, &[1, 2]), batch(0, 2, &[3])]),
        ],
        offsets: vec![offsets(50, LATEST, 3), offsets(52, EARLIEST, 0)],
        finals: [(KEY, log)].into(),
        ..History::default()
    }
}

/// Exactly the rule with this number objects.
fn breaks(number: &str, history: &History) {
    let findings = check(history);
    let prefix = format!("rule {number} ");
    assert!(!findings.is_empty(), "nothing was found against rule {number}");
    let other = findings.iter().find(|finding| !finding.starts_with(&prefix));
    assert!(findings.iter().any(|f| f.starts_with(&prefix)), "{findings:?}, other {other:?}");
}

fn keeps(history: &History) {
    assert_eq!(check(history), Vec::<String>::new());
}

/// A sound history, changed.
fn but(change: impl FnOnce(&mut History)) -> History {
    let mut history = sound();
    change(&mut history);
    history
}

#[test]
fn a_sound_history_breaks_no_rule() {
    keeps(&sound());
    assert_eq!(RULES.len(), 14);
}

#[test]
fn rule_1_one_value_per_offset() {
    breaks("1", &but(|h| h.fetches[1].batches[0] = batch(0, 0, &[3, 2])));
    breaks("1", &but(|h| h.produces[1].outcome = Outcome::Acknowledged { base_offset: 1 }));
    breaks("1", &but(|h| h.finals.get_mut(&KEY).unwrap().batches[1] = batch(1, 2, &[2])));
    keeps(&but(|h| h.produces[1].outcome = Outcome::Unknown));
}

#[test]
fn rule_1_after_a_loss_that_is_allowed_an_offset_is_used_again_under_another_epoch() {
    let lost = |epoch| {
        but(|h| {
            h.relaxed.insert(KEY.topic);
            h.power_losses = vec![45];
            h.produces.push(acknowledged(60, 2, &[4]));
            let log = h.finals.get_mut(&KEY).unwrap();
            log.batches[1] = batch(epoch, 2, &[4]);
            log.times.clear();
        })
    };
    keeps(&lost(1));
    breaks("1", &lost(0));
}

#[test]
fn rule_2_one_offset_per_value() {
    breaks("2", &but(|h| h.finals.get_mut(&KEY).unwrap().batches.push(batch(0, 3, &[1]))));
    breaks("2", &but(|h| h.fetches.push(fetch(60, 2, 3, vec![batch(0, 2, &[1])]))));
    let twice = but(|h| {
        h.relaxed.insert(KEY.topic);
        h.power_losses = vec![45];
        h.finals.get_mut(&KEY).unwrap().batches.push(batch(0, 3, &[1]));
    });
    breaks("2", &twice);
}

#[test]
fn rule_3_what_was_refused_is_not_read() {
    let refused = Outcome::Refused(ErrorCode::INVALID_RECORD);
    breaks("3", &but(|h| h.produces[1].outcome = refused));
    breaks("3", &but(|h| h.produces[0].key = OTHER));
    breaks("3", &but(|h| drop(h.produces.pop())));
    // Refused, and then sent again with success.
    keeps(&but(|h| h.produces.push(produce(25, &[3], refused))));
}

#[test]
fn rule_5_what_was_acknowledged_is_kept() {
    breaks("5", &but(|h| drop(h.finals.get_mut(&KEY).unwrap().batches.pop())));
    breaks("5", &but(|h| h.produces.push(acknowledged(60, 3, &[4]))));
    keeps(&but(|h| h.produces.push(produce(60, &[4], Outcome::Unknown))));
    let removed = but(|h| {
        h.deletions =
            vec![Deletion { key: KEY, span: span(60), before: 2, low_watermark: Some(2) }];
        let log = h.finals.get_mut(&KEY).unwrap();
        log.log_start_offset = 2;
        log.times.clear();
        log.batches.remove(0);
    });
    keeps(&removed);
}

#[test]
fn rule_12_what_was_acknowledged_is_visible() {
    breaks("12", &but(|h| h.offsets[0].offset = 2));
    breaks("12", &but(|h| h.offsets.push(offsets(36, LATEST, 0))));
    // Asked before the acknowledgement came.
    keeps(&but(|h| h.offsets.push(offsets(33, LATEST, 2))));
    keeps(&but(|h| {
        h.offsets
            .push(Offsets { error: ErrorCode::NOT_LEADER_OR_FOLLOWER, ..offsets(60, LATEST, 0) })
    }));
}

#[test]
fn rule_13_watermarks() {
    breaks("13", &but(|h| h.fetches[0].last_stable_offset = 3));
    breaks("13", &but(|h| h.fetches[1].high_watermark = 2));
    breaks("13", &but(|h| h.fetches.push(fetch(60, 3, 2, vec![]))));
    breaks("13", &but(|h| h.fetches.push(fetch(60, 3, 4, vec![]))));
    // Two that overlap may be told in either order.
    keeps(&but(|h| h.fetches.push(fetch(38, 3, 2, vec![]))));
}

#[test]
fn rule_14_offsets_are_dense() {
    breaks("14", &but(|h| h.fetches[1].batches[1] = batch(0, 3, &[3])));
    breaks("14", &but(|h| drop(h.fetches[1].batches.remove(0))));
    breaks("14", &but(|h| h.finals.get_mut(&KEY).unwrap().high_watermark = 4));
    breaks("14", &but(|h| drop(h.finals.get_mut(&KEY).unwrap().batches.remove(0))));
}

#[test]
fn rule_15_times_are_found() {
    breaks("15", &but(|h| h.finals.get_mut(&KEY).unwrap().times.push((150, 0, 100))));
    breaks("15", &but(|h| h.finals.get_mut(&KEY).unwrap().times.push((301, 2, 300))));
    breaks("15", &but(|h| h.finals.get_mut(&KEY).unwrap().times.push((200, -1, -1))));
}

#[test]
fn rule_17_sequences_are_stored_once() {
    let numbered = |second: i32| {
        but(|h| {
            let log = h.finals.get_mut(&KEY).unwrap();
            log.batches[0].sequence = sequence(0);
            log.batches[1].sequence = sequence(second);
        })
    };
    keeps(&numbered(2));
    breaks("17", &numbered(3));
    breaks("17", &numbered(0));
    let resent = |base_offset: i64| {
        but(|h| {
            h.produces[1].sequence = sequence(2);
            h.produces.push(acknowledged(60, base_offset, &[3]));
            h.produces[2].sequence = sequence(2);
        })
    };
    keeps(&resent(2));
    breaks("17", &resent(3));
}

#[test]
fn rule_24_the_start_moves_only_where_it_may() {
    let deletion = Deletion { key: KEY, span: span(60), before: 2, low_watermark: Some(2) };
    let cut = |start: i64| {
        but(|h| {
            h.deletions = vec![deletion.clone()];
            h.fetches
                .push(Fetch { error: ErrorCode::OFFSET_OUT_OF_RANGE, ..fetch(70, 0, 3, vec![]) });
            let log = h.finals.get_mut(&KEY).unwrap();
            log.log_start_offset = start;
            log.times.clear();
            log.batches.remove(0);
        })
    };
    keeps(&cut(2));
    breaks("24", &cut(3));
    breaks("24", &cut(0));
    breaks("24", &but(|h| h.fetches[1].log_start_offset = 1));
    breaks(
        "24",
        &but(|h| {
            h.deletions = vec![deletion.clone()];
            h.fetches.push(fetch(70, 1, 3, vec![batch(0, 0, &[1, 2])]));
            h.finals.clear();
        }),
    );
}

const GROUP: Str = Str::from_static("g");

/// One member of generation 4 has partition 0, the other partition 1, as the leader gave them.
fn sharing() -> History {
    let parts = [("a", vec![0]), ("b", vec![1])].map(|(name, partitions)| {
        let (group, owner) = (GROUP, Str::from(name));
        let topic = KEY.topic;
        let owned = Owned { group, generation: 4, topic, owner, partitions };
        let share = Share {
            group: GROUP,
            generation: 4,
            owner: owned.owner.clone(),
            partitions: owned.partitions.clone(),
        };
        (owned, share)
    });
    let (owned, shares) = parts.into_iter().unzip();
    History { owned, shares, ..History::default() }
}

fn commit(at: u64, offset: i64, fate: Fate) -> Commit {
    let span = if fate == Fate::Unknown { Span::since(at) } else { span(at) };
    Commit { group: GROUP, key: KEY, span, offset, outdated: false, fate }
}

fn known(at: u64, offset: Option<i64>) -> Known {
    Known { group: GROUP, key: KEY, span: span(at), offset }
}

#[test]
fn rule_21_groups_share() {
    keeps(&sharing());
    let with = |change: fn(&mut History)| {
        let mut history = sharing();
        change(&mut history);
        history
    };
    breaks("21", &with(|h| h.owned[1].partitions = vec![0]));
    breaks("21", &with(|h| h.owned[1].partitions = vec![1, 2]));
    breaks("21", &with(|h| h.shares[0].generation = 3));
    let outdated = |fate| Commit { outdated: true, ..commit(10, 7, fate) };
    breaks("21", &History { commits: vec![outdated(Fate::Done)], ..sharing() });
    keeps(&History { commits: vec![outdated(Fate::Refused)], ..sharing() });
}

#[test]
fn rule_21_consumer_groups_share_and_read_everything() {
    let held = |owner: &'static str, generation, partitions: &[i32]| Owned {
        group: GROUP,
        generation,
        topic: KEY.topic,
        owner: Str::from(owner),
        partitions: partitions.to_vec(),
    };
    let holding = |held: &[Owned]| History { held: held.to_vec(), ..History::default() };
    keeps(&holding(&[held("a", 3, &[0, 1]), held("a", 4, &[0]), held("b", 4, &[1])]));
    breaks("21", &holding(&[held("a", 3, &[0, 1]), held("b", 3, &[1])]));
    let reading = |values: &[u64]| {
        let consumed = Consumed { group: GROUP, key: KEY, values: values.to_vec() };
        History {
            produces: vec![acknowledged(10, 0, &[1, 2, 3])],
            finals: [(KEY, end(3, vec![batch(0, 0, &[1, 2, 3])]))].into(),
            consumed: vec![consumed],
            ..holding(&[held("a", 3, &[0])])
        }
    };
    keeps(&reading(&[1, 2, 3]));
    breaks("21", &reading(&[1, 3]));
}

#[test]
fn rule_22_what_was_committed_is_a_register() {
    let told = |commits: &[Commit], known: &[Known]| History {
        commits: commits.to_vec(),
        known: known.to_vec(),
        ..History::default()
    };
    let (first, second) = (commit(10, 1, Fate::Done), commit(20, 2, Fate::Done));
    let both = [first.clone(), second.clone()];
    keeps(&told(&both, &[known(5, None), known(16, Some(1)), known(30, Some(2))]));
    // Lost, or gone back to what was before.
    breaks("22", &told(&both, &[known(30, None)]));
    breaks("22", &told(&both, &[known(30, Some(1))]));
    breaks("22", &told(&both, &[known(30, Some(2)), known(40, Some(1))]));
    // Read before it was sent, or never sent, or refused.
    breaks("22", &told(&both, &[known(2, Some(1))]));
    breaks("22", &told(&both, &[known(30, Some(3))]));
    breaks("22", &told(&[commit(10, 1, Fate::Refused)], &[known(30, Some(1))]));
    // While they overlap, either order may be.
    let beside = commit(22, 3, Fate::Done);
    let three = [first, second, beside];
    keeps(&told(&three, &[known(30, Some(2)), known(40, Some(2))]));
    breaks("22", &told(&three, &[known(30, Some(2)), known(40, Some(3))]));
    // What was never answered may come late, or not at all, but only once.
    let late = [commit(10, 1, Fate::Unknown), commit(20, 2, Fate::Done)];
    keeps(&told(&late, &[known(30, Some(2))]));
    keeps(&told(&late, &[known(30, Some(2)), known(40, Some(1)), known(50, Some(1))]));
    breaks("22", &told(&late, &[known(30, Some(1)), known(40, Some(2)), known(50, Some(1))]));
}
