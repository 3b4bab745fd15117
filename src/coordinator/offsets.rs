//! Committed offsets: which group has come how far in which partition.
//!
//! Law: the map changes by replay only.

use std::collections::BTreeMap;
use std::ops::Bound;

use protocol::Str;
use protocol::group_records::{
    OffsetCommitKey, OffsetCommitValue, OffsetKey, OffsetValue, OffsetWriter,
};

use crate::world::Record;

/// How far a group has come in one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct CommittedOffset {
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: Str,
    pub commit_timestamp: i64,
    /// −1 to go by the broker's retention.
    pub expire_timestamp: i64,
}

pub(crate) type ByPartition = BTreeMap<i32, CommittedOffset>;
pub(crate) type ByTopic = BTreeMap<Str, ByPartition>;

/// A group, a topic, a partition, and what is committed there.
pub(crate) type Committed<'a> = (&'a Str, &'a Str, i32, &'a CommittedOffset);

/// Where a committed offset is in the order of all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub group: Str,
    pub topic: Str,
    pub partition: i32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Offsets {
    groups: BTreeMap<Str, ByTopic>,
}

impl Offsets {
    pub fn iter(&self) -> impl Iterator<Item = (&Str, &ByTopic)> {
        self.groups.iter()
    }

    /// Groups in the order of their ids, from this one on.
    pub fn from(&self, group: Option<&Str>) -> impl Iterator<Item = (&Str, &ByTopic)> {
        let from = group.map_or(Bound::Unbounded, Bound::Included);
        self.groups.range::<Str, _>((from, Bound::Unbounded))
    }

    /// Everything behind this place, in order.
    pub fn behind(&self, after: Option<&Place>) -> impl Iterator<Item = Committed<'_>> {
        let group = after.and_then(|it| self.groups.get_key_value(&it.group));
        let topic = after.zip(group).and_then(|(it, (_, topics))| topics.get_key_value(&it.topic));
        let rest_of_topic = after.zip(group).zip(topic).map(|((it, (group, _)), (topic, all))| {
            let rest = all.range((Bound::Excluded(it.partition), Bound::Unbounded));
            rest.map(move |(&partition, committed)| (group, topic, partition, committed))
        });
        let rest_of_group = after.zip(group).map(|(it, (group, topics))| {
            let rest = topics.range::<Str, _>((Bound::Excluded(&it.topic), Bound::Unbounded));
            rest.flat_map(move |(topic, all)| of_topic(group, topic, all))
        });
        let from = after.map_or(Bound::Unbounded, |it| Bound::Excluded(&it.group));
        let rest = self.groups.range::<Str, _>((from, Bound::Unbounded));
        let rest = rest.flat_map(|(group, topics)| {
            topics.iter().flat_map(move |(topic, all)| of_topic(group, topic, all))
        });
        let rest_of_topic = rest_of_topic.into_iter().flatten();
        rest_of_topic.chain(rest_of_group.into_iter().flatten()).chain(rest)
    }

    pub fn of_group(&self, group: &str) -> Option<&ByTopic> {
        self.groups.get(group)
    }

    pub fn get(&self, group: &str, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.groups.get(group)?.get(topic)?.get(&partition)
    }

    pub fn replay(&mut self, key: OffsetKey<'_>, value: Option<OffsetValue<'_>>) {
        let OffsetKey { group, topic, partition } = key;
        let Some(value) = value else { return self.remove(group, topic, partition) };
        let own = |text: &str| Str::from(text.to_owned());
        let committed = CommittedOffset {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: own(value.metadata),
            commit_timestamp: value.commit_timestamp,
            expire_timestamp: value.expire_timestamp,
        };
        let topics = match self.groups.get_mut(group) {
            Some(topics) => topics,
            None => self.groups.entry(own(group)).or_default(),
        };
        match topics.get_mut(topic) {
            Some(partitions) => partitions.insert(partition, committed),
            None => topics.entry(own(topic)).or_default().insert(partition, committed),
        };
    }

    fn remove(&mut self, group: &str, topic: &str, partition: i32) {
        let Some(topics) = self.groups.get_mut(group) else { return };
        if let Some(partitions) = topics.get_mut(topic) {
            partitions.remove(&partition);
            if partitions.is_empty() {
                topics.remove(topic);
            }
        }
        if topics.is_empty() {
            self.groups.remove(group);
        }
    }

    /// The first offsets of a group, as the records that delete them.
    pub fn tombstones(&self, group: &Str, at_most: usize) -> Vec<Record> {
        let topics = self.groups.get(group).into_iter().flatten();
        let each = topics.flat_map(|(topic, all)| all.keys().map(move |&index| (topic, index)));
        let mut writer = OffsetWriter::new(TOMBSTONES_EXPECTED);
        let each = each.take(at_most);
        each.map(|(topic, index)| tombstone(&mut writer, group, topic, index)).collect()
    }
}

fn of_topic<'a>(
    group: &'a Str,
    topic: &'a Str,
    all: &'a ByPartition,
) -> impl Iterator<Item = Committed<'a>> {
    all.iter().map(move |(&partition, committed)| (group, topic, partition, committed))
}

pub(crate) fn tombstone(
    writer: &mut OffsetWriter,
    group: &Str,
    topic: &Str,
    partition: i32,
) -> Record {
    let (group, topic) = (group.clone(), topic.clone());
    let key = writer.write_key(&OffsetCommitKey { group, topic, partition });
    Record { key, value: None }
}

pub(crate) fn commit(
    writer: &mut OffsetWriter,
    key: &OffsetCommitKey,
    committed: CommittedOffset,
) -> Record {
    let value = OffsetCommitValue {
        offset: committed.offset,
        leader_epoch: committed.leader_epoch,
        metadata: committed.metadata,
        commit_timestamp: committed.commit_timestamp,
        expire_timestamp: committed.expire_timestamp,
        ..OffsetCommitValue::default()
    };
    let (key, value) = writer.write(key, &value);
    Record { key, value: Some(value) }
}

/// Room for as many is made at first.
const TOMBSTONES_EXPECTED: usize = 16;
