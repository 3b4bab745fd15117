//! What one slot has to do when a new image replaces an old one.
//!
//! Cost follows the number of changes, not of topics: persistent maps skip what they share.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::ordmap::DiffItem;
use protocol::{HostId, SlotIndex, Str, Uuid};

use super::{Image, Topic};
use crate::record::{ConfigResource, MetadataRecord, Partition, Replica};

/// In the order in which a slot should act: close, open, then the rest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SlotDelta {
    pub closed: Vec<ClosedPartition>,
    pub opened: Vec<OpenedPartition>,
    /// Still on this slot, with another leader, epoch or set of replicas.
    pub changed: Vec<OpenedPartition>,
    /// Names of topics whose overrides changed, whether or not they have a partition here.
    pub topic_configs: Vec<Str>,
    /// An override of this node or of all nodes changed: every effective setting may have.
    pub broker_configs: bool,
    /// A host came, went or changed its address.
    pub hosts: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OpenedPartition {
    pub topic: Str,
    pub id: Uuid,
    pub index: i32,
    pub partition: Arc<Partition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedPartition {
    pub topic: Str,
    pub id: Uuid,
    pub index: i32,
    pub why: Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Its topic is gone: the files go too.
    Deleted,
    /// Another slot of this host has it now: the files stay.
    HandedOver(SlotIndex),
    /// No replica on this host any more: the files go.
    Removed,
}

/// A partition that another slot of its host is about to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandOver {
    pub topic: Uuid,
    pub index: i32,
    pub from: SlotIndex,
    pub to: SlotIndex,
}

impl SlotDelta {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Image {
    /// The way from `older` to this image, as one slot sees it. From an empty image it is
    /// everything that the slot has.
    pub fn delta_since(&self, older: &Image, host: HostId, slot: SlotIndex) -> SlotDelta {
        let mut delta = SlotDelta::default();
        let here = Replica { host, slot };
        for change in older.topics.diff(&self.topics) {
            let (before, after) = match change {
                DiffItem::Add(_, topic) => (None, Some(topic)),
                DiffItem::Remove(_, topic) => (Some(topic), None),
                DiffItem::Update { old, new } => (Some(old.1), Some(new.1)),
            };
            compare_topic(before, after, here, &mut delta);
        }
        self.compare_configs(older, here, &mut delta);
        delta.hosts = self.hosts != older.hosts;
        delta
    }

    /// Which partitions of a host would change their slot if these records were committed.
    pub fn hand_overs(&self, records: &[MetadataRecord], host: HostId) -> Vec<HandOver> {
        let changes = records.iter().filter_map(|record| match record {
            MetadataRecord::PartitionChanged(changed) if changed.replicas.is_some() => {
                Some((changed.topic, changed.index))
            }
            _ => None,
        });
        // One batch may change a partition more than once.
        let changed: BTreeSet<(Uuid, i32)> = changes.collect();
        if changed.is_empty() {
            return Vec::new();
        }
        // What does not fit the image ends the host when it is committed.
        let Ok(after) = self.apply(records, self.offset) else { return Vec::new() };
        let handed_over = changed.into_iter().filter_map(|(topic, index)| {
            let from = self.partition(topic, index)?.replica_on(host)?.slot;
            let to = after.partition(topic, index)?.replica_on(host)?.slot;
            (from != to).then_some(HandOver { topic, index, from, to })
        });
        handed_over.collect()
    }

    fn compare_configs(&self, older: &Image, here: Replica, delta: &mut SlotDelta) {
        let mut topics = BTreeSet::new();
        for change in older.configs.diff(&self.configs) {
            let resource = match change {
                DiffItem::Add(resource, _) | DiffItem::Remove(resource, _) => resource,
                DiffItem::Update { new, .. } => new.0,
            };
            match resource {
                ConfigResource::Topic(name) => {
                    topics.insert(name.clone());
                }
                ConfigResource::AllNodes => delta.broker_configs = true,
                ConfigResource::Node { host, slot } => {
                    delta.broker_configs |= *host == here.host && *slot == here.slot;
                }
                ConfigResource::ClientMetrics(_) | ConfigResource::Group(_) => {}
            }
        }
        delta.topic_configs = topics.into_iter().collect();
    }
}

fn compare_topic(
    before: Option<&Arc<Topic>>,
    after: Option<&Arc<Topic>>,
    here: Replica,
    delta: &mut SlotDelta,
) {
    let Some(topic) = after.or(before) else { return };
    let (name, id) = (&topic.name, topic.id);
    for index in 0..i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX) {
        let was = before.and_then(|it| it.partition(index));
        let is = after.and_then(|it| it.partition(index));
        if was == is {
            continue;
        }
        let was_here = was.is_some_and(|it| it.replicas.contains(&here));
        match is.filter(|it| it.replicas.contains(&here)) {
            Some(partition) => {
                let (topic, partition) = (name.clone(), partition.clone());
                let opened = OpenedPartition { topic, id, index, partition };
                if was_here { &mut delta.changed } else { &mut delta.opened }.push(opened);
            }
            None if was_here => {
                let why = reason_for_closing(is, here.host);
                delta.closed.push(ClosedPartition { topic: name.clone(), id, index, why });
            }
            None => {}
        }
    }
}

fn reason_for_closing(is: Option<&Arc<Partition>>, host: HostId) -> Closed {
    match is {
        None => Closed::Deleted,
        Some(partition) => match partition.replica_on(host) {
            Some(replica) => Closed::HandedOver(replica.slot),
            None => Closed::Removed,
        },
    }
}
