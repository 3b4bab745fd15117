//! What the metadata log says, one fact per record.
//!
//! The controller decides by writing records; an image changes only by replaying them. A batch of
//! records is one entry of the quorum's log and takes effect as a whole.
//!
//! Encoding of a batch: count, then per record a block of { kind, version, fields }. A field is
//! added by raising the kind's version; an unknown kind or version stops the reader, because a
//! fact that is not understood may not be skipped.
//!
//! Records name hosts and slots. Node ids are derived from them in answers and appear nowhere here.

use protocol::{HostId, SlotIndex, Str, Uuid};

use crate::codec::{CodecError, Reader, Writer};

/// The most records that one decision may commit at once.
pub const BATCH_RECORDS_MAX: usize = 100_000;
/// The most replicas that a partition may have.
pub const REPLICAS_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataRecord {
    ClusterFormatted(ClusterFormatted),
    HostRegistered(HostRegistered),
    HostStarted(HostStarted),
    HostUnregistered(HostUnregistered),
    TopicCreated(TopicCreated),
    TopicRemoved(TopicRemoved),
    PartitionCreated(PartitionCreated),
    PartitionChanged(PartitionChanged),
    ConfigChanged(ConfigChanged),
    ProducerIdsAllocated(ProducerIdsAllocated),
    FeatureLevelSet(FeatureLevelSet),
}

/// The first record of every cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFormatted {
    pub cluster_id: Str,
    /// Of the metadata itself; a release refuses a cluster of a newer format.
    pub format: u16,
}

/// Where a host can be reached and what it offers. Written when it is first seen and when any of
/// this changes; it never takes slots away, because partitions live on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRegistered {
    pub host: HostId,
    pub incarnation: i64,
    pub directory: Uuid,
    /// What clients are told: a name or an address without port.
    pub advertised_host: Str,
    /// The port of slot 0; slot s is at `client_port + s`.
    pub client_port: u16,
    pub slots: u16,
    pub rack: Option<Str>,
}

/// A start of a host. After an unclean stop, acknowledged reads may have shown offsets that the
/// power loss took away; replaying this record then raises the leader epoch of every partition the
/// host leads, so that such an offset is never used twice under one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStarted {
    pub host: HostId,
    pub incarnation: i64,
    pub previous_stop: PreviousStop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviousStop {
    Clean,
    Unclean,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostUnregistered {
    pub host: HostId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicCreated {
    pub name: Str,
    pub id: Uuid,
}

/// Takes the partitions and the configs of the topic along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicRemoved {
    pub id: Uuid,
}

/// One copy of a partition: a host, and the slot that serves it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replica {
    pub host: HostId,
    pub slot: SlotIndex,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionCreated {
    pub topic: Uuid,
    pub index: i32,
    pub partition: Partition,
}

/// The state of a partition as every host knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// In order of preference; no two on one host.
    pub replicas: Vec<Replica>,
    pub in_sync: Vec<HostId>,
    /// None while no replica may lead.
    pub leader: Option<HostId>,
    pub leader_epoch: i32,
    /// Raised by every change of this partition.
    pub partition_epoch: i32,
}

/// Replaces what it names. The partition epoch always rises; the leader epoch rises when the
/// leader, or the slot that serves it, changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionChanged {
    pub topic: Uuid,
    pub index: i32,
    pub replicas: Option<Vec<Replica>>,
    pub in_sync: Option<Vec<HostId>>,
    pub leader: Option<NextLeader>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextLeader {
    Host(HostId),
    Nobody,
}

/// Sets a key, or takes an override away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigChanged {
    pub resource: ConfigResource,
    pub key: Str,
    pub value: Option<Str>,
}

/// What a config belongs to. Topics go by name: their configs are written before and removed with
/// the topic, in the same batch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigResource {
    Topic(Str),
    /// One slot of one host, by its node id, as clients see it.
    Node {
        host: HostId,
        slot: SlotIndex,
    },
    /// What every broker takes as its default.
    AllNodes,
    ClientMetrics(Str),
    Group(Str),
}

