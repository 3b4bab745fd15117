//! Files that are allocated ahead of their use.
//!
//! Law: a spare file is as long as the log's files are, allocated and durable, and zeros behind
//! the head of a file, so that it becomes the log's next one by a write in place and a rename.

use std::path::{Path, PathBuf};

use runtime::file::FsError;
use runtime::fs;

use super::{UNFINISHED_EXTENSION, allocate_file};

pub(super) struct Spares {
    dir: PathBuf,
    file_bytes: u64,
    /// Numbers of those that are there.
    numbers: Vec<usize>,
}

impl Spares {
    /// What is there; what is no use any more goes.
    pub(super) async fn find(dir: &Path, file_bytes: u64) -> Result<Spares, FsError> {
        let mut spares = Spares { dir: dir.to_owned(), file_bytes, numbers: Vec::new() };
        for entry in fs::list(dir).await? {
            let Some(number) = number_of(&entry.name) else { continue };
            match entry.len == file_bytes {
                true => spares.numbers.push(number),
                false => fs::remove_file(dir.join(&entry.name)).await?,
            }
        }
        Ok(spares)
    }

    /// One for a file of `bytes`, which is the caller's now.
    pub(super) fn take(&mut self, bytes: u64) -> Option<PathBuf> {
        if bytes != self.file_bytes {
            return None;
        }
        self.numbers.pop().map(|number| self.path(number))
    }

    /// Makes some until there are `wanted` or there is no room.
    pub(super) async fn make(&mut self, wanted: usize) -> Result<(), FsError> {
        for number in 0..wanted {
            if self.numbers.len() >= wanted {
                return Ok(());
            }
            if self.numbers.contains(&number) {
                continue;
            }
            let path = self.path(number);
            let unfinished = path.with_extension(UNFINISHED_EXTENSION);
            match allocate_file(&unfinished, self.file_bytes).await {
                Err(error) if error.is_full() => return Ok(()),
                made => made?,
            }
            fs::rename(&unfinished, &path).await?;
            fs::sync_dir(&self.dir).await?;
            self.numbers.push(number);
        }
        Ok(())
    }

    fn path(&self, number: usize) -> PathBuf {
        self.dir.join(format!("{STEM}{number}.{EXTENSION}"))
    }
}

fn number_of(name: &str) -> Option<usize> {
    name.strip_prefix(STEM)?.strip_suffix(EXTENSION)?.strip_suffix('.')?.parse().ok()
}

const STEM: &str = "spare-";
const EXTENSION: &str = "blank";
