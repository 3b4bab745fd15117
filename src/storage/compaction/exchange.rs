//! A cleaned segment takes the place of those it was made from: the part that a crash may cut.
//!
//! Law: the new files lie beside the old ones, whole and durable, before the *order* is written;
//! from the moment the order is durable the exchange happens, whatever crashes: a start finishes
//! it before it looks at the log. Without an order the new files are leftovers and go. The order
//! goes only when everything it asks for is durable, so it is never followed twice over newer
//! files.
//!
//! ```text
//! <base>.log.cleaned, .index.cleaned, .timeindex.cleaned   written, synced, names synced
//! segment-exchange                                         the order: written atomically
//! <base>.log                                               .cleaned renamed over it
//! <base>.index, .timeindex                                 likewise
//! files of the other segments                              renamed, names synced; removed later
//! sealed-segments                                          written anew
//! segment-exchange                                         removed, names synced
//! ```
//!
//! The order file holds the same sealed payload (see `envelope`) twice, each padded with zeros to
//! 4096 bytes, so that damage to one leaves the other. The payload, big endian:
//! ```text
//! 16     topic id
//! 4      partition
//! 8      base offset of the new segment
//! 8      bytes of its batches
//! 8 + 8  its largest timestamp and the last offset of that batch; −1 when it has none
//! 4 + 4  CRC-32C of its two index files
//! 4      number of segments that it replaces, itself included
//! 8 × n  their base offsets, rising
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use runtime::file::FsError;

use crate::directory::{Identity, SegmentFile};
use crate::envelope::{self, EnvelopeError, PayloadReader, Purpose};
use crate::index::TimeEntry;
use crate::removals::set_aside;
use crate::segment::{IndexSums, Largest, REGISTER_FILE_NAME, RegisteredSegment, register};

/// Name of the order file in the partition's directory.
pub const EXCHANGE_FILE_NAME: &str = "segment-exchange";
/// Behind the name of a file that is to take the place of another.
pub const CLEANED_SUFFIX: &str = ".cleaned";

/// One new segment for several old ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub identity: Identity,
    pub segment: RegisteredSegment,
    /// Base offsets of the old ones; the first is the new one's.
    pub replaced: Vec<i64>,
}

/// Why an exchange that was begun cannot be finished.
#[derive(Debug)]
pub enum Unfinished {
    Io(FsError),
    Order(EnvelopeError),
    /// The new segment is not what the order says.
    Length {
        base: i64,
        expected: u64,
        found: u64,
    },
}

impl From<FsError> for Unfinished {
    fn from(error: FsError) -> Unfinished {
        Unfinished::Io(error)
    }
}

impl Exchange {
    pub fn to_file(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        payload.extend_from_slice(&self.identity.topic_id.0);
        payload.extend_from_slice(&self.identity.partition.to_be_bytes());
        payload.extend_from_slice(&self.segment.base_offset.to_be_bytes());
        payload.extend_from_slice(&self.segment.size.to_be_bytes());
        let (timestamp, last_offset) = match self.segment.largest {
            Largest::Known(entry) => (entry.timestamp, entry.last_offset),
            Largest::None | Largest::Unread => (-1, -1),
        };
        payload.extend_from_slice(&timestamp.to_be_bytes());
        payload.extend_from_slice(&last_offset.to_be_bytes());
        payload.extend_from_slice(&self.segment.sums.offsets.to_be_bytes());
        payload.extend_from_slice(&self.segment.sums.times.to_be_bytes());
        payload.extend_from_slice(&(self.replaced.len() as u32).to_be_bytes());
        for base in &self.replaced {
            payload.extend_from_slice(&base.to_be_bytes());
        }
        let mut file = envelope::seal(PURPOSE, &payload);
        file.resize(file.len().next_multiple_of(COPY_BYTES), 0);
        file.extend_from_within(..);
        file
    }

    pub fn from_file(file: &[u8]) -> Result<Exchange, EnvelopeError> {
        let copies = file.split_at_checked(file.len() / 2);
        let (first, second) = copies.unwrap_or((file, &[]));
        Exchange::from_copy(first).or_else(|why| match why {
            EnvelopeError::Newer { .. } => Err(why),
            _ => Exchange::from_copy(second),
        })
    }

    fn from_copy(copy: &[u8]) -> Result<Exchange, EnvelopeError> {
        // Zeros follow: how long the sealed part is stands in its head.
        let length = copy.get(8..16).and_then(|bytes| bytes.try_into().ok());
        let length = length.map_or(0, u64::from_be_bytes).saturating_add(FRAME_BYTES);
        let sealed = copy.get(..length.min(copy.len() as u64) as usize).unwrap_or(copy);
        let (_, payload) = envelope::open(PURPOSE, sealed)?;
        let mut reader = PayloadReader::new(payload);
        let mut topic_id = [0; 16];
        for byte in &mut topic_id {
            *byte = reader.u8()?;
        }
        let partition = reader.i32()?;
        let (base_offset, size) = (reader.i64()?, reader.u64()?);
        let (timestamp, last_offset) = (reader.i64()?, reader.i64()?);
        let largest = match last_offset {
            -1 => Largest::None,
            last_offset => Largest::Known(TimeEntry { timestamp, last_offset }),
        };
        let sums = IndexSums { offsets: reader.u32()?, times: reader.u32()? };
        let count = reader.u32()? as usize;
        if reader.remaining() != count * 8 {
            return Err(EnvelopeError::Payload { reason: "the number of segments is wrong" });
        }
        let mut replaced = Vec::with_capacity(count);
        for _ in 0..count {
            replaced.push(reader.i64()?);
        }
        reader.finish()?;
        let rises = replaced.is_sorted_by(|before, after| before < after);
        if replaced.first() != Some(&base_offset) || !rises {
            return Err(EnvelopeError::Payload { reason: "the segments are not in order" });
        }
        let identity = Identity { topic_id: protocol::Uuid(topic_id), partition };
        let segment = RegisteredSegment { base_offset, size, largest, sums };
        Ok(Exchange { identity, segment, replaced })
    }

