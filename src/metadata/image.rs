//! The metadata of a cluster at one point of its log: immutable, cheap to clone, shared by slots.
//!
//! Invariants:
//! - It changes only by replaying committed records (`apply`), live and after a restart alike.
//! - Maps are persistent: a new image shares with the old one what a record did not touch.
//! - Partition indexes of a topic are 0, 1, 2, … without gaps; replicas of a partition are on
//!   different hosts; the leader is one of the replicas.
//! - What is derived (names, partitions of a slot, name collisions) is kept in step by `apply` and
//!   never written to a snapshot.
//!
//! Deliberately absent: anything a single host knows by itself (its files, its static settings).

mod apply;
mod delta;
mod snapshot;

use std::ops::Bound;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet, Vector};
use protocol::{HostId, NodeId, SlotIndex, Str, Uuid};

use crate::record::{ConfigResource, HostRegistered, Partition, Replica};

pub use apply::ApplyError;
pub use delta::{Closed, ClosedPartition, HandOver, OpenedPartition, SlotDelta};
pub use snapshot::{SNAPSHOT_FORMAT, SnapshotError};

/// Nodes of one host are numbered within its thousand.
pub const SLOTS_MAX: u16 = 1000;
/// So that every node id is an `i32`.
pub const HOST_ID_MAX: i32 = i32::MAX / 1000 - 1;

/// Overrides of one resource, by key.
pub type Overrides = OrdMap<Str, Str>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    offset: u64,
    cluster_id: Option<Str>,
    format: u16,
    hosts: OrdMap<HostId, Arc<HostRegistered>>,
    topics: OrdMap<Uuid, Arc<Topic>>,
    configs: OrdMap<ConfigResource, Overrides>,
    features: OrdMap<Str, i16>,
    next_producer_id: i64,
    topic_ids: OrdMap<Str, Uuid>,
    /// Topic names with every '.' as '_', to the names that share that form.
    folded_names: OrdMap<Str, OrdSet<Str>>,
    served: OrdMap<Replica, OrdSet<(Uuid, i32)>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    pub name: Str,
    pub id: Uuid,
    /// Partition p is at place p.
    pub partitions: Vector<Arc<Partition>>,
}

impl Topic {
    pub fn partition(&self, index: i32) -> Option<&Arc<Partition>> {
        self.partitions.get(usize::try_from(index).ok()?)
    }

    /// With their indexes, in order.
    pub fn indexed(&self) -> impl Iterator<Item = (i32, &Arc<Partition>)> {
        (0..).zip(self.partitions.iter())
    }
}

impl Partition {
    /// The replica that clients talk to.
    pub fn leading_replica(&self) -> Option<Replica> {
        self.leader.and_then(|leader| self.replica_on(leader))
    }

    pub fn leader_node(&self) -> Option<NodeId> {
        self.leading_replica().map(Replica::node)
    }

    pub fn replica_on(&self, host: HostId) -> Option<Replica> {
        self.replicas.iter().copied().find(|replica| replica.host == host)
    }

    pub fn in_sync_nodes(&self) -> impl Iterator<Item = NodeId> {
        self.in_sync.iter().filter_map(|&host| self.replica_on(host)).map(Replica::node)
    }
}

impl Replica {
    pub fn node(self) -> NodeId {
        NodeId::of(self.host, self.slot)
    }
}

/// A broker as clients see it: one slot of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: NodeId,
    pub host: Str,
    pub port: u16,
    pub rack: Option<Str>,
}

impl Image {
    /// Index of the last log entry that this image contains.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// None until the cluster's first record.
    pub fn cluster_id(&self) -> Option<&Str> {
        self.cluster_id.as_ref()
    }

    pub fn format(&self) -> u16 {
        self.format
    }

    // ---- hosts and nodes

    pub fn hosts(&self) -> impl Iterator<Item = &Arc<HostRegistered>> {
        self.hosts.values()
    }

