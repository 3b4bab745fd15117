//! How fast cleaning may read and write.
//!
//! Law: on average over its work, the slot's cleaner moves no more bytes a second than it is
//! allowed to, whatever log it works on. What it did not use while it rested is not made up for.

use std::cell::Cell;
use std::time::Duration;

use runtime::time::{Instant, now};

/// Bytes a second, and when the next may be moved.
#[derive(Debug)]
pub struct Pace {
    bytes_per_second: Cell<f64>,
    free_at: Cell<Option<Instant>>,
}

impl Pace {
    pub fn new(bytes_per_second: f64) -> Pace {
        Pace { bytes_per_second: Cell::new(bytes_per_second), free_at: Cell::new(None) }
    }

    pub fn set(&self, bytes_per_second: f64) {
        self.bytes_per_second.set(bytes_per_second);
    }

    /// Takes note of bytes that were moved. Returns the moment from which on more may be.
    pub fn spend(&self, bytes: u64) -> Instant {
        let now = now();
        let start = self.free_at.get().map_or(now, |free_at| free_at.max(now));
        let seconds = bytes as f64 / self.bytes_per_second.get().max(1.0);
        let free_at =
            start + Duration::try_from_secs_f64(seconds).unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
        self.free_at.set(Some(free_at));
        free_at
    }
}

/// A pace that was set by mistake must not stop the cleaner for days.
const PAUSE_MAX: Duration = Duration::from_secs(60);
