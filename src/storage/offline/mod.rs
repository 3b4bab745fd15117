//! `log dump`, `log verify` and `log repair`: a log's files without a broker.
//!
//! Law: nothing here runs beside a broker. A path inside a data directory is used only while the
//! directory's lock is held, so that neither reads what the other is writing. `dump` and `verify`
//! change no byte; `repair` changes nothing but what its report says, in an order that a crash at
//! any point leaves repairable. These are plain blocking functions: they run in a process of
//! their own, with nothing to keep waiting.

mod access;
mod dump;
mod fault;
mod index_check;
mod journals;
mod log_check;
mod repair;
mod segment_check;
mod verify;
mod window;

pub use access::{CLEAN_STOP_FILE_NAME, LOCK_FILE_NAME};
pub use dump::{Dump, DumpLine, DumpOptions, dump};
pub use fault::{Fault, FaultKind};
pub use journals::journaled;
pub use repair::{CutLog, RepairReport, repair};
pub use verify::{VerifyReport, verify};

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// How logs are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Decompress every batch and look at each record.
    pub deep: bool,
    /// Offsets may be missing between batches, as compaction leaves them.
    pub gaps: bool,
}

/// Why an offline tool did not do its work.
#[derive(Debug, Error)]
pub enum OfflineError {
    #[error("a broker uses {}{holder}; stop it first", data_dir.display())]
    InUse { data_dir: PathBuf, holder: String },
    #[error("{0}; start the broker once, which brings them here or says why it cannot")]
    Journaled(Box<Fault>),
    #[error("{} is no log's directory, no file of one, no data directory", .0.display())]
    NotALog(PathBuf),
    #[error("{} has a format that this program does not know: {reason}", path.display())]
    Newer { path: PathBuf, reason: String },
    #[error(
        "start the broker once: it finishes an exchange of segments in {}, what is damaged then \
         can be repaired",
        .0.display()
    )]
    ExchangeUnfinished(PathBuf),
    #[error("nothing tells whose {} is: identity and checkpoint are both lost", .0.display())]
    Nameless(PathBuf),
    #[error("{op} {}: {source}", path.display())]
    Io { op: &'static str, path: PathBuf, source: io::Error },
}

impl OfflineError {
    pub(super) fn io(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OfflineError {
        let path = path.to_owned();
        move |source| OfflineError::Io { op, path, source }
    }
}
