//! Replay: the one way in which an image changes.
//!
//! A record that does not fit the image means that log and code disagree; it is an error that ends
//! the host, never something to skip.

use std::sync::Arc;

use imbl::{OrdSet, Vector};
use protocol::{HostId, Str, Uuid};

use super::{HOST_ID_MAX, Image, Overrides, SLOTS_MAX, Topic, fold_name};
use crate::record::{
    ClusterFormatted, ConfigChanged, ConfigResource, HostRegistered, HostStarted, HostUnregistered,
    MetadataRecord, NextLeader, Partition, PartitionChanged, PartitionCreated, PreviousStop,
    ProducerIdsAllocated, REPLICAS_MAX, Replica, TopicCreated, TopicRemoved,
};

/// A committed record contradicts what was committed before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("the cluster {0} is formatted already")]
    AlreadyFormatted(Str),
    #[error("host {0:?} is not registered")]
    UnknownHost(HostId),
    #[error("host {host:?} has {slots} slots")]
    SlotsOutOfRange { host: HostId, slots: u16 },
    #[error("{0:?} numbers no host")]
    HostOutOfRange(HostId),
    #[error("topic {0} exists")]
    TopicExists(Str),
    #[error("topic id {0:?} is not known")]
    UnknownTopic(Uuid),
    #[error("partition {index} of topic {topic} is not the next one")]
    NotTheNextPartition { topic: Str, index: i32 },
    #[error("partition {index} of topic id {topic:?} is not known")]
    UnknownPartition { topic: Uuid, index: i32 },
    #[error("partition {index} of topic id {topic:?} would be {what}")]
    BrokenPartition { topic: Uuid, index: i32, what: &'static str },
    #[error("producer ids below {have} are taken, {next} is no progress")]
    ProducerIdsBackwards { have: i64, next: i64 },
}

impl Image {
    /// The image after the log entry at `offset`, which is these records. All or nothing.
    pub fn apply(&self, records: &[MetadataRecord], offset: u64) -> Result<Image, ApplyError> {
        let mut next = self.clone();
        for record in records {
            next.replay(record)?;
        }
        next.offset = offset;
        Ok(next)
    }

    fn replay(&mut self, record: &MetadataRecord) -> Result<(), ApplyError> {
        match record {
            MetadataRecord::ClusterFormatted(it) => self.on_cluster_formatted(it),
            MetadataRecord::HostRegistered(it) => self.on_host_registered(it),
            MetadataRecord::HostStarted(it) => self.on_host_started(it),
            MetadataRecord::HostUnregistered(it) => self.on_host_unregistered(it),
            MetadataRecord::TopicCreated(it) => self.on_topic_created(it),
            MetadataRecord::TopicRemoved(it) => self.on_topic_removed(it),
            MetadataRecord::PartitionCreated(it) => self.on_partition_created(it),
            MetadataRecord::PartitionChanged(it) => self.on_partition_changed(it),
            MetadataRecord::ConfigChanged(it) => {
                self.on_config_changed(it);
                Ok(())
            }
            MetadataRecord::ProducerIdsAllocated(it) => self.on_producer_ids_allocated(it),
            MetadataRecord::FeatureLevelSet(it) => {
                self.features.insert(it.name.clone(), it.level);
                Ok(())
            }
        }
    }

    fn on_cluster_formatted(&mut self, record: &ClusterFormatted) -> Result<(), ApplyError> {
        if let Some(cluster) = &self.cluster_id {
            return Err(ApplyError::AlreadyFormatted(cluster.clone()));
        }
        self.cluster_id = Some(record.cluster_id.clone());
        self.format = record.format;
        Ok(())
    }

    fn on_host_registered(&mut self, record: &HostRegistered) -> Result<(), ApplyError> {
        check_host(record)?;
        let before = self.hosts.get(&record.host).map_or(1, |host| host.slots);
        if record.slots < before {
            let (host, slots) = (record.host, record.slots);
            return Err(ApplyError::SlotsOutOfRange { host, slots });
        }
        self.hosts.insert(record.host, Arc::new(record.clone()));
        Ok(())
    }

