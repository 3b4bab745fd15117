//! A whole image as bytes, for the snapshots that let the log before them go.
//!
//! Layout: magic "CTMI", format, log offset, cluster, hosts, topics with their partitions, config
//! overrides by resource, feature levels, next producer id. Derived maps are rebuilt on reading.
//! Invariant: decoding what `encode` wrote gives an equal image, the same as replaying the log.

use std::sync::Arc;

use imbl::Vector;

use super::apply::{ApplyError, check_host, check_partition};
use super::{Image, Overrides, Topic};
use crate::codec::{CodecError, Reader, Writer};
use crate::record::{
    decode_host, decode_partition, decode_resource, encode_host, encode_partition, encode_resource,
};

/// Of the bytes; raised when the layout changes.
pub const SNAPSHOT_FORMAT: u16 = 1;

const MAGIC: &[u8] = b"CTMI";
const HOSTS_MAX: usize = 10_000;
const TOPICS_MAX: usize = 1 << 24;
const PARTITIONS_MAX: usize = 1 << 20;
const RESOURCES_MAX: usize = 1 << 24;
const OVERRIDES_MAX: usize = 10_000;
const FEATURES_MAX: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error("the snapshot contradicts itself: {0}")]
    Inconsistent(#[from] ApplyError),
    #[error("the snapshot has {0} twice")]
    Repeated(&'static str),
}

impl Image {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.raw(MAGIC);
        out.unsigned(u64::from(SNAPSHOT_FORMAT));
        out.unsigned(self.offset);
        out.optional_text(self.cluster_id.as_deref());
        out.signed(i64::from(self.format));
        out.unsigned(self.hosts.len() as u64);
        for host in self.hosts.values() {
            encode_host(host, &mut out);
        }
        out.unsigned(self.topics.len() as u64);
        for topic in self.topics.values() {
            out.text(&topic.name);
            out.uuid(topic.id);
            out.unsigned(topic.partitions.len() as u64);
            for partition in &topic.partitions {
                encode_partition(partition, &mut out);
            }
        }
        self.encode_configs(&mut out);
        out.unsigned(self.features.len() as u64);
        for (name, &level) in &self.features {
            out.text(name);
            out.signed(i64::from(level));
        }
        out.signed(self.next_producer_id);
        out.into_bytes()
    }

    fn encode_configs(&self, out: &mut Writer) {
        out.unsigned(self.configs.len() as u64);
        for (resource, overrides) in &self.configs {
            encode_resource(resource, out);
            out.unsigned(overrides.len() as u64);
            for (key, value) in overrides {
                out.text(key);
                out.text(value);
            }
        }
    }

    pub fn decode(bytes: &[u8]) -> Result<Image, SnapshotError> {
        let mut from = Reader::new(bytes);
        if from.raw(MAGIC.len())? != MAGIC {
            return Err(CodecError::Foreign { what: "metadata snapshot" }.into());
        }
        let version = from.unsigned()?;
        if version != u64::from(SNAPSHOT_FORMAT) {
            let newer = CodecError::Newer { what: "metadata snapshot", kind: 0, version };
            return Err(newer.into());
        }
        let mut image = Image {
            offset: from.unsigned()?,
            cluster_id: from.optional_text()?,
            format: from.int("format")?,
            ..Image::default()
        };
        image.decode_hosts(&mut from)?;
        image.decode_topics(&mut from)?;
        image.decode_configs(&mut from)?;
        for _ in 0..from.count("features", FEATURES_MAX)? {
            image.features.insert(from.text()?, from.int("feature level")?);
        }
        image.next_producer_id = from.signed()?;
        from.finish("metadata snapshot")?;
        Ok(image)
    }

    fn decode_hosts(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        for _ in 0..from.count("hosts", HOSTS_MAX)? {
            let host = decode_host(from)?;
            check_host(&host)?;
            if self.hosts.insert(host.host, Arc::new(host)).is_some() {
                return Err(SnapshotError::Repeated("a host"));
            }
        }
        Ok(())
    }

    fn decode_topics(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        for _ in 0..from.count("topics", TOPICS_MAX)? {
            let (name, id) = (from.text()?, from.uuid()?);
            if self.topic_ids.contains_key(&name) || self.topics.contains_key(&id) {
                return Err(SnapshotError::Repeated("a topic"));
            }
            let mut partitions = Vector::new();
            for index in 0..from.count("partitions", PARTITIONS_MAX)? {
                let (index, partition) = (index as i32, decode_partition(from)?);
                check_partition(id, index, &partition)?;
                self.index_replicas(id, index, &partition.replicas);
                partitions.push_back(Arc::new(partition));
            }
            self.index_name(&name, id);
            self.topics.insert(id, Arc::new(Topic { name, id, partitions }));
        }
        Ok(())
    }

    fn decode_configs(&mut self, from: &mut Reader<'_>) -> Result<(), SnapshotError> {
        for _ in 0..from.count("configured resources", RESOURCES_MAX)? {
            let resource = decode_resource(from)?;
            let mut overrides = Overrides::new();
            for _ in 0..from.count("overrides", OVERRIDES_MAX)? {
                overrides.insert(from.text()?, from.text()?);
            }
            if self.configs.contains_key(&resource) {
                return Err(SnapshotError::Repeated("a configured resource"));
            }
            self.set_overrides(resource, overrides);
        }
        Ok(())
    }
}
