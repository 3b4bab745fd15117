//! Segments of a log: the file that is written and those that are sealed.
//!
//! Law: a segment holds the batches from its base offset to the next segment's; positions below
//! `size` hold batches, behind it only zeros and the mark of the last commit. A sealed segment's
//! file ends with its last batch.

mod chain;
pub mod register;
mod trailer;

pub use chain::{Chain, ChainBreak};
pub use register::{IndexSums, REGISTER_FILE_NAME, RegisteredSegment};
pub use trailer::{TRAILER_BYTES, Trailer, TrailerSalt, blocks_with_trailer, ends_like_a_mark};

use std::rc::Rc;

use crate::index::{SegmentIndex, TimeEntry};

/// Files are written in whole blocks of this many bytes.
pub const BLOCK: usize = runtime::file::ALIGNMENT;
/// No batch may end behind this position: positions in the indexes are 31 bits.
pub const SEGMENT_BYTES_MAX: u64 = i32::MAX as u64;

/// A segment that only reads and retention look at.
pub struct SealedSegment {
    pub base_offset: i64,
    /// Bytes of its batches.
    pub size: u64,
    /// Loaded when first needed, dropped under pressure.
    pub index: Option<Rc<SegmentIndex>>,
    /// Known once the index was loaded; kept when the index goes.
    pub largest: Largest,
    /// What its index files must be; without them the index is made again.
    pub sums: Option<IndexSums>,
    /// False until the file has been cut, its indexes written and both made durable.
    pub finished: bool,
}

impl SealedSegment {
    /// A segment that a start found finished.
    pub fn found(
        base_offset: i64,
        size: u64,
        registered: Option<&RegisteredSegment>,
    ) -> SealedSegment {
        SealedSegment {
            base_offset,
            size,
            index: None,
            largest: registered.map_or(Largest::Unread, |known| known.largest),
            sums: registered.map(|known| known.sums),
            finished: true,
        }
    }

    /// What the register says of it, once all of it is known.
    pub fn registered(&self) -> Option<RegisteredSegment> {
        let SealedSegment { base_offset, size, largest, .. } = *self;
        let sums = self.sums.filter(|_| self.finished && largest != Largest::Unread)?;
        Some(RegisteredSegment { base_offset, size, largest, sums })
    }
}

/// The largest timestamp of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Largest {
    /// The time index has not been read yet.
    Unread,
    /// None of its batches has a timestamp.
    None,
    Known(TimeEntry),
}

impl Largest {
    pub fn of(index: &SegmentIndex) -> Largest {
        index.largest_timestamp().map_or(Largest::None, Largest::Known)
    }
}

/// The segment that grows.
pub struct ActiveSegment {
    pub base_offset: i64,
    /// Bytes of its batches, appended ones included.
    pub size: u64,
    /// Length of its file, allocated and durable. 0 as long as there is no file.
    pub allocated: u64,
    /// Whether its file exists, by name and durably.
    pub exists: bool,
    /// None after a clean start until someone needs it.
    pub index: Option<SegmentIndex>,
    /// How much of the index is in its files.
    pub index_flushed: IndexFlushed,
    /// When the segment is old: `segment.ms` counts from the largest timestamp of its first
    /// batch, or from its creation where that batch has none.
    pub rolls_from: RollsFrom,
    /// What `segment.jitter.ms` takes off `segment.ms` for this segment.
    pub jitter_ms: i64,
}

/// Entries of the two indexes that are in their files already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFlushed {
    pub offset_entries: usize,
    pub time_entries: usize,
    pub sums: IndexSums,
}

/// Where the age of the active segment counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollsFrom {
    /// After a start: the first batch has not been read yet.
    Unread,
    /// Broker time, milliseconds: no batch with a timestamp yet.
    Created(i64),
    /// Record time, milliseconds.
    FirstBatch(i64),
}

impl ActiveSegment {
    /// A segment without a file or batches.
    pub fn empty(base_offset: i64, index: SegmentIndex, now_ms: i64, jitter_ms: i64) -> Self {
        ActiveSegment {
            base_offset,
            size: 0,
            allocated: 0,
            exists: false,
            index: Some(index),
            index_flushed: IndexFlushed::default(),
            rolls_from: RollsFrom::Created(now_ms),
            jitter_ms,
        }
    }

    /// A batch was placed at `position`.
    pub fn note_first(&mut self, position: u64, max_timestamp: i64) {
        if position == 0 && max_timestamp >= 0 {
            self.rolls_from = RollsFrom::FirstBatch(max_timestamp);
        }
    }

    /// How long the segment has waited to be rolled, seen from a batch with `max_timestamp`.
    pub fn age_ms(&self, now_ms: i64, max_timestamp: i64) -> i64 {
        match self.rolls_from {
            RollsFrom::FirstBatch(first) if max_timestamp >= 0 => {
                max_timestamp.saturating_sub(first)
            }
            RollsFrom::FirstBatch(first) => now_ms.saturating_sub(first),
            RollsFrom::Created(created) => now_ms.saturating_sub(created),
            RollsFrom::Unread => 0,
        }
    }
}

/// The file length to allocate next so that `needed` bytes fit: the file doubles, from 64 KiB up,
/// in steps of at most 16 MiB, and does not go past `segment_bytes` without need.
pub fn allocation_target(allocated: u64, needed: u64, segment_bytes: u64) -> u64 {
    let step = allocated.clamp(ALLOCATION_STEP_MIN, ALLOCATION_STEP_MAX);
    let wanted = allocated.saturating_add(step).min(segment_bytes.next_multiple_of(BLOCK as u64));
    let target = wanted.max(needed).next_multiple_of(BLOCK as u64);
    assert!(target >= needed && target.is_multiple_of(BLOCK as u64));
    target
}

/// Space behind the last batch below which the next step is allocated in the background.
pub fn allocation_margin(allocated: u64) -> u64 {
    allocated.clamp(ALLOCATION_STEP_MIN, ALLOCATION_STEP_MAX) / 2
}

const ALLOCATION_STEP_MIN: u64 = 64 << 10;
const ALLOCATION_STEP_MAX: u64 = 16 << 20;
