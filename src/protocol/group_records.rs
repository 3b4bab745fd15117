//! What the topic of committed offsets holds: the records of group coordinators, in the format
//! that Kafka's own tools read.
//!
//! A key is a 16-bit type followed by its fields; a value a 16-bit version followed by its fields.
//! Types: 1 (0 in old logs) a committed offset, 2 a classic group, 3 to 8 and 16 a group of the
//! consumer protocol and its parts. A null value deletes.

mod consumer;
mod offset;

use bytes::Bytes;

use crate::wire::Wire;
use crate::wire::declare::structure;
use crate::{DecodeError, Decoder, Encoder, Fault, Str, Uuid};

pub use consumer::{
    ClassicMemberMetadata, ClassicProtocol, ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue, ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue, CurrentPartitions, GroupKey, MemberKey, PatternKey,
    TargetPartitions,
};
pub use offset::{OffsetKey, OffsetValue};

structure! {
    /// Names one committed offset.
    OffsetCommitKey {
        group: Str [0..],
        topic: Str [0..],
        partition: i32 [0..],
    }
}

structure! {
    /// A committed offset.
    OffsetCommitValue {
        offset: i64 [0..],
        /// Of the last record read; −1 if unknown.
        leader_epoch: i32 [3..] = -1,
        metadata: Str [0..],
        /// Milliseconds since 1970.
        commit_timestamp: i64 [0..],
        /// When the client wanted it forgotten; −1 to go by the broker's retention.
        expire_timestamp: i64 [1..=1] = -1,
        topic_id: Uuid [4.., tag 0],
    }
}

structure! {
    /// Names a classic group.
    GroupMetadataKey {
        group: Str [0..],
    }
}

structure! {
    /// A classic group at the end of a rebalance.
    GroupMetadataValue {
        protocol_type: Str [0..],
        generation: i32 [0..],
        protocol: Option<Str> [0.., null 0..],
        leader: Option<Str> [0.., null 0..],
        /// When the group came into its state; −1 if unknown.
        current_state_timestamp: i64 [2..] = -1,
        members: Vec<MemberMetadata> [0..],
    }
}

structure! {
    MemberMetadata {
        member_id: Str [0..],
        group_instance_id: Option<Str> [3.., null 3..],
        client_id: Str [0..],
        client_host: Str [0..],
        rebalance_timeout: i32 [1..] = -1,
        session_timeout: i32 [0..],
        subscription: Bytes [0..],
        assignment: Bytes [0..],
    }
}

/// What a record is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    Offset(OffsetCommitKey),
    Group(GroupMetadataKey),
    ConsumerGroup(GroupKey),
    /// Written by Kafka before 4.1; only ever deleted here.
    PartitionMetadata(GroupKey),
    Member(MemberKey),
    TargetEpoch(GroupKey),
    Target(MemberKey),
    Current(MemberKey),
    Pattern(PatternKey),
    /// Of a kind that is not known here.
    Other(i16),
}

impl Key {
    pub fn decode(bytes: Bytes) -> Result<Key, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        Ok(match i16::read(&mut decoder, 0)? {
            0 | OFFSET => Key::Offset(Wire::read(&mut decoder, 0)?),
            GROUP => Key::Group(Wire::read(&mut decoder, 0)?),
            CONSUMER_GROUP => Key::ConsumerGroup(Wire::read(&mut decoder, 0)?),
            PARTITION_METADATA => Key::PartitionMetadata(Wire::read(&mut decoder, 0)?),
            MEMBER => Key::Member(Wire::read(&mut decoder, 0)?),
            TARGET_EPOCH => Key::TargetEpoch(Wire::read(&mut decoder, 0)?),
            TARGET => Key::Target(Wire::read(&mut decoder, 0)?),
            CURRENT => Key::Current(Wire::read(&mut decoder, 0)?),
            PATTERN => Key::Pattern(Wire::read(&mut decoder, 0)?),
            other => Key::Other(other),
        })
    }

    /// # Panics
    /// On a kind that is not known here.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        match self {
            Key::Offset(key) => encode(OFFSET, key, 0, false),
            Key::Group(key) => encode(GROUP, key, 0, false),
            Key::ConsumerGroup(key) => encode(CONSUMER_GROUP, key, 0, false),
            Key::PartitionMetadata(key) => encode(PARTITION_METADATA, key, 0, false),
            Key::Member(key) => encode(MEMBER, key, 0, false),
            Key::TargetEpoch(key) => encode(TARGET_EPOCH, key, 0, false),
            Key::Target(key) => encode(TARGET, key, 0, false),
            Key::Current(key) => encode(CURRENT, key, 0, false),
            Key::Pattern(key) => encode(PATTERN, key, 0, false),
            Key::Other(kind) => unreachable!("records of kind {kind} are never written"),
        }
    }
}

