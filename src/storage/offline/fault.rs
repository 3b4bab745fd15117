//! What can be wrong with a log, and where.

use std::fmt;
use std::path::PathBuf;

use protocol::batch::RecordError;
use thiserror::Error;

use crate::checkpoint::CheckpointError;
use crate::directory::IdentityError;
use crate::entry_log::EntryLogDamageKind;
use crate::envelope::EnvelopeError;
use crate::index::IndexDamage;
use crate::segment::ChainBreak;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: PathBuf,
    /// Byte of the file at which it shows.
    pub position: u64,
    /// Offset that the log has there, where that can be said.
    pub offset: Option<i64>,
    pub kind: FaultKind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: position {}", self.file.display(), self.position)?;
        if let Some(offset) = self.offset {
            write!(f, ", offset {offset}")?;
        }
        write!(f, ": {}", self.kind)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultKind {
    #[error("no batch stands here: {0}")]
    Batch(ChainBreak),
    #[error("the batch has leader epoch {found}, epoch {expected} is known for its offset")]
    Epoch { expected: i32, found: i32 },
    #[error("the batch's records cannot be read: {0}")]
    Record(RecordError),
    #[error("the batch cannot be decompressed: {0}")]
    Compressed(String),
    #[error("{count} records are declared for {offsets} offsets")]
    Count { count: i32, offsets: i64 },
    #[error("offsets {from} to {to} are missing")]
    OffsetsMissing { from: i64, to: i64 },
    #[error("the segment is missing")]
    SegmentMissing,
    #[error("the log ends here, its checkpoint says at position {expected}")]
    EndsElsewhere { expected: u64 },
    /// A crash cut a write short that nobody was told of: the next start removes it.
    #[error("{bytes} bytes of a write that was never finished")]
    Unfinished { bytes: u64 },
    #[error("{bytes} bytes behind the last batch: {reason}")]
    Behind { bytes: u64, reason: &'static str },
    /// After a crash: nothing is lost.
    #[error("the next {bytes} bytes of batches are in the journal of slot {slot} alone")]
    Journaled { slot: u32, bytes: u64 },
    /// A start found that they cannot be brought here.
    #[error("batches that only the journal had are missing: {reason}")]
    Undestaged { reason: String },
    #[error("the index file is missing")]
    IndexMissing,
    #[error("the index is damaged: {0}")]
    Index(IndexDamage),
    #[error("the index is not the one that was written")]
    IndexChanged,
    #[error("the entry for offset {last_offset} names no batch")]
    IndexEntry { last_offset: i64 },
    #[error(
        "the entry for timestamp {timestamp} is not the largest one up to offset {last_offset}"
    )]
    TimeEntry { timestamp: i64, last_offset: i64 },
    #[error("the largest timestamp of the segment, {timestamp}, has no entry")]
    LargestMissing { timestamp: i64 },
    #[error("the producer snapshot is damaged: {0}")]
    Producers(EnvelopeError),
    #[error("the producer snapshot that the checkpoint names is missing")]
    ProducersMissing,
    #[error("the snapshot ends at offset {found}, its name says {expected}")]
    ProducersName { expected: i64, found: i64 },
    #[error("the leader epochs are damaged: {0}")]
    Epochs(EnvelopeError),
    #[error("the file of leader epochs is missing")]
    EpochsMissing,
    #[error("the register of sealed segments is damaged: {0}")]
    Register(EnvelopeError),
    /// A crash cut an exchange of compacted segments short: the next start finishes it.
    #[error("an exchange of segments is not finished")]
    ExchangeUnfinished,
    #[error("the order to exchange segments is damaged: {0}")]
    Exchange(EnvelopeError),
    #[error("the identity is unusable: {0}")]
    Identity(IdentityError),
    #[error("the checkpoint is unusable: {0}")]
    Checkpoint(CheckpointError),
    #[error("the checkpoint belongs to another log")]
    ForeignCheckpoint,
    #[error("stray bytes in the checkpoint")]
    CheckpointStray,
    #[error("the quorum's log is damaged: {0}")]
    Entries(EntryLogDamageKind),
    #[error("the quorum's file is damaged: {0}")]
    Sealed(EnvelopeError),
}

impl FaultKind {
    /// True when records cannot be read or are gone: a start refuses the log, only a replica or
    /// `repair` helps. Everything else is made again from the batches.
    pub fn costs_records(&self) -> bool {
        matches!(
            self,
            FaultKind::Batch(_)
                | FaultKind::Epoch { .. }
                | FaultKind::Record(_)
                | FaultKind::Compressed(_)
                | FaultKind::Count { .. }
                | FaultKind::OffsetsMissing { .. }
                | FaultKind::SegmentMissing
                | FaultKind::EndsElsewhere { .. }
                | FaultKind::Behind { .. }
        )
    }

    /// True when the log cannot be opened before it is repaired.
    pub fn stops_start(&self) -> bool {
        self.costs_records()
            || matches!(
                self,
                FaultKind::Identity(_)
                    | FaultKind::Undestaged { .. }
                    | FaultKind::ForeignCheckpoint
                    | FaultKind::Exchange(_)
                    | FaultKind::Entries(_)
                    | FaultKind::Sealed(_)
            )
    }
}