/// Everything below `next` belongs to someone; the block that ends there, to this slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerIdsAllocated {
    pub host: HostId,
    pub slot: SlotIndex,
    pub next: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureLevelSet {
    pub name: Str,
    pub level: i16,
}

/// The bytes of one log entry.
pub fn encode_batch(records: &[MetadataRecord]) -> Vec<u8> {
    assert!(records.len() <= BATCH_RECORDS_MAX, "{} records in one decision", records.len());
    let mut out = Writer::new();
    out.unsigned(records.len() as u64);
    for record in records {
        let mut body = Writer::new();
        record.encode(&mut body);
        out.block(&body.into_bytes());
    }
    out.into_bytes()
}

pub fn decode_batch(bytes: &[u8]) -> Result<Vec<MetadataRecord>, CodecError> {
    let mut from = Reader::new(bytes);
    let count = from.count("records", BATCH_RECORDS_MAX)?;
    let mut records = Vec::with_capacity(count);
    for _ in 0..count {
        let mut body = Reader::new(from.block()?);
        records.push(MetadataRecord::decode(&mut body)?);
        body.finish("metadata record")?;
    }
    from.finish("batch of metadata records")?;
    Ok(records)
}

mod kind {
    pub(super) const CLUSTER_FORMATTED: u64 = 1;
    pub(super) const HOST_REGISTERED: u64 = 2;
    pub(super) const HOST_STARTED: u64 = 3;
    pub(super) const HOST_UNREGISTERED: u64 = 4;
    pub(super) const TOPIC_CREATED: u64 = 5;
    pub(super) const TOPIC_REMOVED: u64 = 6;
    pub(super) const PARTITION_CREATED: u64 = 7;
    pub(super) const PARTITION_CHANGED: u64 = 8;
    pub(super) const CONFIG_CHANGED: u64 = 9;
    pub(super) const PRODUCER_IDS_ALLOCATED: u64 = 10;
    pub(super) const FEATURE_LEVEL_SET: u64 = 11;
}

/// Of every kind so far.
const VERSION: u64 = 0;

impl MetadataRecord {
    fn kind(&self) -> u64 {
        match self {
            Self::ClusterFormatted(_) => kind::CLUSTER_FORMATTED,
            Self::HostRegistered(_) => kind::HOST_REGISTERED,
            Self::HostStarted(_) => kind::HOST_STARTED,
            Self::HostUnregistered(_) => kind::HOST_UNREGISTERED,
            Self::TopicCreated(_) => kind::TOPIC_CREATED,
            Self::TopicRemoved(_) => kind::TOPIC_REMOVED,
            Self::PartitionCreated(_) => kind::PARTITION_CREATED,
            Self::PartitionChanged(_) => kind::PARTITION_CHANGED,
            Self::ConfigChanged(_) => kind::CONFIG_CHANGED,
            Self::ProducerIdsAllocated(_) => kind::PRODUCER_IDS_ALLOCATED,
            Self::FeatureLevelSet(_) => kind::FEATURE_LEVEL_SET,
        }
    }

