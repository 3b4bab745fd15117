//! The rules of groups: who owns what, and what is known of committed offsets.

use std::collections::{BTreeMap, BTreeSet};

use protocol::Str;

use super::history::{Fate, History, Key, Outcome, Produce, Value};

/// In a generation a partition has one owner, everyone gets what the leader gave, and nothing is
/// committed in the name of a generation or member that is gone.
pub fn groups_share(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    let mut owners: BTreeMap<(&Str, i32, Key), &Str> = BTreeMap::new();
    for owned in &history.owned {
        let (group, generation, owner) = (&owned.group, owned.generation, &owned.owner);
        for &partition in &owned.partitions {
            let key = Key { topic: owned.topic, partition };
            let other = *owners.entry((group, generation, key)).or_insert(owner);
            if other != owner {
                findings.push(format!(
                    "{group} generation {generation}: {other} and {owner} both own {key:?}"
                ));
            }
        }
        let given = history.shares.iter().any(|share| {
            share.group == *group
                && share.generation == generation
                && share.owner == *owner
                && share.partitions == owned.partitions
        });
        if !given && !owned.partitions.is_empty() {
            let got = &owned.partitions;
            findings.push(format!(
                "{group} generation {generation}: {owner} got {got:?}, which nobody gave it"
            ));
        }
    }
    for commit in history.commits.iter().filter(|commit| commit.outdated) {
        if commit.fate == Fate::Done {
            let (group, offset) = (&commit.group, commit.offset);
            findings.push(format!("{group}: an outdated commit of {offset} was taken"));
        }
    }
    findings
}

/// In an epoch of a consumer group a partition has one owner.
pub fn consumers_share(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    let mut owners: BTreeMap<(&Str, i32, Key), &Str> = BTreeMap::new();
    for held in &history.held {
        let (group, epoch, owner) = (&held.group, held.generation, &held.owner);
        for &partition in &held.partitions {
            let key = Key { topic: held.topic, partition };
            let other = *owners.entry((group, epoch, key)).or_insert(owner);
            if other != owner {
                findings.push(format!("{group} epoch {epoch}: {other} and {owner} own {key:?}"));
            }
        }
    }
    findings
}

/// A consumer group reads every record that was acknowledged and is there in the end. What was
/// never acknowledged may have come when all readers had gone.
pub fn consumers_read_everything(history: &History) -> Vec<String> {
    let mut read: BTreeMap<(&Str, Key), BTreeSet<Value>> = BTreeMap::new();
    for consumed in &history.consumed {
        let values = read.entry((&consumed.group, consumed.key)).or_default();
        values.extend(consumed.values.iter().copied());
    }
    let is_acknowledged =
        |produce: &&Produce| matches!(produce.outcome, Outcome::Acknowledged { .. });
    let acknowledged = history.produces.iter().filter(is_acknowledged);
    let acknowledged: BTreeSet<&Value> = acknowledged.flat_map(|it| &it.values).collect();
    let groups: BTreeSet<_> = history.held.iter().map(|it| (&it.group, it.topic)).collect();
    let mut findings = Vec::new();
    for (group, topic) in groups {
        let finals = history.finals.iter().filter(|(key, _)| key.topic == topic);
        for (&key, log) in finals.filter(|(key, _)| !history.may_have_lost(**key)) {
            let values = read.get(&(group, key));
            let is_read = |value| values.is_some_and(|values| values.contains(value));
            let due = log.records().filter(|record| acknowledged.contains(&record.value));
            for record in due.filter(|record| !is_read(&record.value)) {
                let (offset, value) = (record.offset, record.value);
                findings.push(format!("{group} never read {value} at {offset} of {key:?}"));
            }
        }
    }
    findings
}

/// When something was surely in force: from the first moment at which it was known to be until
/// the last. Where that is the other way round, it may have been in force for a moment in between.
struct Zone {
    value: Option<i64>,
    known_from: u64,
    known_to: u64,
}

/// Each committed offset is a register: its reads and writes fit into one order in time. As values
/// are unique, that is so exactly if no two values were surely in force at the same time, and none
/// came and went while another surely was (Gibbons and Korach, 1997).
pub fn committed_is_a_register(history: &History) -> Vec<String> {
    let mut findings = Vec::new();
    let mut registers: BTreeMap<(&Str, Key), BTreeMap<Option<i64>, Zone>> = BTreeMap::new();
    let never = || Zone { value: None, known_from: 0, known_to: 0 };
    for commit in history.commits.iter().filter(|commit| commit.fate != Fate::Refused) {
        let zones = registers.entry((&commit.group, commit.key)).or_default();
        zones.entry(None).or_insert_with(never);
        let (known_from, known_to) = (commit.span.completed, commit.span.invoked);
        let value = Some(commit.offset);
        zones.insert(value, Zone { value, known_from, known_to });
    }
    for known in &history.known {
        let (group, key, value) = (&known.group, known.key, known.offset);
        let zones = registers.entry((group, key)).or_default();
        zones.entry(None).or_insert_with(never);
        match zones.get_mut(&value) {
            None => findings.push(format!("{group} {key:?}: nobody committed {value:?}")),
            Some(zone) => {
                if known.span.completed < zone.known_to && value.is_some() {
                    findings
                        .push(format!("{group} {key:?}: {value:?} was read before it was sent"));
                }
                zone.known_from = zone.known_from.min(known.span.completed);
                zone.known_to = zone.known_to.max(known.span.invoked);
            }
        }
    }
    for ((group, key), zones) in &registers {
        // What was never acknowledged nor read need not have happened.
        let mut all: Vec<&Zone> = zones.values().filter(|it| it.known_from != u64::MAX).collect();
        all.sort_by_key(|zone| zone.known_from.min(zone.known_to));
        let mut longest: Option<&Zone> = None;
        for zone in all {
            let (begin, end) =
                (zone.known_from.min(zone.known_to), zone.known_from.max(zone.known_to));
            let surely = zone.known_from < zone.known_to;
            if let Some(before) = longest
                && (surely || begin > before.known_from)
                && (if surely { begin } else { end }) < before.known_to
            {
                let (value, other) = (zone.value, before.value);
                findings.push(format!("{group} {key:?}: {value:?} while {other:?} was in force"));
            }
            if surely && longest.is_none_or(|before| end > before.known_to) {
                longest = Some(zone);
            }
        }
    }
    findings
}
