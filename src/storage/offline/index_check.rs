//! A segment's index files against its batches, entry by entry, in one pass.
//!
//! Law: an entry is right when the batch it names is there and is what it says. Which batches
//! have an entry depends on the interval that was configured then, so missing entries are no
//! fault, but for the last time entry of a sealed segment.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::fault::{Fault, FaultKind};
use crate::index::{IndexDamage, IndexedBatch, OffsetEntry, OffsetIndex, TimeEntry, TimeIndex};

/// The entries of one segment that wait for their batch.
pub(super) struct IndexCheck {
    offsets_path: PathBuf,
    times_path: PathBuf,
    offsets: VecDeque<(u64, OffsetEntry)>,
    times: VecDeque<(u64, TimeEntry)>,
    times_known: bool,
    largest: Option<i64>,
    last_time: Option<i64>,
    changed: Vec<PathBuf>,
    faults: Vec<Fault>,
}

/// The bytes of an index file that count, or that it is not there.
pub(super) struct IndexFile {
    pub path: PathBuf,
    pub bytes: Option<Vec<u8>>,
    /// Whether it must be there.
    pub required: bool,
    /// Its checksum is known, and another one than its bytes have.
    pub changed: bool,
}

impl IndexCheck {
    pub fn new(base: i64, log_bytes: u64, offsets: IndexFile, times: IndexFile) -> IndexCheck {
        let mut check = IndexCheck {
            offsets_path: offsets.path.clone(),
            times_path: times.path.clone(),
            offsets: VecDeque::new(),
            times: VecDeque::new(),
            times_known: false,
            largest: None,
            last_time: None,
            changed: [&offsets, &times]
                .into_iter()
                .filter(|file| file.changed)
                .map(|file| file.path.clone())
                .collect(),
            faults: Vec::new(),
        };
        let parsed = check.parsed(&offsets, OffsetIndex::ENTRY_BYTES, |bytes| {
            OffsetIndex::parse(base, bytes, log_bytes)
        });
        if let Some(index) = parsed {
            check.offsets = positions(OffsetIndex::ENTRY_BYTES).zip(index.entries()).collect();
        }
        let parsed =
            check.parsed(&times, TimeIndex::ENTRY_BYTES, |bytes| TimeIndex::parse(base, bytes));
        if let Some(index) = parsed {
            check.times_known = true;
            check.last_time = index.last().map(|entry| entry.timestamp);
            check.times = positions(TimeIndex::ENTRY_BYTES).zip(index.entries()).collect();
        }
        check
    }

    fn parsed<T>(
        &mut self,
        file: &IndexFile,
        entry_bytes: usize,
        parse: impl FnOnce(&[u8]) -> Result<T, IndexDamage>,
    ) -> Option<T> {
        let Some(bytes) = &file.bytes else {
            if file.required {
                self.fault_in(file.path.clone(), 0, FaultKind::IndexMissing);
            }
            return None;
        };
        match parse(bytes) {
            Ok(index) => Some(index),
            Err(damage) => {
                let position = match damage {
                    IndexDamage::NotRising { entry }
                    | IndexDamage::OutsideOffsets { entry }
                    | IndexDamage::OutsideLog { entry } => entry * entry_bytes,
                    IndexDamage::Ragged { bytes, .. } => bytes - bytes % entry_bytes,
                };
                self.fault_in(file.path.clone(), position as u64, FaultKind::Index(damage));
                None
            }
        }
    }

    /// The next batch of the segment.
    pub fn on_batch(&mut self, batch: &IndexedBatch) {
        while let Some((at, entry)) = self.offsets.front().copied()
            && entry.position <= batch.position
        {
            self.offsets.pop_front();
            if (entry.position, entry.last_offset) != (batch.position, batch.last_offset) {
                self.offset_fault(at, &entry);
            }
        }
        let grew = batch.max_timestamp >= 0
            && self.largest.is_none_or(|largest| batch.max_timestamp > largest);
        while let Some((at, entry)) = self.times.front().copied()
            && entry.last_offset <= batch.last_offset
        {
            self.times.pop_front();
            let expected = (batch.max_timestamp, batch.last_offset);
            if !grew || (entry.timestamp, entry.last_offset) != expected {
                self.time_fault(at, &entry);
            }
        }
        if grew {
            self.largest = Some(batch.max_timestamp);
        }
    }

    /// Batches up to `position` and `offset` are damaged: their entries cannot be judged.
    pub fn skip_to(&mut self, position: u64, offset: i64) {
        while self.offsets.front().is_some_and(|(_, e)| u64::from(e.position) < position) {
            self.offsets.pop_front();
        }
        while let Some((_, entry)) = self.times.front()
            && entry.last_offset < offset
        {
            self.largest = self.largest.max(Some(entry.timestamp));
            self.times.pop_front();
        }
    }

    /// The segment ends; `sealed` when another one follows it.
    pub fn finish(mut self, sealed: bool) -> Vec<Fault> {
        while let Some((at, entry)) = self.offsets.pop_front() {
            self.offset_fault(at, &entry);
        }
        while let Some((at, entry)) = self.times.pop_front() {
            self.time_fault(at, &entry);
        }
        if let Some(timestamp) = self.largest.filter(|_| sealed && self.times_known)
            && self.last_time.is_none_or(|last| last < timestamp)
        {
            let path = self.times_path.clone();
            self.fault_in(path, 0, FaultKind::LargestMissing { timestamp });
        }
        // What no entry shows, the checksum does.
        for path in std::mem::take(&mut self.changed) {
            if !self.faults.iter().any(|fault| fault.file == path) {
                self.fault_in(path, 0, FaultKind::IndexChanged);
            }
        }
        self.faults
    }

    fn offset_fault(&mut self, at: u64, entry: &OffsetEntry) {
        let kind = FaultKind::IndexEntry { last_offset: entry.last_offset };
        self.fault_in(self.offsets_path.clone(), at, kind);
    }

    fn time_fault(&mut self, at: u64, entry: &TimeEntry) {
        let TimeEntry { timestamp, last_offset } = *entry;
        let kind = FaultKind::TimeEntry { timestamp, last_offset };
        self.fault_in(self.times_path.clone(), at, kind);
    }

    fn fault_in(&mut self, file: PathBuf, position: u64, kind: FaultKind) {
        self.faults.push(Fault { file, position, offset: None, kind });
    }
}

fn positions(entry_bytes: usize) -> impl Iterator<Item = u64> {
    (0..).map(move |number: u64| number * entry_bytes as u64)
}
