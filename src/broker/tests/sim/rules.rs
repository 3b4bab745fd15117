//! The rules of safety, each a function from a history to what contradicts it.
//!
//! Numbers are those of the rule catalogue the project keeps; `RULES` lists what is checked.

use std::collections::{BTreeMap, BTreeSet};

use protocol::ErrorCode;

use super::group_rules::{
    committed_is_a_register, consumers_read_everything, consumers_share, groups_share,
};
use super::history::{EARLIEST, History, Key, LATEST, Outcome, Produce, Sequence, Span};

pub type Rule = fn(&History) -> Vec<String>;

/// Every rule by number and name.
pub const RULES: &[(&str, Rule)] = &[
    ("1 an offset holds one value", one_value_per_offset),
    ("2 a value is at one offset", one_offset_per_value),
    ("3 what was refused is not read", refused_is_not_read),
    ("5 what was acknowledged is not lost", acknowledged_is_kept),
    ("12 what was acknowledged is visible", acknowledged_is_visible),
    ("13 watermarks are in order and do not fall", watermarks_hold),
    ("14 offsets are dense", offsets_are_dense),
    ("15 times are found", times_are_found),
    ("17 sequences are stored once and in order", sequences_are_stored_once),
    ("21 groups share", groups_share),
    ("21 consumer groups share", consumers_share),
    ("21 consumer groups read everything", consumers_read_everything),
    ("22 what was committed is a register", committed_is_a_register),
    ("24 the start moves only where it may", start_moves_where_it_may),
];

/// All findings of all rules.
pub fn check(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, rule) in RULES {
        findings.extend(rule(history).into_iter().map(|finding| format!("rule {name}: {finding}")));
    }
    findings
}

fn acknowledged(history: &History) -> impl Iterator<Item = (&Produce, i64)> {
    history.produces.iter().filter_map(|produce| match produce.outcome {
        Outcome::Acknowledged { base_offset } if base_offset >= 0 => Some((produce, base_offset)),
        _ => None,
    })
}

/// Where a partition can lose records, an offset may hold another value under another epoch.
fn one_value_per_offset(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    for key in history.keys() {
        let by_epoch = history.may_have_lost(key);
        let mut holds: BTreeMap<(i32, i64), u64> = BTreeMap::new();
        let mut check = |place: (i32, i64), value: u64, how: &str| {
            let before = *holds.entry(place).or_insert(value);
            if before != value {
                let offset = place.1;
                findings.push(format!("{key:?} offset {offset}: {before}, and {how} {value}"));
            }
        };
        for (batch, record) in history.seen(key) {
            let epoch = if by_epoch { batch.epoch } else { 0 };
            check((epoch, record.offset), record.value, "read");
        }
        if by_epoch {
            continue;
        }
        for (produce, base_offset) in acknowledged(history).filter(|(p, _)| p.key == key) {
            for (offset, value) in (base_offset..).zip(&produce.values) {
                check((0, offset), *value, "acknowledged");
            }
        }
    }
    findings
}

fn one_offset_per_value(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    for key in history.keys() {
        let mut places: BTreeMap<u64, i64> = BTreeMap::new();
        // A producer that resends what a power loss took writes it again elsewhere.
        if history.may_have_lost(key) {
            let Some(log) = history.finals.get(&key) else { continue };
            for record in log.records() {
                if places.insert(record.value, record.offset).is_some() {
                    findings.push(format!("{key:?}: {} is there twice in the end", record.value));
                }
            }
            continue;
        }
        for (_, record) in history.seen(key) {
            let before = *places.entry(record.value).or_insert(record.offset);
            if before != record.offset {
                let (value, offset) = (record.value, record.offset);
                findings.push(format!("{key:?}: {value} at {before} and at {offset}"));
            }
        }
    }
    findings
}

fn refused_is_not_read(history: &History) -> Vec<String> {
    let mut tries: BTreeMap<u64, Vec<&Produce>> = BTreeMap::new();
    for produce in &history.produces {
        for value in &produce.values {
            tries.entry(*value).or_default().push(produce);
        }
    }
    let mut findings = Vec::new();
    for key in history.keys() {
        for (_, record) in history.seen(key) {
            let Some(tries) = tries.get(&record.value) else {
                findings.push(format!("{key:?}: nobody wrote {}", record.value));
                continue;
            };
            if tries.iter().any(|produce| produce.key != key) {
                findings.push(format!("{key:?}: {} was written to another one", record.value));
            }
            if tries.iter().all(|produce| matches!(produce.outcome, Outcome::Refused(_))) {
                findings.push(format!("{key:?}: {} was refused", record.value));
            }
        }
    }
    findings
}

