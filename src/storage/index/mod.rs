//! The two indexes of one segment, in Kafka's on-disk format.
//!
//! Law: an index is sparse and derived. Each offset entry names a batch by its last offset and the
//! position of its first byte; each time entry names a batch by its last offset and its largest
//! timestamp, which is larger than that of every batch before it. Lookups answer with a floor: the
//! scan that follows always starts at a batch, at or before the wanted one. What does not hold is
//! `IndexDamage`, and the caller rebuilds by handing in the batches again.
//!
//! An entry is written when more than `interval_bytes` of batches lie behind the last entry, so a
//! sealed index depends only on the batches and the interval: replaying from `resume_position` on
//! after a truncation or a start gives the very index that was there.
//!
//! Absent: files. `to_file` and `parse` convert, the segment writes and reads.

mod offset_index;
mod segment_index;
mod time_index;

pub use offset_index::{OffsetEntry, OffsetIndex};
pub use segment_index::{IndexFiles, IndexPolicy, IndexedBatch, ScanStart, SegmentIndex};
pub use time_index::{TimeEntry, TimeIndex};

use thiserror::Error;

/// What is wrong with an index file. Every kind asks for a rebuild, none loses data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IndexDamage {
    #[error("{bytes} bytes is not a whole number of {entry_bytes}-byte entries")]
    Ragged { bytes: usize, entry_bytes: usize },
    #[error("entry {entry} does not rise above the one before it")]
    NotRising { entry: usize },
    #[error("entry {entry} names an offset outside the segment")]
    OutsideOffsets { entry: usize },
    #[error("entry {entry} names a position behind the log's end")]
    OutsideLog { entry: usize },
}

/// Offsets in an index are relative to the segment's base offset and fit 31 bits.
fn relative(base_offset: i64, offset: i64) -> u32 {
    let relative = offset - base_offset;
    assert!(
        (0..=i64::from(i32::MAX)).contains(&relative),
        "{offset} is outside {base_offset}+2^31"
    );
    relative as u32
}