    pub fn host(&self, host: HostId) -> Option<&Arc<HostRegistered>> {
        self.hosts.get(&host)
    }

    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Every slot of every host, by node id.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        self.hosts.values().flat_map(|host| (0..host.slots).map(|slot| node_of(host, slot)))
    }

    pub fn node(&self, id: NodeId) -> Option<Node> {
        let host = self.hosts.get(&id.host())?;
        let slot = id.slot().0;
        (id.0 >= 0 && slot < host.slots).then(|| node_of(host, slot))
    }

    // ---- topics and partitions

    /// In the order of their ids.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.topics.values()
    }

    /// In the order of their names.
    pub fn topic_names(&self) -> impl Iterator<Item = &Str> {
        self.topic_ids.keys()
    }

    /// In the order of their names, from the first that is not below `from`.
    pub fn topics_from(&self, from: &str) -> impl Iterator<Item = &Arc<Topic>> {
        let range = (Bound::Included(from), Bound::Unbounded);
        self.topic_ids.range::<_, str>(range).filter_map(|(_, id)| self.topics.get(id))
    }

    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }

    pub fn topic(&self, name: &str) -> Option<&Arc<Topic>> {
        self.topics.get(self.topic_ids.get(name)?)
    }

    pub fn topic_by_id(&self, id: Uuid) -> Option<&Arc<Topic>> {
        self.topics.get(&id)
    }

    pub fn partition(&self, topic: Uuid, index: i32) -> Option<&Arc<Partition>> {
        self.topics.get(&topic)?.partition(index)
    }

    /// A topic whose name differs from `name` only in '.' against '_': their metrics would clash.
    pub fn colliding_topic(&self, name: &str) -> Option<&Str> {
        let sharing = self.folded_names.get(fold_name(name).as_str())?;
        sharing.iter().find(|&other| &**other != name)
    }

    /// Of every replica on this slot, leading or following.
    pub fn partitions_of(
        &self,
        host: HostId,
        slot: SlotIndex,
    ) -> impl Iterator<Item = (&Arc<Topic>, i32, &Arc<Partition>)> {
        let on_slot = self.served.get(&Replica { host, slot });
        on_slot.into_iter().flatten().filter_map(|&(id, index)| {
            let topic = self.topics.get(&id)?;
            Some((topic, index, topic.partition(index)?))
        })
    }

    /// How many replicas a slot has.
    pub fn load_of(&self, host: HostId, slot: SlotIndex) -> usize {
        self.served.get(&Replica { host, slot }).map_or(0, OrdSet::len)
    }

    // ---- configs, features, producer ids

    pub fn overrides(&self, resource: &ConfigResource) -> Option<&Overrides> {
        self.configs.get(resource)
    }

    pub fn config(&self, resource: &ConfigResource, key: &str) -> Option<&Str> {
        self.configs.get(resource)?.get(key)
    }

    /// Everything that has an override.
    pub fn configured_resources(&self) -> impl Iterator<Item = &ConfigResource> {
        self.configs.keys()
    }

    /// Of what was set; a feature that never was is at level 0.
    pub fn feature_levels(&self) -> impl Iterator<Item = (&Str, i16)> {
        self.features.iter().map(|(name, &level)| (name, level))
    }

    pub fn feature_level(&self, name: &str) -> i16 {
        self.features.get(name).copied().unwrap_or(0)
    }

    /// The first producer id that belongs to nobody yet.
    pub fn next_producer_id(&self) -> i64 {
        self.next_producer_id
    }
}

fn node_of(host: &HostRegistered, slot: u16) -> Node {
    Node {
        id: NodeId::of(host.host, SlotIndex(slot)),
        host: host.advertised_host.clone(),
        port: host.client_port.saturating_add(slot),
        rack: host.rack.clone(),
    }
}

/// The form in which names that would clash as metrics are equal.
fn fold_name(name: &str) -> String {
    name.replace('.', "_")
}
