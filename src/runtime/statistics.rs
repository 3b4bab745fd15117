//! What one core has done since it started: plain numbers, copied out.

use std::time::Duration;

/// Counters of one core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Receive calls, those that found nothing included.
    pub receives: u64,
    pub received_bytes: u64,
    /// Send calls, those that found no room included.
    pub sends: u64,
    pub sent_bytes: u64,
    pub accepts: u64,
    pub file_reads: u64,
    pub file_read_bytes: u64,
    pub file_writes: u64,
    pub file_written_bytes: u64,
    pub file_syncs: u64,
    /// Bytes copied from one buffer to another, as far as [`crate::copied`] was told.
    pub copied_bytes: u64,
    /// Functions run off the loop.
    pub blocking_calls: u64,
    /// Deadlines that are waited for now.
    pub timers: u64,
    /// Times this core let the watchdog wait for more than a second.
    pub stalls: u64,
    /// Time spent running tasks.
    pub busy: Duration,
    /// Processor time of the core's thread: tasks, the rings, the kernel's work for both, and
    /// polling if it polls before it sleeps.
    pub processor: Duration,
    /// Time since the core started.
    pub alive: Duration,
}
