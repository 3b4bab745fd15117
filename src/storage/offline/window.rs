//! A window that moves over a file: blocking reads, in large pieces.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::OfflineError;

pub(super) struct Window {
    file: File,
    path: PathBuf,
    length: u64,
    buffer: Vec<u8>,
    at: u64,
}

impl Window {
    pub fn open(path: &Path) -> Result<Window, OfflineError> {
        let file = File::open(path).map_err(OfflineError::io("open", path))?;
        let length = file.metadata().map_err(OfflineError::io("look at", path))?.len();
        Ok(Window { file, path: path.to_owned(), length, buffer: Vec::new(), at: 0 })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes at `position`: `wanted` of them, or what there is before the end.
    pub fn bytes(&mut self, position: u64, wanted: usize) -> Result<&[u8], OfflineError> {
        let end = self.length.min(position.saturating_add(wanted as u64));
        let position = position.min(end);
        if position < self.at || end > self.at + self.buffer.len() as u64 {
            self.fill(position, end).map_err(OfflineError::io("read", &self.path))?;
        }
        let start = (position - self.at) as usize;
        Ok(&self.buffer[start..start + (end - position) as usize])
    }

    fn fill(&mut self, position: u64, end: u64) -> io::Result<()> {
        let ahead = self.length.min(position + READ_BYTES).max(end);
        self.at = position;
        self.buffer.resize((ahead - position) as usize, 0);
        self.file.read_exact_at(&mut self.buffer, position)
    }
}

const READ_BYTES: u64 = 1 << 20;
