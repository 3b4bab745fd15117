//! The lock of the data directory that a path lies in.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::OfflineError;

/// The file in a data directory that its broker holds locked.
pub const LOCK_FILE_NAME: &str = ".lock";
/// The file in a data directory that says that its host was stopped in order. Without it the next
/// start takes every log for one that a crash left, and begins new leader epochs.
pub const CLEAN_STOP_FILE_NAME: &str = "clean-stop";

/// Keeps brokers out of a data directory as long as it lives.
pub(super) struct Access {
    /// None when the path lies in no data directory: a copy of a log, say.
    pub data_dir: Option<PathBuf>,
    _lock: Option<File>,
}

impl Access {
    pub fn to(path: &Path) -> Result<Access, OfflineError> {
        let path = path.canonicalize().map_err(OfflineError::io("find", path))?;
        let data_dir = path.ancestors().find(|dir| dir.join(LOCK_FILE_NAME).is_file());
        let Some(data_dir) = data_dir else { return Ok(Access { data_dir: None, _lock: None }) };
        let lock_path = data_dir.join(LOCK_FILE_NAME);
        let lock = File::open(&lock_path).map_err(OfflineError::io("open", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Access { data_dir: Some(data_dir.to_owned()), _lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => {
                // The holder writes its process id there, but may not have come to it yet.
                let holder = std::fs::read_to_string(&lock_path).unwrap_or_default();
                let holder = match holder.trim() {
                    "" => String::new(),
                    id => format!(" (process {id})"),
                };
                Err(OfflineError::InUse { data_dir: data_dir.to_owned(), holder })
            }
            Err(TryLockError::Error(error)) => Err(OfflineError::io("lock", &lock_path)(error)),
        }
    }
}
