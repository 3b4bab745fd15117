//! Where replicas go: chosen by the client, or by us.
//!
//! A replica is a host; the slot is where that host serves it. Chosen by us, the partitions of one
//! topic are spread over the slots first, so that each slot has its share of the topic, and slots
//! that have little altogether get the odd ones. Two replicas are never on one host.

use std::collections::BTreeMap;

use protocol::{ErrorCode, HostId, NodeId, SlotIndex};

use super::Refusal;
use crate::image::Image;
use crate::record::{Partition, REPLICAS_MAX, Replica};

/// How often a place was chosen for the topic at hand, and in all.
type Load = (usize, usize);

#[derive(Debug)]
pub(super) struct Placer<'a> {
    image: &'a Image,
    slots: BTreeMap<Replica, Load>,
    /// Of a host, as the sum over its slots.
    hosts: BTreeMap<HostId, Load>,
}

impl<'a> Placer<'a> {
    pub(super) fn new(image: &'a Image) -> Self {
        let mut placer = Self { image, slots: BTreeMap::new(), hosts: BTreeMap::new() };
        for host in image.hosts() {
            let mut total = 0;
            for slot in (0..host.slots).map(SlotIndex) {
                let load = image.load_of(host.host, slot);
                total += load;
                placer.slots.insert(Replica { host: host.host, slot }, (0, load));
            }
            placer.hosts.insert(host.host, (0, total));
        }
        placer
    }

    /// Counts what a topic has already, before more is placed.
    pub(super) fn begin_topic<'p>(&mut self, existing: impl Iterator<Item = &'p Partition>) {
        let loads = self.slots.values_mut().chain(self.hosts.values_mut());
        loads.for_each(|load| load.0 = 0);
        for replica in existing.flat_map(|partition| &partition.replicas) {
            self.slots.entry(*replica).or_default().0 += 1;
            self.hosts.entry(replica.host).or_default().0 += 1;
        }
    }

    /// The replicas of one more partition of the topic begun last.
    pub(super) fn place(&mut self, replication_factor: usize) -> Result<Partition, Refusal> {
        let available = self.image.host_count();
        if replication_factor > available {
            let message = format!(
                "{replication_factor} replicas need as many hosts, and there are {available}: \
                 the nodes of one host share its fate"
            );
            return Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, message));
        }
        let mut hosts: Vec<(Load, HostId)> =
            self.hosts.iter().map(|(&host, &load)| (load, host)).collect();
        hosts.sort_unstable();
        let chosen: Vec<HostId> =
            hosts.into_iter().take(replication_factor).map(|(_, host)| host).collect();
        let replicas = chosen.into_iter().map(|host| self.take_slot(host)).collect();
        Ok(all_in_sync(replicas))
    }

    fn take_slot(&mut self, host: HostId) -> Replica {
        let first = Replica { host, slot: SlotIndex(0) };
        let last = Replica { host, slot: SlotIndex(u16::MAX) };
        let of_host = self.slots.range(first..=last);
        let replica =
            of_host.min_by_key(|(replica, load)| (**load, **replica)).map_or(first, |it| *it.0);
        self.count(replica);
        replica
    }

    fn count(&mut self, replica: Replica) {
        let slot = self.slots.entry(replica).or_default();
        *slot = (slot.0 + 1, slot.1 + 1);
        let host = self.hosts.entry(replica.host).or_default();
        *host = (host.0 + 1, host.1 + 1);
    }

    /// A partition where the client wants it; `factor` is what its other partitions have.
    pub(super) fn place_by_hand(
        &mut self,
        nodes: &[i32],
        factor: Option<usize>,
    ) -> Result<Partition, Refusal> {
        let replicas = chosen_by_hand(self.image, nodes)?;
        if let Some(factor) = factor.filter(|factor| *factor != replicas.len()) {
            let count = replicas.len();
            let message = format!("{count} replicas are assigned where others have {factor}");
            return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
        }
        replicas.iter().for_each(|&replica| self.count(replica));
        Ok(all_in_sync(replicas))
    }
}

/// What an assignment of node ids means: registered nodes of different hosts.
pub(super) fn chosen_by_hand(image: &Image, nodes: &[i32]) -> Result<Vec<Replica>, Refusal> {
    let refuse =
        |message: String| Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
    if nodes.is_empty() || nodes.len() > REPLICAS_MAX {
        return refuse(format!("a partition cannot have {} replicas", nodes.len()));
    }
    let mut replicas: Vec<Replica> = Vec::with_capacity(nodes.len());
    for &id in nodes {
        let node = NodeId(id);
        if image.node(node).is_none() {
            return refuse(format!("node {id} is assigned a replica, but there is no such node"));
        }
        let replica = Replica { host: node.host(), slot: node.slot() };
        match replicas.iter().find(|other| other.host == replica.host) {
            Some(other) if *other == replica => {
                return refuse(format!("node {id} is assigned the same partition twice"));
            }
            Some(other) => {
                let (other, host) = (other.node(), replica.host);
                return refuse(format!(
                    "nodes {other} and {id} are both host {host}: replicas have to be on \
                     different hosts"
                ));
            }
            None => replicas.push(replica),
        }
    }
    Ok(replicas)
}

/// A new partition: everyone has all of it, which is nothing.
fn all_in_sync(replicas: Vec<Replica>) -> Partition {
    let in_sync: Vec<HostId> = replicas.iter().map(|replica| replica.host).collect();
    Partition {
        leader: in_sync.first().copied(),
        replicas,
        in_sync,
        leader_epoch: 0,
        partition_epoch: 0,
    }
}