impl OffsetCommitValue {
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        decode(bytes, VALUE_VERSION_MAX, FLEXIBLE_VALUE_VERSION)
    }

    /// Version 1 if the client set an expiry of its own, as Kafka does; else 3.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        encode(self.version(), self, self.version(), false)
    }

    fn version(&self) -> i16 {
        if self.expire_timestamp >= 0 { 1 } else { VALUE_VERSION }
    }
}

impl GroupMetadataValue {
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        decode(bytes, VALUE_VERSION_MAX, FLEXIBLE_VALUE_VERSION)
    }

    #[must_use]
    pub fn encode(&self) -> Bytes {
        encode(VALUE_VERSION, self, VALUE_VERSION, false)
    }
}

fn decode<T: Wire>(bytes: Bytes, version_max: i16, flexible_from: i16) -> Result<T, DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let version = i16::read(&mut decoder, 0)?;
    if !(0..=version_max).contains(&version) {
        return Err(Fault::UnknownVersion.into());
    }
    decoder.set_flexible(version >= flexible_from);
    T::read(&mut decoder, version)
}

fn encode<T: Wire>(prefix: i16, value: &T, version: i16, flexible: bool) -> Bytes {
    let mut encoder = Encoder::with_capacity(RECORD_BYTES_GUESS);
    encode_into(&mut encoder, prefix, value, version, flexible);
    encoder.finish_contiguous()
}

fn encode_into<T: Wire>(
    encoder: &mut Encoder,
    prefix: i16,
    value: &T,
    version: i16,
    flexible: bool,
) {
    encoder.set_flexible(false);
    prefix.write(encoder, 0);
    encoder.set_flexible(flexible);
    value.write(encoder, version);
}

/// Writes the committed offsets of one decision into one piece of memory.
#[derive(Debug)]
pub struct OffsetWriter {
    encoder: Encoder,
}

impl OffsetWriter {
    /// With room for so many offsets.
    #[must_use]
    pub fn new(offsets: usize) -> Self {
        let bytes = (offsets * 2 * RECORD_BYTES_GUESS).min(WRITER_BYTES_MAX);
        Self { encoder: Encoder::with_capacity(bytes) }
    }

    /// The bytes of a record.
    pub fn write(&mut self, key: &OffsetCommitKey, value: &OffsetCommitValue) -> (Bytes, Bytes) {
        encode_into(&mut self.encoder, OFFSET, key, 0, false);
        let key = self.encoder.split();
        let version = value.version();
        encode_into(&mut self.encoder, version, value, version, false);
        (key, self.encoder.split())
    }

    /// The key of a record that deletes.
    pub fn write_key(&mut self, key: &OffsetCommitKey) -> Bytes {
        encode_into(&mut self.encoder, OFFSET, key, 0, false);
        self.encoder.split()
    }
}

/// What a key or a value of the usual size takes.
const RECORD_BYTES_GUESS: usize = 96;
const WRITER_BYTES_MAX: usize = 1 << 20;
const OFFSET: i16 = 1;
const GROUP: i16 = 2;
const CONSUMER_GROUP: i16 = 3;
const PARTITION_METADATA: i16 = 4;
const MEMBER: i16 = 5;
const TARGET_EPOCH: i16 = 6;
const TARGET: i16 = 7;
const CURRENT: i16 = 8;
const PATTERN: i16 = 16;
const VALUE_VERSION: i16 = 3;
const VALUE_VERSION_MAX: i16 = 4;
const FLEXIBLE_VALUE_VERSION: i16 = 4;
