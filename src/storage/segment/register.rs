//! What is known of a log's sealed segments without opening their files.
//!
//! Law: a derived file. It is written after a segment's index files are durable and names their
//! checksums, so that a changed index is made again instead of believed, and a segment that lost
//! bytes is noticed. A segment that is missing here, or all of them, are looked at themselves.
//!
//! The payload of the sealed file (see `envelope`), big endian:
//! ```text
//! 4       number of segments
//! 40 × n  base offset (8), bytes of batches (8), largest timestamp (8), last offset of the batch
//!         that has it (8; −1 when no batch has a timestamp), CRC-32C of the offset index file (4)
//!         and of the time index file (4); base offsets rise
//! ```

use super::Largest;
use crate::envelope::{self, EnvelopeError, PayloadReader, Purpose};
use crate::index::TimeEntry;

/// The file's name in the partition's directory.
pub const REGISTER_FILE_NAME: &str = "sealed-segments";

/// Checksums of a segment's two index files, or of their first entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSums {
    pub offsets: u32,
    pub times: u32,
}

impl IndexSums {
    pub fn of(offsets: &[u8], times: &[u8]) -> IndexSums {
        IndexSums::default().and(offsets, times)
    }

    /// The sums when these entries have followed.
    pub fn and(self, offsets: &[u8], times: &[u8]) -> IndexSums {
        IndexSums {
            offsets: crc32c::crc32c_append(self.offsets, offsets),
            times: crc32c::crc32c_append(self.times, times),
        }
    }
}

/// A sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisteredSegment {
    pub base_offset: i64,
    pub size: u64,
    /// Never `Unread`.
    pub largest: Largest,
    pub sums: IndexSums,
}

/// The register file's bytes.
pub fn to_file(segments: &[RegisteredSegment]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(4 + segments.len() * ENTRY_BYTES);
    payload.extend_from_slice(&(segments.len() as u32).to_be_bytes());
    for segment in segments {
        let (timestamp, last_offset) = match segment.largest {
            Largest::Known(entry) => (entry.timestamp, entry.last_offset),
            Largest::None | Largest::Unread => (-1, -1),
        };
        payload.extend_from_slice(&segment.base_offset.to_be_bytes());
        payload.extend_from_slice(&segment.size.to_be_bytes());
        payload.extend_from_slice(&timestamp.to_be_bytes());
        payload.extend_from_slice(&last_offset.to_be_bytes());
        payload.extend_from_slice(&segment.sums.offsets.to_be_bytes());
        payload.extend_from_slice(&segment.sums.times.to_be_bytes());
    }
    envelope::seal(PURPOSE, &payload)
}

/// The segments that a register file names.
pub fn from_file(file: &[u8]) -> Result<Vec<RegisteredSegment>, EnvelopeError> {
    let (_, payload) = envelope::open(PURPOSE, file)?;
    let mut reader = PayloadReader::new(payload);
    let count = reader.u32()? as usize;
    if reader.remaining() != count * ENTRY_BYTES {
        return Err(EnvelopeError::Payload { reason: "the number of segments is wrong" });
    }
    let mut segments: Vec<RegisteredSegment> = Vec::with_capacity(count);
    for _ in 0..count {
        let (base_offset, size) = (reader.i64()?, reader.u64()?);
        let (timestamp, last_offset) = (reader.i64()?, reader.i64()?);
        let largest = match last_offset {
            -1 => Largest::None,
            last_offset => Largest::Known(TimeEntry { timestamp, last_offset }),
        };
        let sums = IndexSums { offsets: reader.u32()?, times: reader.u32()? };
        if segments.last().is_some_and(|last| last.base_offset >= base_offset) {
            return Err(EnvelopeError::Payload { reason: "the base offsets do not rise" });
        }
        segments.push(RegisteredSegment { base_offset, size, largest, sums });
    }
    reader.finish()?;
    Ok(segments)
}

const PURPOSE: Purpose = Purpose { letters: *b"CTSG", version: 1 };
const ENTRY_BYTES: usize = 40;
