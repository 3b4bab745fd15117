//! The removal of files that may be large, so slowly that writers hardly notice.
//!
//! Giving a file's blocks back keeps a disk busy, and one that is told of each (a file system
//! mounted with `discard`) does nothing else meanwhile: 10 to 20 ms for a segment of 32 MiB where
//! it was traced.
//!
//! Law: a slot removes one file at a time, in steps, and rests after each for a multiple of the
//! time it took; what has waited for long is removed faster. A file that someone still reads loses
//! its name only, and its blocks with the last reader. Single files go before those of whole
//! directories.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use runtime::file::{File, FsError, Mode};
use runtime::fs::Entry;
use runtime::time::{Instant, now, random_u64, sleep};

use crate::background;
use crate::directory::DELETED_SUFFIX;
use crate::open_files::OpenFiles;

/// What a slot has to remove. What is left when the process ends goes at the next start.
pub struct Removals {
    open_files: Rc<OpenFiles>,
    files: RefCell<VecDeque<(Going, Instant)>>,
    dirs: RefCell<VecDeque<(PathBuf, Instant)>>,
    at_work: Cell<bool>,
}

/// Something that is opened no more.
pub enum Going {
    File(PathBuf),
    /// It has lost its last name.
    Unnamed(File),
}

/// A directory whose files go one by one.
struct Emptied {
    dir: PathBuf,
    due: Instant,
    left: Vec<Entry>,
}

impl Removals {
    pub fn new(open_files: Rc<OpenFiles>) -> Removals {
        let at_work = Cell::new(false);
        Removals { open_files, files: RefCell::default(), dirs: RefCell::default(), at_work }
    }

    /// Removes them in the background, not durably.
    pub fn add(self: &Rc<Self>, going: impl IntoIterator<Item = Going>) {
        let due = now();
        self.files.borrow_mut().extend(going.into_iter().map(|it| (it, due)));
        self.work();
    }

    /// Removes a directory and the files in it in the background, not durably.
    pub fn add_dir(self: &Rc<Self>, dir: PathBuf) {
        self.dirs.borrow_mut().push_back((dir, now()));
        self.work();
    }

    fn work(self: &Rc<Self>) {
        if !self.at_work.replace(true) {
            let removals = self.clone();
            background::start(async move { removals.remove_all().await });
        }
    }

    async fn remove_all(&self) {
        let mut emptied: Option<Emptied> = None;
        loop {
            let file = self.files.borrow_mut().pop_front();
            let done = match (file, emptied.take()) {
                (Some((going, due)), waiting) => {
                    emptied = waiting;
                    self.remove(going, due).await
                }
                (None, Some(mut dir)) => match dir.left.pop() {
                    None => runtime::fs::remove_dir_all(&dir.dir).await,
                    Some(entry) => {
                        let removed = self.remove_of(&dir, &entry).await;
                        // What stays of it goes, or is told, with the directory.
                        emptied = Some(dir);
                        removed
                    }
                },
                (None, None) => {
                    let Some((dir, due)) = self.dirs.borrow_mut().pop_front() else { break };
                    let listed = runtime::fs::list(&dir).await;
                    listed.map(|left| emptied = Some(Emptied { dir, due, left }))
                }
            };
            match done {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::warn!(%error, "what was deleted stays until the next start");
                }
                _ => {}
            }
        }
        self.at_work.set(false);
    }

    async fn remove(&self, going: Going, due: Instant) -> Result<(), FsError> {
        match going {
            Going::File(path) => {
                runtime::reached("removal: a file");
                // Whatever hinders this, the file can go as a whole.
                if let Ok(file) = File::open(&path, Mode::Buffered).await {
                    drop(self.cut_down(file, due).await);
                }
                remove_whole(&path, due).await
            }
            Going::Unnamed(file) => self.cut_down(file, due).await,
        }
    }

    async fn remove_of(&self, emptied: &Emptied, entry: &Entry) -> Result<(), FsError> {
        let path = emptied.dir.join(&entry.name);
        match (entry.is_dir, entry.len > STEP_BYTES) {
            (true, _) => Ok(()),
            (false, true) => self.remove(Going::File(path), emptied.due).await,
            (false, false) => remove_whole(&path, emptied.due).await,
        }
    }

    async fn cut_down(&self, file: File, due: Instant) -> Result<(), FsError> {
        let cut = self.cut_open(&file, due).await;
        file.close().await.and(cut)
    }

    async fn cut_open(&self, file: &File, due: Instant) -> Result<(), FsError> {
        let mut size = file.size().await?;
        for _ in 0..READER_WAITS_MAX {
            if size > STEP_BYTES && self.open_files.closed_in_use() {
                sleep(READER_WAIT).await;
            }
        }
        while size > STEP_BYTES && !self.open_files.closed_in_use() {
            let begun = now();
            size -= STEP_BYTES;
            file.set_len(size).await?;
            runtime::reached("removal: a file was cut");
            rest(begun, due).await;
        }
        Ok(())
    }
}

async fn remove_whole(path: &Path, due: Instant) -> Result<(), FsError> {
    let begun = now();
    let removed = runtime::fs::remove_file(path).await;
    rest(begun, due).await;
    removed
}

async fn rest(begun: Instant, due: Instant) {
    let now = now();
    let late = now.since(due);
    let times = RESTS.iter().find(|(until, _)| late < *until).map_or(0, |(_, times)| *times);
    sleep(now.since(begun) * times).await;
}

/// Gives the file a name under which it is to be removed later; none when it is not there. Not
/// durable.
pub async fn set_aside(dir: &Path, name: &str) -> Result<Option<PathBuf>, FsError> {
    // No other file has ever had that name: a removal that comes late finds nothing else there.
    let target = dir.join(format!("{name}.{:016x}{DELETED_SUFFIX}", random_u64()));
    match runtime::fs::rename(dir.join(name), &target).await {
        Ok(()) => Ok(Some(target)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// About as much as file systems hold in one piece; in simulations less than a segment.
const STEP_BYTES: u64 = if cfg!(sim) { 16 << 10 } else { 4 << 20 };
/// The rest after a step, in times of the step, up to which lateness.
const RESTS: [(Duration, u32); 2] = [(Duration::from_secs(10), 4), (Duration::from_secs(60), 1)];
/// How often, and how long each time, a reader is waited for who may have the file open.
const READER_WAITS_MAX: u32 = 20;
const READER_WAIT: Duration = Duration::from_millis(10);
