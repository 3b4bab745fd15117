//! The removal of files that may be large, so slowly that writers hardly notice.
//!
//! Giving a file's blocks back keeps a disk busy, and one that is told of each (a file system
//! mounted with `discard`) does nothing else meanwhile: a segment of a gigabyte costs it a good
//! part of a second.
//!
//! Law: a slot removes one file at a time, in steps, and rests after each for a multiple of the
//! time it took; whoever removes more than fits into that is let go faster. A file that someone
//! still reads loses its name only, and its blocks with the last reader.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use runtime::file::{File, FsError, Mode};
use runtime::time::{Instant, now, sleep};

use crate::log::Turn;
use crate::open_files::OpenFiles;

/// The removals of a slot, one after the other.
#[derive(Default)]
pub struct Removals {
    turn: Turn,
}

impl Removals {
    /// Removes a file that is opened no more, and that could have gone at `due`. Not durable.
    pub async fn remove_file(
        &self,
        open_files: &OpenFiles,
        path: &Path,
        due: Instant,
    ) -> Result<(), FsError> {
        let _turn = self.turn.take().await;
        remove_large(open_files, path, due).await.or_else(already_gone)
    }

    /// Gives back what a file has that has lost its last name.
    pub async fn remove_unnamed(
        &self,
        open_files: &OpenFiles,
        file: File,
        due: Instant,
    ) -> Result<(), FsError> {
        let _turn = self.turn.take().await;
        let cut = cut_down(open_files, &file, due).await;
        file.close().await.and(cut)
    }

    /// Removes a directory and the files in it, of which none is opened any more.
    pub async fn remove_dir(
        &self,
        open_files: &OpenFiles,
        dir: &Path,
        due: Instant,
    ) -> Result<(), FsError> {
        for entry in runtime::fs::list(dir).await? {
            let path = dir.join(&entry.name);
            if entry.is_dir {
                continue;
            } else if entry.len > STEP_BYTES {
                self.remove_file(open_files, &path, due).await?;
            } else {
                let _turn = self.turn.take().await;
                remove_small(&path, due).await.or_else(already_gone)?;
            }
        }
        runtime::fs::remove_dir_all(dir).await
    }
}

async fn remove_large(open_files: &OpenFiles, path: &Path, due: Instant) -> Result<(), FsError> {
    let file = File::open(path, Mode::Buffered).await?;
    let cut = cut_down(open_files, &file, due).await;
    file.close().await?;
    cut?;
    remove_small(path, due).await
}

async fn cut_down(open_files: &OpenFiles, file: &File, due: Instant) -> Result<(), FsError> {
    let mut size = file.size().await?;
    while size > STEP_BYTES && !open_files.closed_in_use() {
        let begun = now();
        size -= STEP_BYTES;
        file.set_len(size).await?;
        runtime::reached("removal: a file was cut");
        rest(begun, due).await;
    }
    Ok(())
}

async fn remove_small(path: &Path, due: Instant) -> Result<(), FsError> {
    let begun = now();
    runtime::fs::remove_file(path).await?;
    rest(begun, due).await;
    Ok(())
}

fn already_gone(error: FsError) -> Result<(), FsError> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

async fn rest(begun: Instant, due: Instant) {
    let now = now();
    let late = now.since(due);
    let times = RESTS.iter().find(|(until, _)| late < *until).map_or(0, |(_, times)| *times);
    sleep(now.since(begun) * times).await;
}

/// About as much as file systems hold in one piece; in simulations less than a segment.
const STEP_BYTES: u64 = if cfg!(sim) { 16 << 10 } else { 4 << 20 };
/// The rest after a step, in times of the step, up to which lateness.
const RESTS: [(Duration, u32); 2] = [(Duration::from_secs(10), 4), (Duration::from_secs(60), 1)];
