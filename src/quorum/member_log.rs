//! A member's log in memory, where the Raft implementation reads it.
//!
//! Law: entries follow each other without a gap, from `base_index + 1` on. Whatever is here is on
//! disk too, or is being written by the caller before it says so with `advance`. Taking a snapshot
//! shortens the log and bounds the memory.

use std::cell::Cell;
use std::collections::VecDeque;

use raft::eraftpb as pb;
use raft::{GetEntriesContext, RaftState, StorageError};

use crate::convert::{entry_to_raft, hard_state_to_raft, members_to_raft, snapshot_to_raft};
use crate::records::{HardState, LogEntry, MemberId, Snapshot};

pub(crate) struct MemberLog {
    hard_state: HardState,
    snapshot: Snapshot,
    /// The entry before the first one kept.
    base_index: u64,
    base_term: u64,
    entries: VecDeque<pb::Entry>,
    /// A member joined after the snapshot was taken and needs one that names it.
    newer_snapshot_wanted: Cell<bool>,
}

impl MemberLog {
    pub(crate) fn new(hard_state: HardState, snapshot: Snapshot, entries: &[LogEntry]) -> Self {
        let (base_index, base_term) = (snapshot.index, snapshot.term);
        let entries = entries.iter().map(entry_to_raft).collect();
        let newer_snapshot_wanted = Cell::new(false);
        MemberLog { hard_state, snapshot, base_index, base_term, entries, newer_snapshot_wanted }
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub(crate) fn newer_snapshot_wanted(&self) -> bool {
        self.newer_snapshot_wanted.get()
    }

    pub(crate) fn last(&self) -> u64 {
        self.base_index + self.entries.len() as u64
    }

    pub(crate) fn set_hard_state(&mut self, hard_state: HardState) {
        self.hard_state = hard_state;
    }

    /// Replaces what `entries` contradict and adds the rest.
    pub(crate) fn append(&mut self, entries: &[pb::Entry]) {
        let Some(first) = entries.first() else { return };
        let follows = self.base_index < first.index && first.index <= self.last() + 1;
        assert!(follows, "entry {} does not follow {}", first.index, self.last());
        self.entries.truncate((first.index - self.base_index - 1) as usize);
        self.entries.extend(entries.iter().cloned());
    }

    /// The log starts anew behind a snapshot that the leader sent.
    pub(crate) fn install(&mut self, snapshot: Snapshot) {
        self.base_index = snapshot.index;
        self.base_term = snapshot.term;
        self.entries.clear();
        self.snapshot = snapshot;
        self.newer_snapshot_wanted.set(false);
    }

    /// A snapshot of our own state is stored: all but the last `entries_kept` entries that it
    /// covers go. Those stay for members that are a little behind.
    pub(crate) fn compact(&mut self, snapshot: Snapshot, entries_kept: u64) {
        assert!(snapshot.index >= self.snapshot.index && snapshot.index <= self.last());
        let base = snapshot.index.saturating_sub(entries_kept).max(self.base_index);
        let leaving = (base - self.base_index) as usize;
        if let Some(last_gone) = self.entries.drain(..leaving).next_back() {
            self.base_index = last_gone.index;
            self.base_term = last_gone.term;
        }
        self.snapshot = snapshot;
        self.newer_snapshot_wanted.set(false);
    }

    /// The term of a kept entry, or of the one before the first.
    pub(crate) fn term_at(&self, index: u64) -> Option<u64> {
        if index == self.base_index {
            return Some(self.base_term);
        }
        let number = index.checked_sub(self.base_index + 1)?;
        self.entries.get(usize::try_from(number).ok()?).map(|entry| entry.term)
    }
}

impl raft::Storage for MemberLog {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let hard_state = hard_state_to_raft(&self.hard_state);
        Ok(RaftState::new(hard_state, members_to_raft(&self.snapshot.members)))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<pb::Entry>> {
        if low <= self.base_index {
            return Err(raft::Error::Store(StorageError::Compacted));
        }
        assert!(low <= high && high <= self.last() + 1, "no entries {low}..{high}");
        let bytes_max = max_size.into().unwrap_or(u64::MAX);
        let numbers = (low - self.base_index - 1) as usize..(high - self.base_index - 1) as usize;
        let mut bytes = 0;
        let fitting = self.entries.range(numbers).take_while(|entry| {
            let first = bytes == 0;
            bytes += entry.data.len() as u64 + ENTRY_OVERHEAD_BYTES;
            first || bytes <= bytes_max
        });
        Ok(fitting.cloned().collect())
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        let missing = match index < self.base_index {
            true => StorageError::Compacted,
            false => StorageError::Unavailable,
        };
        self.term_at(index).ok_or(raft::Error::Store(missing))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base_index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    /// A member ignores a snapshot that does not name it.
    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<pb::Snapshot> {
        let named = MemberId::new(to).is_some_and(|to| self.snapshot.members.all().contains(&to));
        if self.snapshot.index < request_index || !named {
            self.newer_snapshot_wanted.set(true);
            return Err(raft::Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        }
        Ok(snapshot_to_raft(&self.snapshot))
    }
}

/// What an entry takes in a message beside its data.
const ENTRY_OVERHEAD_BYTES: u64 = 32;
