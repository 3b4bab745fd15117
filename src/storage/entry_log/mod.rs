//! Opaque, CRC-framed, durable entries for the metadata quorum.
