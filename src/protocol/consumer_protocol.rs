//! What members of protocol type "consumer" say to each other through the classic protocol: their
//! subscription, and the assignment that the leader makes.
//!
//! A 16-bit version, then the fields. A newer version than the last known one is read as that one,
//! because versions only ever add fields at the end; whatever follows is left alone.

use bytes::Bytes;

use crate::wire::Wire;
use crate::wire::declare::structure;
use crate::{DecodeError, Decoder, Encoder, Fault, Str};

structure! {
    Subscription {
        topics: Vec<Str> [0..],
        user_data: Option<Bytes> [0.., null 0..],
        owned_partitions: Vec<NamedPartitions> [1..],
        generation_id: i32 [2..] = -1,
        rack_id: Option<Str> [3.., null 3..],
    }
}

structure! {
    Assignment {
        assigned_partitions: Vec<NamedPartitions> [0..],
        user_data: Option<Bytes> [0.., null 0..],
    }
}

structure! {
    NamedPartitions {
        topic: Str [0..],
        partitions: Vec<i32> [0..],
    }
}

impl Subscription {
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let (mut decoder, version) = begin(bytes)?;
        Wire::read(&mut decoder, version)
    }

    #[must_use]
    pub fn encode(&self, version: i16) -> Bytes {
        encode(self, version)
    }

    /// Which version a subscription is of.
    pub fn version_of(bytes: Bytes) -> Result<i16, DecodeError> {
        Ok(begin(bytes)?.1)
    }
}

impl Assignment {
    pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
        let (mut decoder, version) = begin(bytes)?;
        Wire::read(&mut decoder, version)
    }

    #[must_use]
    pub fn encode(&self, version: i16) -> Bytes {
        encode(self, version)
    }
}

fn begin(bytes: Bytes) -> Result<(Decoder, i16), DecodeError> {
    let mut decoder = Decoder::new(bytes);
    let version = i16::read(&mut decoder, 0)?;
    if version < 0 {
        return Err(Fault::UnknownVersion.into());
    }
    Ok((decoder, version.min(VERSION_MAX)))
}

fn encode<T: Wire>(value: &T, version: i16) -> Bytes {
    let mut encoder = Encoder::new();
    version.write(&mut encoder, 0);
    value.write(&mut encoder, version);
    encoder.finish_contiguous()
}

const VERSION_MAX: i16 = 3;
