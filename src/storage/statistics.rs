//! What a slot's storage counts.

use metrics::{Counter, Histogram};

/// Counts since the slot started.
#[derive(Debug, Default)]
pub struct StorageStats {
    /// Writes that made a group of appended batches count as committed.
    pub commits: Counter,
    /// Bytes of batches in those writes.
    pub committed_bytes: Counter,
    /// Those of a log that went to the slot's journal; its writes, and bytes of these.
    pub journaled_commits: Counter,
    pub journal_writes: Counter,
    pub journal_bytes: Counter,
    /// Writes that only brought to a segment what the journal had, and bytes of batches in them.
    pub destage_writes: Counter,
    pub destaged_bytes: Counter,
    /// From the start of such a write to its end.
    pub commit_latency: Histogram,
    /// Bytes of batches given out from the buffers they were written from.
    pub tail_read_bytes: Counter,
    /// Bytes of batches given out that had to come from disk, cached or not.
    pub disk_read_bytes: Counter,
    /// Windows read from disk.
    pub window_reads: Counter,
    /// Bytes of batches from disk whose checksum was computed before they were given out.
    pub checked_bytes: Counter,
    /// Batches found damaged while they were read.
    pub corrupt_batches: Counter,
    /// Appends refused for lack of space.
    pub no_space: Counter,
    /// Checkpoints written, segments rolled and segments deleted.
    pub checkpoints: Counter,
    pub rolls: Counter,
    pub deleted_segments: Counter,
    /// Rounds of cleaning, what they read and wrote, and how long they took.
    pub cleaner_rounds: Counter,
    pub cleaner_read_bytes: Counter,
    pub cleaner_written_bytes: Counter,
    pub cleaner_latency: Histogram,
}