    /// The new indexes take their places, and the old segments' files lose their names; durable
    /// when it returns. Each step may have been done already.
    /// Gives what is to be removed now.
    pub async fn finish_files(&self, dir: &Path) -> Result<Vec<PathBuf>, FsError> {
        let base = self.segment.base_offset;
        for file in [SegmentFile::OffsetIndex, SegmentFile::TimeIndex] {
            take_place(dir, &file.name(base)).await?;
        }
        runtime::reached("exchange: indexes renamed");
        let mut renamed = Vec::new();
        for base in &self.replaced[1..] {
            for file in SegmentFile::ALL {
                renamed.extend(set_aside(dir, &file.name(*base)).await?);
            }
        }
        runtime::reached("exchange: old segments renamed");
        runtime::fs::sync_dir(dir).await?;
        Ok(renamed)
    }

    /// The new batches take the place of the first segment's.
    pub async fn rename_batches(&self, dir: &Path) -> Result<(), FsError> {
        take_place(dir, &SegmentFile::Log.name(self.segment.base_offset)).await
    }

    /// The register's entries, when the exchange is done.
    fn registered(&self, before: Vec<RegisteredSegment>) -> Vec<RegisteredSegment> {
        let mut after = before;
        after.retain(|known| !self.replaced.contains(&known.base_offset));
        let at = after.partition_point(|known| known.base_offset < self.segment.base_offset);
        after.insert(at, self.segment);
        after
    }
}

/// The order is durable when this returns: there is no way back.
pub async fn order(dir: &Path, exchange: &Exchange) -> Result<(), FsError> {
    runtime::fs::write_atomic(dir.join(EXCHANGE_FILE_NAME), &exchange.to_file()).await
}

/// What is known of the sealed segments. Without room for it nothing is: a start finds out then.
pub async fn write_register(dir: &Path, segments: &[RegisteredSegment]) -> Result<(), FsError> {
    let path = dir.join(REGISTER_FILE_NAME);
    match runtime::fs::write_atomic(&path, &register::to_file(segments)).await {
        Err(error) if error.is_full() => match runtime::fs::remove_file(path).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => runtime::fs::sync_dir(dir).await,
        },
        written => written,
    }
}

/// Everything that the order asks for is durable: it goes.
pub async fn close_order(dir: &Path) -> Result<(), FsError> {
    runtime::fs::remove_file(dir.join(EXCHANGE_FILE_NAME)).await?;
    runtime::reached("exchange: order removed");
    runtime::fs::sync_dir(dir).await
}

/// Finishes what a crash cut short, if there is anything. True when there was.
pub async fn finish(dir: &Path, identity: Identity) -> Result<bool, Unfinished> {
    let file = match runtime::fs::read(dir.join(EXCHANGE_FILE_NAME)).await {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let exchange = Exchange::from_file(&file).map_err(Unfinished::Order)?;
    if exchange.identity != identity {
        // Of another life of the directory: whose that is, is looked at next.
        return Ok(false);
    }
    // A killed process may have left an order that only the kernel knows.
    runtime::fs::sync_dir(dir).await?;
    exchange.rename_batches(dir).await?;
    let RegisteredSegment { base_offset: base, size: expected, .. } = exchange.segment;
    let name = SegmentFile::Log.name(base);
    let entries = runtime::fs::list(dir).await?;
    let found = entries.iter().find(|entry| entry.name == name).map_or(0, |entry| entry.len);
    if found != expected {
        return Err(Unfinished::Length { base, expected, found });
    }
    runtime::reached("exchange: taken up by a start");
    exchange.finish_files(dir).await?;
    let path = dir.join(REGISTER_FILE_NAME);
    let before = match runtime::fs::read(path).await {
        Ok(file) => register::from_file(&file).unwrap_or_default(),
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    write_register(dir, &exchange.registered(before)).await?;
    close_order(dir).await?;
    Ok(true)
}

/// `<name>.cleaned` becomes `<name>`, unless it has already.
async fn take_place(dir: &Path, name: &str) -> Result<(), FsError> {
    let from = dir.join(format!("{name}{CLEANED_SUFFIX}"));
    match runtime::fs::rename(&from, dir.join(name)).await {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

const PURPOSE: Purpose = Purpose { letters: *b"CTSX", version: 1 };
const COPY_BYTES: usize = 4096;
/// What an envelope adds to its payload.
const FRAME_BYTES: u64 = 20;