fn acknowledged_is_kept(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    for (key, log) in &history.finals {
        if history.may_have_lost(*key) {
            continue;
        }
        let kept: BTreeMap<i64, u64> =
            log.records().map(|record| (record.offset, record.value)).collect();
        for (produce, base_offset) in acknowledged(history).filter(|(p, _)| p.key == *key) {
            for (offset, value) in (base_offset..).zip(&produce.values) {
                let removed = offset < log.log_start_offset;
                if !removed && kept.get(&offset) != Some(value) {
                    let now = kept.get(&offset);
                    findings.push(format!(
                        "{key:?} offset {offset}: {value} was acknowledged, now there is {now:?}"
                    ));
                }
            }
        }
    }
    findings
}

fn is_excused(error: ErrorCode) -> bool {
    error != ErrorCode::NONE
}

fn acknowledged_is_visible(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    for offsets in history.offsets.iter().filter(|offsets| offsets.wanted == LATEST) {
        if is_excused(offsets.error) || history.may_have_lost(offsets.key) {
            continue;
        }
        for (produce, base_offset) in acknowledged(history) {
            let end = base_offset + produce.values.len() as i64;
            let binding = produce.acks == -1
                && produce.key == offsets.key
                && produce.span.precedes(&offsets.span);
            if binding && offsets.offset < end {
                let (key, told) = (offsets.key, offsets.offset);
                findings.push(format!("{key:?}: acknowledged up to {end}, later told {told}"));
            }
        }
    }
    findings
}

