//! Whose turn it is to read from the disk.
//!
//! Law: what is being committed waits behind few reads. A device serves in about the order of
//! asking, and its queue is shared: readers that fill it make every commit wait for all of them.
//! Two reads of a window keep a device busy; more only hide the latency of slow ones. So while a
//! slot commits, two of its reads are under way, else many. Turns come in the order of asking.

use std::cell::Cell;
use std::time::Duration;

use runtime::local::{Budget, Lease};
use runtime::time::{Instant, now};

pub struct DiskTurns {
    places: Budget,
    under_way: Cell<usize>,
    last_commit: Cell<Option<Instant>>,
}

impl DiskTurns {
    pub fn new() -> DiskTurns {
        DiskTurns {
            places: Budget::new(PLACES),
            under_way: Cell::new(0),
            last_commit: Cell::new(None),
        }
    }

    /// A commit begins.
    pub fn on_commit(&self, at: Instant) {
        self.last_commit.set(Some(at));
    }

    /// Waits for a turn, which ends when it is dropped.
    pub async fn read(&self) -> Turn<'_> {
        let lately = |commit: Instant| now().since(commit) < COMMITS_FOR;
        let commits = self.last_commit.get().is_some_and(lately);
        let places = if commits { PLACES / READS_BESIDE_COMMITS } else { 1 };
        let _places = self.places.lease(places).await;
        self.under_way.set(self.under_way.get() + 1);
        Turn { turns: self, _places }
    }

    /// Reads whose turn it is.
    pub fn under_way(&self) -> usize {
        self.under_way.get()
    }
}

pub struct Turn<'a> {
    turns: &'a DiskTurns,
    _places: Lease,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.under_way.set(self.turns.under_way.get() - 1);
    }
}

/// Reads of windows at a time without commits.
const PLACES: usize = 16;
const READS_BESIDE_COMMITS: usize = 2;
/// How long after the beginning of a commit the next one is expected.
const COMMITS_FOR: Duration = Duration::from_millis(100);
