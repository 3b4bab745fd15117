//! Both indexes of one segment, fed batch by batch.
//!
//! Law: `on_batch` sees every batch of the segment once, in order. A segment whose index is full
//! must roll before its next append; entries are never dropped to make room.

use super::{IndexDamage, OffsetEntry, OffsetIndex, TimeEntry, TimeIndex};

/// How dense and how large an index may be (`index.interval.bytes`, `segment.index.bytes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexPolicy {
    pub interval_bytes: u32,
    pub bytes_max: u32,
}

/// What the indexes need to know of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedBatch {
    pub last_offset: i64,
    /// Position of its first byte in the segment file.
    pub position: u32,
    pub size_bytes: u32,
    /// Milliseconds; negative when the batch has none.
    pub max_timestamp: i64,
}

/// Where a scan for an offset or a timestamp begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanStart {
    pub position: u32,
    /// Batches that end before this offset cannot be the answer.
    pub offset: i64,
}

/// The offset and the time index of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentIndex {
    base_offset: i64,
    policy: IndexPolicy,
    offsets: OffsetIndex,
    times: TimeIndex,
    /// Bytes of the batches at and behind the last offset entry.
    bytes_since_entry: u64,
    largest: Option<TimeEntry>,
}

impl SegmentIndex {
    pub fn new(base_offset: i64, policy: IndexPolicy) -> Self {
        SegmentIndex {
            base_offset,
            policy,
            offsets: OffsetIndex::new(base_offset),
            times: TimeIndex::new(base_offset),
            bytes_since_entry: 0,
            largest: None,
        }
    }

    /// The indexes of a segment that is there. Unless it is sealed, the batches from
    /// `resume_position` on must be handed to `on_batch` before the index is complete.
    pub fn parse(
        base_offset: i64,
        policy: IndexPolicy,
        files: IndexFiles<'_>,
    ) -> Result<Self, IndexDamage> {
        let offsets = OffsetIndex::parse(base_offset, files.offsets, files.log_bytes)?;
        let times = TimeIndex::parse(base_offset, files.times)?;
        let largest = times.last();
        Ok(SegmentIndex { base_offset, policy, offsets, times, bytes_since_entry: 0, largest })
    }

    /// The files were complete up to `log_bytes`, the largest timestamp included: nothing has to
    /// be handed in again.
    pub fn resume_at_end(&mut self, log_bytes: u64) {
        assert!(u64::from(self.resume_position()) <= log_bytes, "entries lie behind the log's end");
        self.bytes_since_entry = log_bytes - u64::from(self.resume_position());
    }

    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Bytes of all entries, in the files as in memory.
    pub fn bytes(&self) -> usize {
        self.offsets.len() * OffsetIndex::ENTRY_BYTES + self.times.len() * TimeIndex::ENTRY_BYTES
    }

    pub fn offsets(&self) -> &OffsetIndex {
        &self.offsets
    }

    pub fn times(&self) -> &TimeIndex {
        &self.times
    }

    /// The batch with the largest timestamp, the first of them when several share it.
    pub fn largest_timestamp(&self) -> Option<TimeEntry> {
        self.largest
    }

    /// Takes note of the next batch of the segment.
    pub fn on_batch(&mut self, batch: IndexedBatch) {
        let grew = self.largest.is_none_or(|largest| batch.max_timestamp > largest.timestamp);
        if batch.max_timestamp >= 0 && grew {
            self.largest =
                Some(TimeEntry { timestamp: batch.max_timestamp, last_offset: batch.last_offset });
        }
        if self.bytes_since_entry > u64::from(self.policy.interval_bytes) {
            let IndexedBatch { last_offset, position, .. } = batch;
            self.offsets.append(OffsetEntry { last_offset, position });
            self.times_catch_up();
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += u64::from(batch.size_bytes);
    }

    /// No batch follows: the time index ends with the segment's largest timestamp.
    pub fn seal(&mut self) {
        self.times_catch_up();
    }

    /// True when another entry might not fit: the segment has to roll. One time entry stays
    /// reserved for sealing.
    pub fn is_full(&self) -> bool {
        let bytes_max = self.policy.bytes_max as usize;
        let offsets_max = bytes_max / OffsetIndex::ENTRY_BYTES;
        let times_max = bytes_max / TimeIndex::ENTRY_BYTES;
        self.offsets.len() >= offsets_max || self.times.len() + 1 >= times_max
    }

    /// Where to look for the batch that holds `offset`.
    pub fn scan_start_for_offset(&self, offset: i64) -> ScanStart {
        let position = self.offsets.floor(offset).map_or(0, |entry| entry.position);
        ScanStart { position, offset }
    }

    /// Where to look for the first batch with a timestamp of `timestamp` or later. Only batches
    /// that end at `offset` or later need a look; none has one when the segment's largest
    /// timestamp is smaller.
    pub fn scan_start_for_timestamp(&self, timestamp: i64) -> ScanStart {
        // A batch strictly below the target is skipped safely; one that equals it is the answer.
        let floor = self.times.floor(timestamp.saturating_sub(1));
        let offset = floor.map_or(self.base_offset, |entry| entry.last_offset);
        self.scan_start_for_offset(offset)
    }

    /// The segment now ends before `offset`. Returns the position from which its remaining
    /// batches must be handed to `on_batch` again.
    pub fn truncate_to(&mut self, offset: i64) -> u32 {
        self.offsets.truncate_to(offset);
        self.times.truncate_to(offset);
        self.largest = self.times.last();
        self.bytes_since_entry = 0;
        self.resume_position()
    }

    /// The first batch that the offset index does not cover: the last one it names (replaying
    /// that one only counts its bytes), or the segment's first.
    pub fn resume_position(&self) -> u32 {
        self.offsets.last().map_or(0, |entry| entry.position)
    }

    fn times_catch_up(&mut self) {
        if let Some(largest) = self.largest {
            self.times.maybe_append(largest);
        }
    }
}

/// The bytes of a segment's two index files.
#[derive(Clone, Copy, Debug)]
pub struct IndexFiles<'a> {
    pub offsets: &'a [u8],
    pub times: &'a [u8],
    /// Length of the segment's log, without what was allocated ahead.
    pub log_bytes: u64,
}