/// An observation of a number that must not fall: when, how much, and whence.
type Observation = (Span, i64, &'static str);

fn falls(key: Key, what: &str, mut observations: Vec<Observation>) -> Vec<String> {
    let mut findings = Vec::new();
    observations.sort_by_key(|(span, _, _)| span.invoked);
    let mut by_completion = observations.clone();
    by_completion.sort_by_key(|(span, _, _)| span.completed);
    let mut done = by_completion.into_iter().peekable();
    let mut highest: Option<Observation> = None;
    for (span, value, whence) in observations {
        while let Some(earlier) = done.next_if(|(earlier, _, _)| earlier.precedes(&span)) {
            if highest.is_none_or(|highest| earlier.1 > highest.1) {
                highest = Some(earlier);
            }
        }
        if let Some((_, before, by)) = highest.filter(|(_, before, _)| *before > value) {
            findings.push(format!("{key:?}: {what} {before} ({by}), later {value} ({whence})"));
        }
    }
    findings
}

fn watermarks_hold(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    for key in history.keys() {
        let mut high = Vec::new();
        for fetch in history.fetches.iter().filter(|fetch| fetch.key == key) {
            if is_excused(fetch.error) {
                continue;
            }
            let (start, stable) = (fetch.log_start_offset, fetch.last_stable_offset);
            let in_order = start <= stable && stable <= fetch.high_watermark;
            if start >= 0 && stable >= 0 && !in_order {
                let watermark = fetch.high_watermark;
                findings.push(format!("{key:?}: start {start}, stable {stable}, high {watermark}"));
            }
            if let Some((_, last)) = fetch.records().last()
                && last.offset >= fetch.high_watermark
            {
                findings.push(format!("{key:?}: {} is above its high watermark", last.offset));
            }
            high.push((fetch.span, fetch.high_watermark, "Fetch"));
        }
        for offsets in history.offsets.iter().filter(|offsets| offsets.key == key) {
            if offsets.wanted == LATEST && !is_excused(offsets.error) {
                high.push((offsets.span, offsets.offset, "ListOffsets"));
            }
        }
        if let Some(log) = history.finals.get(&key) {
            let end = Span { invoked: u64::MAX - 1, completed: u64::MAX };
            high.push((end, log.high_watermark, "the end"));
        }
        if !history.may_have_lost(key) {
            findings.extend(falls(key, "high watermark", high));
        }
    }
    findings
}

fn offsets_are_dense(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    for fetch in &history.fetches {
        let offsets: Vec<i64> = fetch.records().map(|(_, record)| record.offset).collect();
        if let Some(pair) = offsets.windows(2).find(|pair| pair[1] != pair[0] + 1) {
            findings.push(format!("{:?}: {} is followed by {}", fetch.key, pair[0], pair[1]));
        }
        // A batch is sent whole, so it may begin before what was asked for, but never behind.
        if offsets.first().is_some_and(|first| *first > fetch.offset) {
            findings.push(format!("{:?}: {} asked, {offsets:?} came", fetch.key, fetch.offset));
        }
    }
    for (key, log) in &history.finals {
        let mut next = log.log_start_offset;
        for record in log.records().filter(|record| record.offset >= log.log_start_offset) {
            if record.offset != next {
                findings.push(format!("{key:?}: {} is there where {next} belongs", record.offset));
            }
            next = record.offset + 1;
        }
        if next != log.high_watermark {
            let end = log.high_watermark;
            findings.push(format!("{key:?}: it ends at {next}, its high watermark is {end}"));
        }
    }
    findings
}

fn times_are_found(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    for (key, log) in &history.finals {
        let first_since = |time: i64| {
            log.records()
                .filter(|record| record.offset >= log.log_start_offset)
                .find(|record| record.timestamp >= time)
                .map_or((-1, -1), |record| (record.offset, record.timestamp))
        };
        for (time, offset, timestamp) in &log.times {
            let expected = first_since(*time);
            if (*offset, *timestamp) != expected {
                findings.push(format!("{key:?}: {time} is at {expected:?}, told {offset}"));
            }
        }
    }
    findings
}

fn sequences_are_stored_once(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    for (key, log) in &history.finals {
        let mut next: BTreeMap<(i64, i16), i32> = BTreeMap::new();
        for batch in &log.batches {
            let Some(sequence) = batch.sequence else { continue };
            let writer = (sequence.producer_id, sequence.epoch);
            let count = batch.records.len() as i32;
            if let Some(expected) = next.insert(writer, sequence.first.wrapping_add(count))
                && expected != sequence.first
            {
                let found = sequence.first;
                findings.push(format!("{key:?} {writer:?}: {found} is where {expected} belongs"));
            }
        }
    }
    let mut answers: BTreeMap<(Key, Sequence), BTreeSet<i64>> = BTreeMap::new();
    for (produce, base_offset) in acknowledged(history) {
        if let Some(sequence) = produce.sequence
            && !history.may_have_lost(produce.key)
        {
            answers.entry((produce.key, sequence)).or_default().insert(base_offset);
        }
    }
    for ((key, sequence), offsets) in answers.iter().filter(|(_, offsets)| offsets.len() > 1) {
        findings.push(format!("{key:?} {sequence:?}: acknowledged at {offsets:?}"));
    }
    findings
}

fn start_moves_where_it_may(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    for key in history.keys() {
        let deletions = || history.deletions.iter().filter(|deletion| deletion.key == key);
        let everything = deletions().any(|deletion| deletion.before < 0);
        let limit = if everything {
            i64::MAX
        } else {
            deletions().map(|deletion| deletion.before).max().unwrap_or(0)
        };
        let mut starts: Vec<Observation> = Vec::new();
        for fetch in history.fetches.iter().filter(|fetch| fetch.key == key) {
            if !is_excused(fetch.error) {
                starts.push((fetch.span, fetch.log_start_offset, "Fetch"));
            }
        }
        for offsets in history.offsets.iter().filter(|offsets| offsets.key == key) {
            if offsets.wanted == EARLIEST && !is_excused(offsets.error) {
                starts.push((offsets.span, offsets.offset, "ListOffsets"));
            }
        }
        for deletion in deletions() {
            if let Some(low) = deletion.low_watermark {
                starts.push((deletion.span, low, "DeleteRecords"));
            }
        }
        if let Some(log) = history.finals.get(&key) {
            let end = Span { invoked: u64::MAX - 1, completed: u64::MAX };
            starts.push((end, log.log_start_offset, "the end"));
        }
        for (_, start, whence) in starts.iter().filter(|(_, start, _)| *start > limit) {
            findings.push(format!("{key:?}: start {start} ({whence}), allowed {limit}"));
        }
        if !history.may_have_lost(key) {
            findings.extend(falls(key, "start", starts));
        }
        for fetch in history.fetches.iter().filter(|fetch| fetch.key == key) {
            let below = deletions().any(|deletion| {
                deletion.span.precedes(&fetch.span)
                    && deletion.low_watermark.is_some_and(|low| fetch.offset < low)
            });
            if below && !is_excused(fetch.error) && !history.may_have_lost(key) {
                findings.push(format!("{key:?}: {} was deleted and served", fetch.offset));
            }
        }
    }
    findings
}