    fn on_host_started(&mut self, record: &HostStarted) -> Result<(), ApplyError> {
        let host = self.hosts.get(&record.host).ok_or(ApplyError::UnknownHost(record.host))?;
        let mut host = HostRegistered::clone(host);
        host.incarnation = record.incarnation;
        self.hosts.insert(record.host, Arc::new(host));
        match record.previous_stop {
            PreviousStop::Clean => {}
            PreviousStop::Unclean => self.raise_leader_epochs_of(record.host),
        }
        Ok(())
    }

    fn raise_leader_epochs_of(&mut self, host: HostId) {
        let led: Vec<Uuid> = self
            .topics
            .iter()
            .filter(|(_, topic)| topic.partitions.iter().any(|it| it.leader == Some(host)))
            .map(|(&id, _)| id)
            .collect();
        for id in led {
            let Some(topic) = self.topics.get(&id) else { continue };
            let mut topic = Topic::clone(topic);
            for partition in topic.partitions.iter_mut().filter(|it| it.leader == Some(host)) {
                let mut raised = Partition::clone(partition);
                raised.leader_epoch += 1;
                raised.partition_epoch += 1;
                *partition = Arc::new(raised);
            }
            self.topics.insert(id, Arc::new(topic));
        }
    }

    fn on_host_unregistered(&mut self, record: &HostUnregistered) -> Result<(), ApplyError> {
        match self.hosts.remove(&record.host) {
            Some(_) => Ok(()),
            None => Err(ApplyError::UnknownHost(record.host)),
        }
    }

    fn on_topic_created(&mut self, record: &TopicCreated) -> Result<(), ApplyError> {
        if self.topic_ids.contains_key(&record.name) || self.topics.contains_key(&record.id) {
            return Err(ApplyError::TopicExists(record.name.clone()));
        }
        let topic = Topic { name: record.name.clone(), id: record.id, partitions: Vector::new() };
        self.index_name(&record.name, record.id);
        self.topics.insert(record.id, Arc::new(topic));
        Ok(())
    }

    fn on_topic_removed(&mut self, record: &TopicRemoved) -> Result<(), ApplyError> {
        let topic = self.topics.remove(&record.id).ok_or(ApplyError::UnknownTopic(record.id))?;
        self.topic_ids.remove(&topic.name);
        let folded = Str::from(fold_name(&topic.name));
        if let Some(sharing) = self.folded_names.get_mut(&folded) {
            sharing.remove(&topic.name);
            if sharing.is_empty() {
                self.folded_names.remove(&folded);
            }
        }
        for (index, partition) in topic.indexed() {
            self.forget_replicas(topic.id, index, &partition.replicas);
        }
        self.configs.remove(&ConfigResource::Topic(topic.name.clone()));
        Ok(())
    }

    fn on_partition_created(&mut self, record: &PartitionCreated) -> Result<(), ApplyError> {
        let topic = self.topics.get(&record.topic).ok_or(ApplyError::UnknownTopic(record.topic))?;
        if usize::try_from(record.index) != Ok(topic.partitions.len()) {
            let (topic, index) = (topic.name.clone(), record.index);
            return Err(ApplyError::NotTheNextPartition { topic, index });
        }
        check_partition(record.topic, record.index, &record.partition)?;
        let mut topic = Topic::clone(topic);
        topic.partitions.push_back(Arc::new(record.partition.clone()));
        self.topics.insert(record.topic, Arc::new(topic));
        self.index_replicas(record.topic, record.index, &record.partition.replicas);
        Ok(())
    }

    fn on_partition_changed(&mut self, record: &PartitionChanged) -> Result<(), ApplyError> {
        let (id, index) = (record.topic, record.index);
        let unknown = ApplyError::UnknownPartition { topic: id, index };
        let topic = self.topics.get(&id).ok_or(unknown.clone())?;
        let before = topic.partition(index).ok_or(unknown)?.clone();
        let after = changed(&before, record);
        check_partition(id, index, &after)?;
        let mut topic = Topic::clone(topic);
        topic.partitions.set(index as usize, Arc::new(after.clone()));
        self.topics.insert(id, Arc::new(topic));
        self.forget_replicas(id, index, &before.replicas);
        self.index_replicas(id, index, &after.replicas);
        Ok(())
    }

