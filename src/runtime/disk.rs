//! The words in which both back ends speak of files.

use std::io;
use std::path::{Path, PathBuf};

/// How a file is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Past the page cache. Writes are whole aligned blocks.
    Direct,
    /// Past the page cache, and a write has returned only when it is on stable storage.
    DirectSync,
    /// Through the page cache: survives the process, not the power.
    Buffered,
    /// Through the page cache, and a write has returned only when it is on stable storage.
    BufferedSync,
}

impl Mode {
    /// Whether offsets and lengths of writes must be multiples of `ALIGNMENT`.
    pub fn is_direct(self) -> bool {
        matches!(self, Mode::Direct | Mode::DirectSync)
    }

    /// Whether a write that has returned is durable.
    pub fn is_sync(self) -> bool {
        matches!(self, Mode::DirectSync | Mode::BufferedSync)
    }
}

/// What failed, on which path, and why.
#[derive(Debug, thiserror::Error)]
#[error("{op} {}: {source}", path.display())]
pub struct FsError {
    pub op: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl FsError {
    pub fn new(op: &'static str, path: &Path, source: io::Error) -> Self {
        FsError { op, path: path.to_path_buf(), source }
    }

    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Nothing was to be changed: what is on disk is what was there before.
    pub fn was_reading(&self) -> bool {
        matches!(self.op, "open" | "read" | "list" | "stat" | "inspect")
    }

    /// No space, quota or file size left: what frees up may be tried again.
    pub fn is_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub name: String,
    pub is_dir: bool,
    /// Bytes; of no meaning for a directory.
    pub len: u64,
}

/// The file system that a directory is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsInfo {
    /// Its type, as `mount` calls it.
    pub kind: String,
    /// Bytes that we may still allocate.
    pub free: u64,
    pub total: u64,
    /// Whether files can really be read and written past the page cache.
    pub direct_io: bool,
    /// The unit that the device writes or does not write, in bytes; 512 when it does not say.
    pub logical_sector: u32,
    /// The unit that the device likes to write.
    pub physical_sector: u32,
}
