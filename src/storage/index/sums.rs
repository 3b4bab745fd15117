//! The checksums of index files: of a sealed segment's, in a small file beside them; of the one
//! that grows, in the log's checkpoint.
//!
//! Law: Kafka's index format has no checksum, and a wrong entry can look right: a lookup by time
//! would miss records, retention would take a segment for old. So an index file is believed only
//! when its bytes are those that were summed; anything else asks for a rebuild from the batches.
//!
//! The payload of the file of sums (see `envelope`), big endian:
//! ```text
//! 8      bytes of the segment's batches
//! 8 + 4  bytes of the offset index, their CRC-32C
//! 8 + 4  bytes of the time index, their CRC-32C
//! ```

use super::{IndexFiles, OffsetIndex, SegmentIndex, TimeIndex};
use crate::envelope::{self, EnvelopeError, PayloadReader, Purpose};

/// What the index files of a sealed segment must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSums {
    log_bytes: u64,
    offsets: Sum,
    times: Sum,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum {
    bytes: u64,
    crc: u32,
}

impl Sum {
    fn of(bytes: &[u8]) -> Sum {
        Sum { bytes: bytes.len() as u64, crc: crc32c::crc32c(bytes) }
    }
}

impl IndexSums {
    pub fn of(files: &IndexFiles<'_>) -> IndexSums {
        IndexSums {
            log_bytes: files.log_bytes,
            offsets: Sum::of(files.offsets),
            times: Sum::of(files.times),
        }
    }

    pub fn offsets_match(&self, file: &[u8]) -> bool {
        self.offsets == Sum::of(file)
    }

    pub fn times_match(&self, file: &[u8]) -> bool {
        self.times == Sum::of(file)
    }

    /// The file's bytes.
    pub fn to_file(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(32);
        payload.extend_from_slice(&self.log_bytes.to_be_bytes());
        for sum in [&self.offsets, &self.times] {
            payload.extend_from_slice(&sum.bytes.to_be_bytes());
            payload.extend_from_slice(&sum.crc.to_be_bytes());
        }
        envelope::seal(PURPOSE, &payload)
    }

    pub fn from_file(file: &[u8]) -> Result<IndexSums, EnvelopeError> {
        let (_, payload) = envelope::open(PURPOSE, file)?;
        let mut reader = PayloadReader::new(payload);
        let log_bytes = reader.u64()?;
        let offsets = Sum { bytes: reader.u64()?, crc: reader.u32()? };
        let times = Sum { bytes: reader.u64()?, crc: reader.u32()? };
        reader.finish()?;
        Ok(IndexSums { log_bytes, offsets, times })
    }
}

/// Entries of the two indexes that are in their files already, and the checksums of those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFlushed {
    pub offset_entries: u32,
    pub time_entries: u32,
    pub offset_crc: u32,
    pub time_crc: u32,
}

impl IndexFlushed {
    /// Both files hold all of `index`.
    pub fn all_of(index: &SegmentIndex) -> IndexFlushed {
        IndexFlushed::default().followed_by(&index.offsets().to_file(0), &index.times().to_file(0))
    }

    /// These entries were added to the files.
    pub fn followed_by(&self, offsets: &[u8], times: &[u8]) -> IndexFlushed {
        IndexFlushed {
            offset_entries: self.offset_entries + (offsets.len() / OffsetIndex::ENTRY_BYTES) as u32,
            time_entries: self.time_entries + (times.len() / TimeIndex::ENTRY_BYTES) as u32,
            offset_crc: crc32c::crc32c_append(self.offset_crc, offsets),
            time_crc: crc32c::crc32c_append(self.time_crc, times),
        }
    }

    pub fn offset_bytes(&self) -> usize {
        self.offset_entries as usize * OffsetIndex::ENTRY_BYTES
    }

    pub fn time_bytes(&self) -> usize {
        self.time_entries as usize * TimeIndex::ENTRY_BYTES
    }

    /// The entries that count of a file that may hold more; none when they are not those that
    /// were written.
    pub fn offsets_of<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        file.get(..self.offset_bytes()).filter(|bytes| crc32c::crc32c(bytes) == self.offset_crc)
    }

    pub fn times_of<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        file.get(..self.time_bytes()).filter(|bytes| crc32c::crc32c(bytes) == self.time_crc)
    }
}

const PURPOSE: Purpose = Purpose { letters: *b"CTIS", version: 1 };
