//! Committed offsets: which group has come how far in which partition.
//!
//! Law: the map changes by replay only.

use std::collections::BTreeMap;

use protocol::Str;
use protocol::group_records::{Key, OffsetCommitKey, OffsetCommitValue, OffsetWriter};

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

    pub fn of_group(&self, group: &str) -> Option<&ByTopic> {
        self.groups.get(group)
    }

    pub fn get(&self, group: &str, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.groups.get(group)?.get(topic)?.get(&partition)
    }

    pub fn replay(&mut self, key: &OffsetCommitKey, value: Option<OffsetCommitValue>) {
        let OffsetCommitKey { group, topic, partition } = key;
        match value {
            Some(value) => {
                let committed = CommittedOffset {
                    offset: value.offset,
                    leader_epoch: value.leader_epoch,
                    metadata: value.metadata.detach(),
                    commit_timestamp: value.commit_timestamp,
                    expire_timestamp: value.expire_timestamp,
                };
                let topics = match self.groups.get_mut(&**group) {
                    Some(topics) => topics,
                    None => self.groups.entry(group.detach()).or_default(),
                };
                match topics.get_mut(&**topic) {
                    Some(partitions) => partitions.insert(*partition, committed),
                    None => topics.entry(topic.detach()).or_default().insert(*partition, committed),
                };
            }
            None => self.remove(group, topic, *partition),
        }
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
        let topics = self.groups.get(group).into_iter().flatten();
        topics
            .flat_map(|(topic, partitions)| {
                partitions.keys().map(move |&partition| tombstone(group, topic, partition))
            })
            .collect()
    }
}

pub(crate) fn tombstone(group: &Str, topic: &Str, partition: i32) -> Record {
    Record { key: key(group, topic, partition), value: None }
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

fn key(group: &Str, topic: &Str, partition: i32) -> bytes::Bytes {
    let (group, topic) = (group.clone(), topic.clone());
    Key::Offset(OffsetCommitKey { group, topic, partition }).encode()
}
