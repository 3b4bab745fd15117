//! Small files that are replaced as a whole: the quorum's vote, its snapshot.
//!
//! Law: after a crash the file holds what it held before or what was last stored, never a mixture.
//! A file that is there but damaged is an error, never taken for one that is not there: a lost
//! vote could be cast twice, a lost snapshot would delete every topic.

use std::path::{Path, PathBuf};

use runtime::file::FsError;
use runtime::fs;
use thiserror::Error;

use crate::envelope::{self, EnvelopeError, Purpose};

#[derive(Debug, Error)]
pub enum SealedFileError {
    #[error("{} is damaged: {reason}", path.display())]
    Refused { path: PathBuf, reason: EnvelopeError },
    #[error(transparent)]
    Fs(#[from] FsError),
}

/// A few bytes that must never be forgotten.
pub struct StateFile {
    path: PathBuf,
}

impl StateFile {
    pub fn at(path: PathBuf) -> StateFile {
        StateFile { path }
    }

    pub async fn load(&self) -> Result<Option<Vec<u8>>, SealedFileError> {
        load(&self.path, STATE).await
    }

    /// Durable when this returns.
    pub async fn store(&self, state: &[u8]) -> Result<(), FsError> {
        fs::write_atomic(&self.path, &envelope::seal(STATE, state)).await
    }
}

/// A whole state, from which a log goes on.
pub struct SnapshotFile {
    path: PathBuf,
}

impl SnapshotFile {
    pub fn at(path: PathBuf) -> SnapshotFile {
        SnapshotFile { path }
    }

    pub async fn load(&self) -> Result<Option<Vec<u8>>, SealedFileError> {
        load(&self.path, SNAPSHOT).await
    }

    /// Durable when this returns.
    pub async fn store(&self, snapshot: &[u8]) -> Result<(), FsError> {
        fs::write_atomic(&self.path, &envelope::seal(SNAPSHOT, snapshot)).await
    }
}

/// Whether these are the bytes of a whole state or snapshot file.
pub(crate) fn check_sealed(file: &[u8]) -> Result<(), EnvelopeError> {
    match envelope::open(STATE, file) {
        Err(EnvelopeError::Purpose { .. }) => envelope::open(SNAPSHOT, file).map(|_| ()),
        opened => opened.map(|_| ()),
    }
}

/// None when there is no such file.
async fn load(path: &Path, purpose: Purpose) -> Result<Option<Vec<u8>>, SealedFileError> {
    if !fs::exists(path).await? {
        return Ok(None);
    }
    let file = fs::read(path).await?;
    match envelope::open(purpose, &file) {
        Ok((_, payload)) => Ok(Some(payload.to_vec())),
        Err(reason) => Err(SealedFileError::Refused { path: path.to_owned(), reason }),
    }
}

const STATE: Purpose = Purpose { letters: *b"CTST", version: 1 };
const SNAPSHOT: Purpose = Purpose { letters: *b"CTSN", version: 1 };
