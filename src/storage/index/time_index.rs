//! Time index: which batch first reached which timestamp.
//!
//! Law: timestamps rise strictly, offsets rise strictly: an entry is written only when the largest
//! timestamp so far grew.
//!
//! ```text
//! 0  8  largest timestamp up to and in the batch, milliseconds, big endian
//! 8  4  last offset of the batch that has it, relative to the segment's base offset, big endian
//! ```

use super::{IndexDamage, relative};

/// A batch whose largest timestamp is larger than that of every batch before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeEntry {
    /// Milliseconds since 1970.
    pub timestamp: i64,
    /// The batch's last offset.
    pub last_offset: i64,
}

/// The time index of one segment, in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeIndex {
    base_offset: i64,
    timestamps: Vec<i64>,
    relatives: Vec<u32>,
}

impl TimeIndex {
    pub const ENTRY_BYTES: usize = 12;

    pub fn new(base_offset: i64) -> Self {
        TimeIndex { base_offset, timestamps: Vec::new(), relatives: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    pub fn entries(&self) -> impl Iterator<Item = TimeEntry> + '_ {
        (0..self.len()).map(|number| self.entry(number))
    }

    pub fn last(&self) -> Option<TimeEntry> {
        self.len().checked_sub(1).map(|number| self.entry(number))
    }

    /// Adds `entry` when its timestamp is larger than the last one.
    pub fn maybe_append(&mut self, entry: TimeEntry) {
        if let Some(last) = self.last() {
            if entry.timestamp <= last.timestamp {
                return;
            }
            assert!(entry.last_offset > last.last_offset, "{entry:?} lies before {last:?}");
        }
        self.timestamps.push(entry.timestamp);
        self.relatives.push(relative(self.base_offset, entry.last_offset));
    }

    /// The last entry whose timestamp is smaller than or equal to `timestamp`.
    pub fn floor(&self, timestamp: i64) -> Option<TimeEntry> {
        let after = self.timestamps.partition_point(|known| *known <= timestamp);
        after.checked_sub(1).map(|floor| self.entry(floor))
    }

    /// Forgets the batches that end at `offset` or later.
    pub fn truncate_to(&mut self, offset: i64) {
        let wanted = offset.saturating_sub(self.base_offset);
        let kept = self.relatives.partition_point(|relative| i64::from(*relative) < wanted);
        self.timestamps.truncate(kept);
        self.relatives.truncate(kept);
    }

    /// The entries from number `from` on, as they stand in the file.
    pub fn to_file(&self, from: usize) -> Vec<u8> {
        let mut file = Vec::with_capacity((self.len() - from) * Self::ENTRY_BYTES);
        for (timestamp, relative) in self.timestamps[from..].iter().zip(&self.relatives[from..]) {
            file.extend_from_slice(&timestamp.to_be_bytes());
            file.extend_from_slice(&relative.to_be_bytes());
        }
        file
    }

    /// Reads a whole time index file.
    pub fn parse(base_offset: i64, file: &[u8]) -> Result<Self, IndexDamage> {
        let (chunks, rest) = file.as_chunks::<{ Self::ENTRY_BYTES }>();
        if !rest.is_empty() {
            let entry_bytes = Self::ENTRY_BYTES;
            return Err(IndexDamage::Ragged { bytes: file.len(), entry_bytes });
        }
        let mut index = TimeIndex::new(base_offset);
        for (number, [t0, t1, t2, t3, t4, t5, t6, t7, r0, r1, r2, r3]) in
            chunks.iter().copied().enumerate()
        {
            let timestamp = i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
            let relative = u32::from_be_bytes([r0, r1, r2, r3]);
            if relative > i32::MAX as u32 {
                return Err(IndexDamage::OutsideOffsets { entry: number });
            }
            let before = index.timestamps.last().zip(index.relatives.last());
            if before.is_some_and(|(ts, rel)| *ts >= timestamp || *rel >= relative) {
                return Err(IndexDamage::NotRising { entry: number });
            }
            index.timestamps.push(timestamp);
            index.relatives.push(relative);
        }
        Ok(index)
    }

    fn entry(&self, number: usize) -> TimeEntry {
        TimeEntry {
            timestamp: self.timestamps[number],
            last_offset: self.base_offset + i64::from(self.relatives[number]),
        }
    }
}
