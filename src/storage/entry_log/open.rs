//! Opening an entry log: what is there, what a crash left, what must be refused.
//!
//! Law: nothing is changed before everything was read and found sound. What is accepted is made
//! provably durable before anybody builds on it, so that opening again, after a crash at any point
//! in here, comes to the same entries.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use runtime::file::{File, FsError, Mode};
use runtime::fs;
use thiserror::Error;

use super::scan::{Scan, ScanError, ScannedFile, scan};
use super::spare::Spares;
use super::{
    ENTRIES_EXTENSION, Entry, EntryLog, EntryLogDamage, EntryLogOptions, UNFINISHED_EXTENSION,
    path_of, write_at,
};

/// What an opened log holds.
#[derive(Debug)]
pub struct Loaded {
    /// In order, without a gap, beginning behind what the snapshot covers or earlier.
    pub entries: Vec<Entry>,
    /// The rest of a write that was never acknowledged, now removed.
    pub torn: Option<TornWrite>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornWrite {
    pub path: PathBuf,
    pub position: u64,
    pub bytes: u64,
}

#[derive(Debug, Error)]
pub enum EntryLogOpenError {
    #[error("there is no entry log in {}", dir.display())]
    Missing { dir: PathBuf },
    #[error("the entry log is damaged: {0}")]
    Damaged(EntryLogDamage),
    #[error("{} has format {format}, which this program does not know", path.display())]
    Newer { path: PathBuf, format: u16 },
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl From<ScanError> for EntryLogOpenError {
    fn from(error: ScanError) -> Self {
        match error {
            ScanError::Damaged(damage) => EntryLogOpenError::Damaged(damage),
            ScanError::Newer { path, format } => EntryLogOpenError::Newer { path, format },
        }
    }
}

impl EntryLog {
    /// Opens the log in `dir`. A stored snapshot covers the entries up to `after` (0: none); all
    /// that follow must be there.
    pub async fn open(
        dir: &Path,
        options: EntryLogOptions,
        after: u64,
    ) -> Result<(EntryLog, Loaded), EntryLogOpenError> {
        let mut files = read_files(dir).await?;
        let mut found = scan(&files, after)?;
        remove_unfinished(dir).await?;
        if found.continuation_pending
            && let Some(unused) = files.pop()
        {
            // A crash came between making this file and naming it in the one before.
            fs::remove_file(&unused.path).await?;
            fs::sync_dir(dir).await?;
            found = scan(&files, after)?;
        }
        make_durable(dir, &files).await?;
        let Some(newest) = files.pop().map(|file| file.path) else {
            return Err(EntryLogOpenError::Missing { dir: dir.to_owned() });
        };
        let file = File::open(&newest, Mode::BufferedSync).await?;
        let torn = remove_torn(&file, &newest, &found).await?;
        let Scan { entries, last_index, heads, end, proven, .. } = found;
        let mut full = VecDeque::from(heads);
        let Some(head) = full.pop_back() else {
            return Err(EntryLogOpenError::Missing { dir: dir.to_owned() });
        };
        let dir = dir.to_owned();
        let spares = Spares::find(&dir, options.file_bytes).await?;
        let mut log = EntryLog { dir, options, full, head, file, spares, end, last_index };
        if !proven {
            log.prove_durable().await?;
        }
        Ok((log, Loaded { entries, torn }))
    }

    /// What was accepted may have lost its mark, or never had one.
    async fn prove_durable(&mut self) -> Result<(), FsError> {
        if self.end + super::RESERVED_BYTES > self.head.allocated {
            return self.roll(0).await;
        }
        self.write_mark().await
    }
}

async fn read_files(dir: &Path) -> Result<Vec<ScannedFile>, FsError> {
    let mut files = Vec::new();
    for entry in fs::list(dir).await? {
        let name = Path::new(&entry.name);
        let is_entries = name.extension().is_some_and(|ext| ext == ENTRIES_EXTENSION);
        let sequence = name.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        let Some(sequence) = sequence.filter(|_| is_entries && !entry.is_dir) else { continue };
        let path = path_of(dir, sequence);
        let bytes = fs::read(&path).await?;
        files.push(ScannedFile { path, sequence, bytes });
    }
    files.sort_by_key(|file| file.sequence);
    Ok(files)
}

async fn remove_unfinished(dir: &Path) -> Result<(), FsError> {
    for entry in fs::list(dir).await? {
        let path = dir.join(&entry.name);
        if path.extension().is_some_and(|ext| ext == UNFINISHED_EXTENSION) {
            fs::remove_file(&path).await?;
        }
    }
    Ok(())
}

/// A killed process leaves in the page cache what it had not yet made durable: it reads like the
/// rest and would be lost with the power. Only the last two files can have such bytes.
async fn make_durable(dir: &Path, files: &[ScannedFile]) -> Result<(), FsError> {
    for file in files.iter().rev().take(2) {
        let file = File::open(&file.path, Mode::BufferedSync).await?;
        file.sync().await?;
        file.close().await?;
    }
    fs::sync_dir(dir).await
}

/// Overwrites with zeros what stands behind the accepted end.
async fn remove_torn(file: &File, path: &Path, found: &Scan) -> Result<Option<TornWrite>, FsError> {
    if found.dirty_end <= found.end {
        return Ok(None);
    }
    let bytes = found.dirty_end - found.end;
    write_at(file, found.end, &vec![0; bytes as usize]).await?;
    Ok(Some(TornWrite { path: path.to_owned(), position: found.end, bytes }))
}
