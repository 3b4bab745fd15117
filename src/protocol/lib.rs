//! The Kafka wire protocol as values: what travels between a client and a broker, and nothing else.
//!
//! Laws of this crate:
//! - Pure. No I/O, no clock, no randomness; the same bytes always give the same value.
//! - Bounded. Whatever a peer sends, decoding ends after work in proportion to the bytes received;
//!   no count or length is believed before it was compared with the bytes that are really there.
//! - Zero copy where it counts. Strings, byte fields and record batches are slices of the frame
//!   they came in, and record batches leave as slices of whatever buffer holds them.
//!
//! Absent on purpose: what a request means. That is decided by those who import this crate.

#![forbid(unsafe_code)]

pub mod batch;
pub mod consumer_protocol;
pub mod error;
pub mod group_records;
pub mod header;
pub mod ids;
pub mod messages;
pub mod str;
pub mod uuid;
pub mod versions;
pub mod wire;

pub use error::ErrorCode;
pub use header::{RequestHeader, ResponseHeader};
pub use ids::{HostId, LeaderEpoch, NodeId, Offset, ProducerEpoch, ProducerId, SlotIndex, TopicId};
pub use str::Str;
pub use uuid::Uuid;
pub use versions::{ApiKey, ApiSet, ApiSpec, VersionRange};
pub use wire::{DecodeError, Decoder, Encoder, Fault, Message, Records};
