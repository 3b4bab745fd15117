//! A small file that gives up its space when a few bytes have to be written on a full disk.
//!
//! Law: it holds nothing. It goes only for a write that fits into its space with room to spare, so
//! that it can be made again right after it, on a disk that is as full as before.

use std::path::PathBuf;

use runtime::file::{File, FsError, Mode};
use runtime::fs;

pub struct Ballast {
    path: PathBuf,
}

impl Ballast {
    pub fn at(path: PathBuf) -> Ballast {
        Ballast { path }
    }

    /// The file is there afterwards, unless there is no room for it.
    pub async fn keep(&self) -> Result<(), FsError> {
        if fs::exists(&self.path).await? {
            return Ok(());
        }
        let made = match File::create_new(&self.path, Mode::Buffered).await {
            Ok(file) => file.preallocate(BALLAST_BYTES).await,
            Err(error) => Err(error),
        };
        match made {
            Err(error) if error.is_full() => self.give_up().await,
            made => made,
        }
    }

    /// Its space is free afterwards.
    pub async fn give_up(&self) -> Result<(), FsError> {
        match fs::remove_file(&self.path).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

const BALLAST_BYTES: u64 = 256 << 10;
