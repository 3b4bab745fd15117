//! Up to where a log was cleaned: a derived file. Lost or damaged, the log is cleaned again from
//! its start.

use std::io::ErrorKind;
use std::path::Path;

use runtime::file::FsError;

use crate::envelope::{self, PayloadReader, Purpose};

/// The file's name in the partition's directory. Its payload is one offset, big endian.
pub const CLEANED_TO_FILE_NAME: &str = "cleaned-to";

/// The offset that the file names; the log's start counts when there is none.
pub async fn load(dir: &Path) -> Result<i64, FsError> {
    let file = match runtime::fs::read(dir.join(CLEANED_TO_FILE_NAME)).await {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(NOWHERE),
        Err(error) => return Err(error),
    };
    Ok(envelope::open(PURPOSE, &file)
        .and_then(|(_, payload)| PayloadReader::new(payload).i64())
        .unwrap_or(NOWHERE))
}

pub async fn save(dir: &Path, offset: i64) -> Result<(), FsError> {
    let file = envelope::seal(PURPOSE, &offset.to_be_bytes());
    runtime::fs::write_atomic(dir.join(CLEANED_TO_FILE_NAME), &file).await
}

/// Nothing is known to be clean any more; durable when it returns.
pub async fn forget(dir: &Path) -> Result<(), FsError> {
    match runtime::fs::remove_file(dir.join(CLEANED_TO_FILE_NAME)).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => runtime::fs::sync_dir(dir).await,
    }
}

/// Below every log's start.
pub const NOWHERE: i64 = -1;
const PURPOSE: Purpose = Purpose { letters: *b"CTCL", version: 1 };
