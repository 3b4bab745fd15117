//! Which leader epoch began at which offset of one partition.
//!
//! Law: both epochs and start offsets rise strictly from entry to entry. The cache answers for
//! offsets that exist; it never invents an epoch. The newest epoch lasts to the log's end.
//! Absent: the log end offset itself, which every question brings along.

mod checkpoint;

pub use checkpoint::EPOCHS_FILE_NAME;

/// `epoch` holds from `start_offset` on, until the next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    pub epoch: i32,
    pub start_offset: i64,
}

/// Where a leader epoch ended: what OffsetForLeaderEpoch answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch known that is not newer than the one asked for; −1 when unknown.
    pub epoch: i32,
    /// First offset behind that epoch; −1 when unknown.
    pub end_offset: i64,
}

impl EpochEnd {
    pub const UNKNOWN: EpochEnd = EpochEnd { epoch: -1, end_offset: -1 };
}

/// The leader epochs of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderEpochs {
    entries: Vec<EpochStart>,
}

impl LeaderEpochs {
    pub fn new() -> Self {
        LeaderEpochs::default()
    }

    pub fn entries(&self) -> &[EpochStart] {
        &self.entries
    }

    pub fn latest(&self) -> Option<EpochStart> {
        self.entries.last().copied()
    }

    /// The epoch of the record at `offset`.
    pub fn epoch_at(&self, offset: i64) -> Option<i32> {
        let after = self.entries.partition_point(|entry| entry.start_offset <= offset);
        after.checked_sub(1).map(|floor| self.entries[floor].epoch)
    }

    /// The newest epoch older than `epoch`.
    pub fn epoch_before(&self, epoch: i32) -> Option<i32> {
        let after = self.entries.partition_point(|entry| entry.epoch < epoch);
        after.checked_sub(1).map(|floor| self.entries[floor].epoch)
    }

    /// `start` is from now on the newest entry. Entries that contradict it (same or newer epoch,
    /// same or later offset) belong to a history that did not happen and go. True when anything
    /// changed, that is, when the checkpoint must be written.
    pub fn assign(&mut self, start: EpochStart) -> bool {
        assert!(
            start.epoch >= 0 && start.start_offset >= 0,
            "{start:?} cannot be an epoch's start"
        );
        if let Some(latest) = self.latest()
            && latest.epoch == start.epoch
            && latest.start_offset <= start.start_offset
        {
            return false;
        }
        while let Some(latest) = self.latest()
            && (latest.epoch >= start.epoch || latest.start_offset >= start.start_offset)
        {
            self.entries.pop();
        }
        self.entries.push(start);
        self.assert_rising();
        true
    }

    /// The log now ends at `end_offset`: epochs that began there or later are gone.
    pub fn truncate_from_end(&mut self, end_offset: i64) -> bool {
        let kept = self.entries.partition_point(|entry| entry.start_offset < end_offset);
        let changed = kept < self.entries.len();
        self.entries.truncate(kept);
        changed
    }

    /// The log now starts at `start_offset`: the epoch that holds there begins there, older go.
    pub fn truncate_from_start(&mut self, start_offset: i64) -> bool {
        let after = self.entries.partition_point(|entry| entry.start_offset <= start_offset);
        let Some(floor) = after.checked_sub(1) else { return false };
        let changed = floor > 0 || self.entries[floor].start_offset != start_offset;
        self.entries.drain(..floor);
        self.entries[0].start_offset = start_offset;
        self.assert_rising();
        changed
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Where `epoch` ended (KIP-101, KIP-279). The newest epoch ends at the log's end; one that
    /// lies between two known ones ends where the next begins; one older than all that is kept
    /// ends where the oldest begins and is echoed; one that is still to come is unknown.
    pub fn end_offset_for(&self, epoch: i32, log_end_offset: i64) -> EpochEnd {
        if epoch == EpochEnd::UNKNOWN.epoch {
            return EpochEnd::UNKNOWN;
        }
        if self.latest().is_some_and(|latest| latest.epoch == epoch) {
            return EpochEnd { epoch, end_offset: log_end_offset };
        }
        let after = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let Some(next) = self.entries.get(after) else { return EpochEnd::UNKNOWN };
        let known = after.checked_sub(1).map_or(epoch, |floor| self.entries[floor].epoch);
        EpochEnd { epoch: known, end_offset: next.start_offset }
    }

    fn assert_rising(&self) {
        let rising = self.entries.windows(2).all(|pair| rises(pair[0], pair[1]));
        assert!(rising, "leader epochs do not rise: {:?}", self.entries);
    }
}

fn rises(before: EpochStart, after: EpochStart) -> bool {
    before.epoch < after.epoch && before.start_offset < after.start_offset
}
