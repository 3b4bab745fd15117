//! What one slot's storage and one log are told from outside.
//!
//! Law: options are plain values, already validated by whoever read them from a topic's
//! configuration; durations are milliseconds, sizes bytes. A log takes new options at any time.

use std::path::PathBuf;
use std::time::Duration;

use runtime::local::Budget;

use crate::compaction::plan::Wishes;

/// What the logs of one slot share.
pub struct StorageConfig {
    /// Holds `<topic>-<partition>/` directories and `deleted/`.
    pub data_dir: PathBuf,
    /// Every append buffer, tail and read window draws on it. Storage waits for room here, so its
    /// share must not be held by anyone who in turn waits for storage.
    pub budget: Budget,
    /// False where the file system has no O_DIRECT: files then go through the page cache, with
    /// O_DSYNC for the strict ones.
    pub direct_io: bool,
    /// Which start of the host this is; a clean close leaves it in the log's checkpoint.
    pub incarnation: i64,
    /// Segment files that stay open on this slot. At least `OPEN_FILES_MIN`.
    pub open_files_max: usize,
    /// Share of the budget, in bytes, that tails and read windows may hold between them.
    pub cache_bytes_max: usize,
    /// Index of sealed segments kept in memory, in bytes.
    pub index_bytes_max: usize,
    /// Milliseconds of broker time after which an idle producer is forgotten
    /// (`producer.id.expiration.ms`).
    pub producer_expiration_ms: i64,
    /// What one write of a log commits at most, unless a single batch is larger.
    pub commit_bytes_max: usize,
    /// How long a commit that could take more waits for it.
    pub commit_linger: Duration,
    /// How small commits are journaled; none for no journal.
    pub journal: Option<JournalConfig>,
    /// Bytes of journals' entries that a replay has in memory at a time, about.
    pub replay_bytes_max: usize,
    /// What is read ahead for who reads in order; 0 for nothing.
    pub read_ahead_bytes_max: usize,
}

/// The slot's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// Disk space that it takes.
    pub bytes: u64,
    /// A commit of more bytes goes straight to its segment.
    pub commit_bytes_max: usize,
    /// Share of the budget, in bytes, that batches may hold which only the journal has.
    pub memory_bytes_max: usize,
    /// The files are written in full once so many commits would have gone there: a host that
    /// nobody writes to does not write them either.
    pub prewrite_after: u64,
}

/// Beyond this, recovery would not find the end of a log by itself.
pub const COMMIT_BYTES_MAX: usize = crate::log::CHUNK_BYTES_MAX;

/// Below this many open files a log could not read and write at once.
pub const OPEN_FILES_MIN: usize = 8;

/// Left of the budget for what is not counted: the state of thousands of logs, and what the
/// allocator holds between buffers that come and go.
const UNCOUNTED_BYTES: usize = 64 << 20;

impl StorageConfig {
    /// A slot on `data_dir` with the defaults of a small host. Most of the budget may be cache,
    /// which gives way to whatever else needs room.
    pub fn new(data_dir: PathBuf, budget: Budget) -> StorageConfig {
        let uncounted = UNCOUNTED_BYTES.min(budget.limit() / 3 * 2);
        let cache_bytes_max = (budget.limit() - uncounted) / 8 * 7;
        StorageConfig {
            data_dir,
            replay_bytes_max: budget.limit() / 2,
            budget,
            direct_io: true,
            incarnation: 0,
            open_files_max: 4096,
            cache_bytes_max,
            index_bytes_max: 32 << 20,
            producer_expiration_ms: 86_400_000,
            commit_bytes_max: COMMIT_BYTES_MAX,
            commit_linger: Duration::ZERO,
            journal: None,
            read_ahead_bytes_max: 1 << 20,
        }
    }
}

/// The topic configuration that storage obeys, under Kafka's names.
#[derive(Clone, Debug, PartialEq)]
pub struct LogOptions {
    /// `segment.bytes`: a segment that would grow beyond it is sealed first.
    pub segment_bytes: u64,
    /// `segment.ms`, counted from the segment's first batch.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: up to this much is taken off `segment_ms`, by chance per segment.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: a segment whose index would outgrow it is sealed first.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`
    pub index_interval_bytes: u32,
    /// `retention.ms`; −1 keeps for ever.
    pub retention_ms: i64,
    /// `retention.bytes`; −1 keeps everything.
    pub retention_bytes: i64,
    /// `delete` in `cleanup.policy`: without it neither time nor size deletes a segment.
    pub cleanup_delete: bool,
    /// `compact` in `cleanup.policy`: offsets may be missing between batches.
    pub cleanup_compact: bool,
    /// `delete.retention.ms`: how long a tombstone stays after the first round that meets it.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`, `max.compaction.lag.ms`, `min.cleanable.dirty.ratio`
    pub compaction: Wishes,
    /// `flush.messages`: 1 makes every acknowledged write durable, more is *relaxed*: the page
    /// cache acknowledges, and a sync follows after that many records.
    pub flush_messages: i64,
    /// `flush.ms`: a relaxed log is synced when its oldest unsynced record is that old.
    pub flush_ms: i64,
    /// `file.delete.delay.ms`
    pub file_delete_delay_ms: i64,
    /// `preallocate`: new segments take their whole size at once.
    pub preallocate: bool,
}

impl LogOptions {
    /// True when an acknowledgement means stable storage.
    pub fn is_strict(&self) -> bool {
        self.flush_messages <= 1
    }
}

impl Default for LogOptions {
    /// Kafka's defaults, save `flush.messages`.
    fn default() -> LogOptions {
        LogOptions {
            segment_bytes: 1 << 30,
            segment_ms: 604_800_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: 604_800_000,
            retention_bytes: -1,
            cleanup_delete: true,
            cleanup_compact: false,
            delete_retention_ms: 86_400_000,
            compaction: Wishes {
                min_compaction_lag_ms: 0,
                max_compaction_lag_ms: i64::MAX,
                min_cleanable_dirty_ratio: 0.5,
            },
            flush_messages: 1,
            flush_ms: i64::MAX,
            file_delete_delay_ms: 60_000,
            preallocate: false,
        }
    }
}
