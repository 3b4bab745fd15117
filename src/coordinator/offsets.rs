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

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Offsets {
    groups: BTreeMap<Str, ByTopic>,
}

impl Offsets {
    pub fn iter(&self) -> impl Iterator<Item = (&Str, &ByTopic)> {
        self.groups.iter()
    }

    /// Groups in the order of their ids, from the first behind `after` on.
    pub fn behind(&self, after: Option<&Str>) -> impl Iterator<Item = (&Str, &ByTopic)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.groups.range::<Str, _>((from, Bound::Unbounded))
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

    /// Every offset of a group, as the records that delete them.
    pub fn tombstones(&self, group: &Str) -> Vec<Record> {
        let topics = self.groups.get(group);
        let count = topics.into_iter().flatten().map(|(_, partitions)| partitions.len()).sum();
        let (mut writer, mut records) = (OffsetWriter::new(count), Vec::with_capacity(count));
        for (topic, partitions) in topics.into_iter().flatten() {
            let each = partitions.keys();
            records.extend(each.map(|&index| tombstone(&mut writer, group, topic, index)));
        }
        records
    }
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
