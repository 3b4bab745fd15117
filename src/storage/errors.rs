//! One error per operation on a log.
//!
//! Law: an error here is an answer to one caller; a failed write or sync is none, it ends the
//! process, because nobody can say any more what the disk holds.

use std::path::PathBuf;
use std::rc::Rc;

use protocol::Uuid;
use protocol::batch::BatchError;
use runtime::file::FsError;
use thiserror::Error;

use crate::checkpoint::CheckpointError;
use crate::directory::IdentityError;
use crate::producer::SequenceError;

/// Why a log does not serve (any more).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unavailable {
    #[error("the log is closed")]
    Closed,
    #[error("the log is deleted")]
    Deleted,
}

/// Why a batch was not appended. Nothing of it is in the log then.
#[derive(Debug, Error)]
pub enum AppendError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// There is no room to allocate. Later appends try again by themselves.
    #[error("no space left on the device for {topic}-{partition}")]
    NoSpace { topic: String, partition: i32 },
    #[error(transparent)]
    Sequence(#[from] SequenceError),
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The batch is larger than a segment may be.
    #[error("a batch of {bytes} bytes does not fit a segment of {segment_bytes}")]
    TooLarge { bytes: usize, segment_bytes: u64 },
    /// As a follower: the batch does not follow the log's end.
    #[error("a batch at offset {found} cannot follow a log that ends at {log_end}")]
    OutOfOrder { found: i64, log_end: i64 },
    /// As a follower: the batch's epoch is older than what the log has.
    #[error("a batch of epoch {found} cannot follow one of epoch {known}")]
    StaleEpoch { found: i32, known: i32 },
    /// As a follower: the bytes are not whole, valid batches.
    #[error("the batch at offset {offset} has a wrong checksum")]
    Checksum { offset: i64 },
    /// The log could not be made ready: what it holds already cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Io(#[from] FsError),
}

/// Why the wait for a commit ended without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CommitError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The log was truncated below the offset that was waited for.
    #[error("the log was truncated to {log_end}")]
    Truncated { log_end: i64 },
}

/// Why a read gave nothing.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("offset {offset} is outside of {log_start}..{log_end}")]
    OutOfRange { offset: i64, log_start: i64, log_end: i64 },
    /// A batch on disk is not what was written: nothing of it is given out.
    #[error("{topic}-{partition}: {} is damaged at position {position}: {reason}", file.display())]
    Corrupt { topic: String, partition: i32, file: PathBuf, position: u64, reason: String },
    #[error(transparent)]
    Io(Rc<FsError>),
}

impl From<FsError> for ReadError {
    fn from(error: FsError) -> ReadError {
        ReadError::Io(Rc::new(error))
    }
}

/// Why a log could not be created.
#[derive(Debug, Error)]
pub enum CreateError {
    #[error("{} holds a log already", .0.display())]
    Exists(PathBuf),
    #[error("no space left on the device for {}", .0.display())]
    NoSpace(PathBuf),
    #[error(transparent)]
    Io(FsError),
}

/// Why a log could not be opened: the partition is offline until someone does what it takes.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    #[error("{} belongs to topic id {found}, not {expected}", path.display())]
    Foreign { path: PathBuf, expected: Uuid, found: Uuid },
    #[error("{}: {error}", path.display())]
    Identity { path: PathBuf, error: IdentityError },
    #[error("{}: {error}", path.display())]
    Checkpoint { path: PathBuf, error: CheckpointError },
    /// Acknowledged batches are damaged or missing. `log repair --accept-loss` or a replica helps.
    #[error("{} is damaged at offset {offset}, position {position}: {reason}", file.display())]
    Damaged { file: PathBuf, offset: i64, position: u64, reason: String },
    #[error(transparent)]
    Io(#[from] FsError),
}

/// Why records were not deleted.
#[derive(Debug, Error)]
pub enum DeleteRecordsError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("offset {offset} is outside of {log_start}..={committed_end}")]
    OutOfRange { offset: i64, log_start: i64, committed_end: i64 },
}

/// Why a log was not truncated.
#[derive(Debug, Error)]
pub enum TruncateError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("cannot truncate to {offset}, before the log's start {log_start}")]
    BeforeStart { offset: i64, log_start: i64 },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Io(#[from] FsError),
}