    fn on_config_changed(&mut self, record: &ConfigChanged) {
        let mut overrides = self.configs.get(&record.resource).cloned().unwrap_or_default();
        match &record.value {
            Some(value) => overrides.insert(record.key.clone(), value.clone()),
            None => overrides.remove(&record.key),
        };
        self.set_overrides(record.resource.clone(), overrides);
    }

    fn on_producer_ids_allocated(
        &mut self,
        record: &ProducerIdsAllocated,
    ) -> Result<(), ApplyError> {
        let (have, next) = (self.next_producer_id, record.next);
        if next <= have {
            return Err(ApplyError::ProducerIdsBackwards { have, next });
        }
        self.next_producer_id = next;
        Ok(())
    }

    pub(super) fn set_overrides(&mut self, resource: ConfigResource, overrides: Overrides) {
        if overrides.is_empty() {
            self.configs.remove(&resource);
        } else {
            self.configs.insert(resource, overrides);
        }
    }

    pub(super) fn index_name(&mut self, name: &Str, id: Uuid) {
        self.topic_ids.insert(name.clone(), id);
        self.folded_names.entry(Str::from(fold_name(name))).or_default().insert(name.clone());
    }

    pub(super) fn index_replicas(&mut self, topic: Uuid, index: i32, replicas: &[Replica]) {
        for &replica in replicas {
            self.served.entry(replica).or_default().insert((topic, index));
        }
    }

    fn forget_replicas(&mut self, topic: Uuid, index: i32, replicas: &[Replica]) {
        for replica in replicas {
            let Some(on_slot) = self.served.get_mut(replica) else { continue };
            on_slot.remove(&(topic, index));
            if on_slot.is_empty() {
                self.served.remove(replica);
            }
        }
    }
}

pub(super) fn check_host(record: &HostRegistered) -> Result<(), ApplyError> {
    let (host, slots) = (record.host, record.slots);
    if !(0..=HOST_ID_MAX).contains(&host.0) {
        return Err(ApplyError::HostOutOfRange(host));
    }
    if slots == 0 || slots > SLOTS_MAX {
        return Err(ApplyError::SlotsOutOfRange { host, slots });
    }
    Ok(())
}

fn changed(before: &Partition, record: &PartitionChanged) -> Partition {
    let mut after = before.clone();
    if let Some(replicas) = &record.replicas {
        after.replicas.clone_from(replicas);
    }
    if let Some(in_sync) = &record.in_sync {
        after.in_sync.clone_from(in_sync);
    }
    match record.leader {
        None => {}
        Some(NextLeader::Nobody) => after.leader = None,
        Some(NextLeader::Host(host)) => after.leader = Some(host),
    }
    after.partition_epoch += 1;
    if after.leading_replica() != before.leading_replica() {
        after.leader_epoch += 1;
    }
    after
}

pub(super) fn check_partition(
    topic: Uuid,
    index: i32,
    partition: &Partition,
) -> Result<(), ApplyError> {
    let broken = |what| Err(ApplyError::BrokenPartition { topic, index, what });
    let hosts: OrdSet<HostId> = partition.replicas.iter().map(|replica| replica.host).collect();
    if partition.replicas.is_empty() || partition.replicas.len() > REPLICAS_MAX {
        return broken("without replicas, or with too many");
    }
    if hosts.len() != partition.replicas.len() {
        return broken("twice on one host");
    }
    if partition.in_sync.iter().any(|host| !hosts.contains(host)) {
        return broken("in sync on a host without a replica");
    }
    if partition.leader.is_some_and(|leader| !hosts.contains(&leader)) {
        return broken("led by a host without a replica");
    }
    if partition.leader_epoch < 0 || partition.partition_epoch < 0 {
        return broken("of a negative epoch");
    }
    Ok(())
}
