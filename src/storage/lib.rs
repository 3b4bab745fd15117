//! Partition logs on direct-I/O segment files.
//!
//! One [`Storage`] per slot owns the open files, the buffers and the background work of the
//! [`Log`]s that its core leads. Everything here waits through `runtime`; what can be decided
//! without waiting (index formats, sequence rules, epoch cache, batch chains) sits in modules of
//! its own that never await. The crate knows nothing of requests, replicas or topics' meaning.

mod background;
mod checkpoint;
mod directory;
mod disk_turns;
mod errors;
mod journal;
mod log;
mod memory;
mod options;
mod recovery;
mod removals;
mod segment;
mod statistics;
mod store;
mod windows;

pub mod compaction;
pub mod entry_log;
pub mod envelope;
pub mod epochs;
pub mod index;
pub mod offline;
pub mod open_files;
pub mod producer;

pub use compaction::{CleanError, Cleaned, Cleaner};
pub use errors::{
    AppendError, CommitError, CreateError, DeleteRecordsError, OpenError, ReadError, TruncateError,
    Unavailable,
};
pub use journal::{JournalError, Owners, Replayed, ScanError};
pub use log::{Appended, Committed, Log, ReadChunk, Retained, TimestampOffset, TurnedAway};
pub use options::{JournalConfig, LogOptions, OPEN_FILES_MIN, StorageConfig};
pub use recovery::RecoveryReport;
pub use statistics::StorageStats;
pub use store::Storage;