    fn encode(&self, out: &mut Writer) {
        out.unsigned(self.kind());
        out.unsigned(VERSION);
        match self {
            Self::ClusterFormatted(it) => {
                out.text(&it.cluster_id);
                out.unsigned(u64::from(it.format));
            }
            Self::HostRegistered(it) => encode_host(it, out),
            Self::HostStarted(it) => {
                out.host(it.host);
                out.signed(it.incarnation);
                out.flag(it.previous_stop == PreviousStop::Clean);
            }
            Self::HostUnregistered(it) => out.host(it.host),
            Self::TopicCreated(it) => {
                out.text(&it.name);
                out.uuid(it.id);
            }
            Self::TopicRemoved(it) => out.uuid(it.id),
            Self::PartitionCreated(it) => {
                out.uuid(it.topic);
                out.signed(i64::from(it.index));
                encode_partition(&it.partition, out);
            }
            Self::PartitionChanged(it) => encode_change(it, out),
            Self::ConfigChanged(it) => {
                encode_resource(&it.resource, out);
                out.text(&it.key);
                out.optional_text(it.value.as_deref());
            }
            Self::ProducerIdsAllocated(it) => {
                out.host(it.host);
                out.slot(it.slot);
                out.signed(it.next);
            }
            Self::FeatureLevelSet(it) => {
                out.text(&it.name);
                out.signed(i64::from(it.level));
            }
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let (kind, version) = (from.unsigned()?, from.unsigned()?);
        if version > VERSION {
            return Err(CodecError::Newer { what: "metadata record", kind, version });
        }
        Ok(match kind {
            kind::CLUSTER_FORMATTED => Self::ClusterFormatted(ClusterFormatted {
                cluster_id: from.text()?,
                format: narrow(from.unsigned()?, "format")?,
            }),
            kind::HOST_REGISTERED => Self::HostRegistered(decode_host(from)?),
            kind::HOST_STARTED => Self::HostStarted(HostStarted {
                host: from.host()?,
                incarnation: from.signed()?,
                previous_stop: if from.flag()? {
                    PreviousStop::Clean
                } else {
                    PreviousStop::Unclean
                },
            }),
            kind::HOST_UNREGISTERED => {
                Self::HostUnregistered(HostUnregistered { host: from.host()? })
            }
            kind::TOPIC_CREATED => {
                Self::TopicCreated(TopicCreated { name: from.text()?, id: from.uuid()? })
            }
            kind::TOPIC_REMOVED => Self::TopicRemoved(TopicRemoved { id: from.uuid()? }),
            kind::PARTITION_CREATED => Self::PartitionCreated(PartitionCreated {
                topic: from.uuid()?,
                index: from.int("partition index")?,
                partition: decode_partition(from)?,
            }),
            kind::PARTITION_CHANGED => Self::PartitionChanged(decode_change(from)?),
            kind::CONFIG_CHANGED => Self::ConfigChanged(ConfigChanged {
                resource: decode_resource(from)?,
                key: from.text()?,
                value: from.optional_text()?,
            }),
            kind::PRODUCER_IDS_ALLOCATED => Self::ProducerIdsAllocated(ProducerIdsAllocated {
                host: from.host()?,
                slot: from.slot()?,
                next: from.signed()?,
            }),
            kind::FEATURE_LEVEL_SET => Self::FeatureLevelSet(FeatureLevelSet {
                name: from.text()?,
                level: from.int("feature level")?,
            }),
            _ => return Err(CodecError::Newer { what: "metadata record", kind, version }),
        })
    }
}

fn narrow(value: u64, field: &'static str) -> Result<u16, CodecError> {
    u16::try_from(value).map_err(|_| CodecError::OutOfRange { field, value: value as i64 })
}

pub(crate) fn encode_host(host: &HostRegistered, out: &mut Writer) {
    out.host(host.host);
    out.signed(host.incarnation);
    out.uuid(host.directory);
    out.text(&host.advertised_host);
    out.unsigned(u64::from(host.client_port));
    out.unsigned(u64::from(host.slots));
    out.optional_text(host.rack.as_deref());
}

pub(crate) fn decode_host(from: &mut Reader<'_>) -> Result<HostRegistered, CodecError> {
    Ok(HostRegistered {
        host: from.host()?,
        incarnation: from.signed()?,
        directory: from.uuid()?,
        advertised_host: from.text()?,
        client_port: narrow(from.unsigned()?, "client port")?,
        slots: narrow(from.unsigned()?, "slots")?,
        rack: from.optional_text()?,
    })
}

pub(crate) fn encode_partition(partition: &Partition, out: &mut Writer) {
    encode_replicas(&partition.replicas, out);
    encode_hosts(&partition.in_sync, out);
    out.flag(partition.leader.is_some());
    if let Some(leader) = partition.leader {
        out.host(leader);
    }
    out.signed(i64::from(partition.leader_epoch));
    out.signed(i64::from(partition.partition_epoch));
}

pub(crate) fn decode_partition(from: &mut Reader<'_>) -> Result<Partition, CodecError> {
    Ok(Partition {
        replicas: decode_replicas(from)?,
        in_sync: decode_hosts(from)?,
        leader: if from.flag()? { Some(from.host()?) } else { None },
        leader_epoch: from.int("leader epoch")?,
        partition_epoch: from.int("partition epoch")?,
    })
}

fn encode_change(change: &PartitionChanged, out: &mut Writer) {
    out.uuid(change.topic);
    out.signed(i64::from(change.index));
    out.flag(change.replicas.is_some());
    if let Some(replicas) = &change.replicas {
        encode_replicas(replicas, out);
    }
    out.flag(change.in_sync.is_some());
    if let Some(in_sync) = &change.in_sync {
        encode_hosts(in_sync, out);
    }
    out.flag(change.leader.is_some());
    match change.leader {
        None => {}
        Some(NextLeader::Nobody) => out.flag(false),
        Some(NextLeader::Host(host)) => {
            out.flag(true);
            out.host(host);
        }
    }
}

fn decode_change(from: &mut Reader<'_>) -> Result<PartitionChanged, CodecError> {
    let (topic, index) = (from.uuid()?, from.int("partition index")?);
    let replicas = if from.flag()? { Some(decode_replicas(from)?) } else { None };
    let in_sync = if from.flag()? { Some(decode_hosts(from)?) } else { None };
    let leader = match from.flag()? {
        false => None,
        true if from.flag()? => Some(NextLeader::Host(from.host()?)),
        true => Some(NextLeader::Nobody),
    };
    Ok(PartitionChanged { topic, index, replicas, in_sync, leader })
}

fn encode_replicas(replicas: &[Replica], out: &mut Writer) {
    out.unsigned(replicas.len() as u64);
    for replica in replicas {
        out.host(replica.host);
        out.slot(replica.slot);
    }
}

fn decode_replicas(from: &mut Reader<'_>) -> Result<Vec<Replica>, CodecError> {
    let count = from.count("replicas", REPLICAS_MAX)?;
    (0..count).map(|_| Ok(Replica { host: from.host()?, slot: from.slot()? })).collect()
}

fn encode_hosts(hosts: &[HostId], out: &mut Writer) {
    out.unsigned(hosts.len() as u64);
    for &host in hosts {
        out.host(host);
    }
}

fn decode_hosts(from: &mut Reader<'_>) -> Result<Vec<HostId>, CodecError> {
    let count = from.count("in-sync hosts", REPLICAS_MAX)?;
    (0..count).map(|_| from.host()).collect()
}

pub(crate) fn encode_resource(resource: &ConfigResource, out: &mut Writer) {
    match resource {
        ConfigResource::Topic(name) => {
            out.unsigned(1);
            out.text(name);
        }
        ConfigResource::Node { host, slot } => {
            out.unsigned(2);
            out.host(*host);
            out.slot(*slot);
        }
        ConfigResource::AllNodes => out.unsigned(3),
        ConfigResource::ClientMetrics(name) => {
            out.unsigned(4);
            out.text(name);
        }
        ConfigResource::Group(name) => {
            out.unsigned(5);
            out.text(name);
        }
    }
}

pub(crate) fn decode_resource(from: &mut Reader<'_>) -> Result<ConfigResource, CodecError> {
    Ok(match from.unsigned()? {
        1 => ConfigResource::Topic(from.text()?),
        2 => ConfigResource::Node { host: from.host()?, slot: from.slot()? },
        3 => ConfigResource::AllNodes,
        4 => ConfigResource::ClientMetrics(from.text()?),
        5 => ConfigResource::Group(from.text()?),
        kind => return Err(CodecError::Newer { what: "config resource", kind, version: VERSION }),
    })
}
