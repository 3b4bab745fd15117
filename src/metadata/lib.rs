//! What a cluster knows about itself, and how it decides.
//!
//! Law of this crate: deciding is pure. A decision takes an image, a request, the time and
//! randomness, and gives records and an answer; it changes nothing. Replaying committed records is
//! the only thing that changes an image. There is no I/O, no clock and no random source here.
//!
//! - `record`: what the metadata log says.
//! - `image`: its sum, immutable and shared; snapshots of it; what one slot must do between two.
//! - `configs`: every key of topics, brokers, groups and client metrics, and their values.
//! - `controller`: one file per decision.

#![forbid(unsafe_code)]

mod codec;
pub mod configs;
pub mod controller;
pub mod image;
pub mod record;
pub mod topic_name;

pub use codec::{CodecError, TEXT_BYTES_MAX};
pub use controller::{Context, Decision, Refusal};
pub use image::{Image, Node, Topic};
pub use record::{ConfigResource, MetadataRecord, Partition, Replica};
