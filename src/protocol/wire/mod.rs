//! How messages become bytes and bytes become messages.
//!
//! A message is declared once, field by field, with the versions each field exists in (see
//! `declare.rs` for the notation); everything that touches bytes is derived from that. The types a
//! field can have each know their own encoding ([`Wire`]), and [`Decoder`] and [`Encoder`] know
//! whether the version at hand is a flexible one (KIP-482: compact lengths and tagged fields).

pub(crate) mod declare;
mod decoder;
mod encoder;
mod fields;
mod records;
mod varint;

use std::fmt::Debug;

use crate::versions::{ApiKey, VersionRange};

pub(crate) use declare::messages;
pub use decoder::{DecodeError, Decoder, Fault};
pub use encoder::Encoder;
pub(crate) use fields::{Nullable, Wire};
pub use records::Records;

/// A whole request or response body.
pub trait Message: Default + Clone + PartialEq + Debug {
    const KEY: ApiKey;
    /// The versions that can be decoded and encoded.
    const VERSIONS: VersionRange;

    /// Reads the body from the decoder's position on. Bytes behind it are left alone: Kafka
    /// serves requests with a tail.
    fn decode(decoder: &mut Decoder, version: i16) -> Result<Self, DecodeError>;

    /// Writes the body. Fields that the version does not have are left out, whatever they hold.
    ///
    /// # Panics
    /// If the version is not one of `VERSIONS`: which version to speak was agreed before.
    fn encode(&self, encoder: &mut Encoder, version: i16);
}
