//! The files a slot keeps open, least recently used first to close.
//!
//! Law: a file that is in use is never closed under its user; the number of open files goes over
//! the bound only by those in use, and back as soon as they are not. Closing an idle file costs
//! its next user one open.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::rc::{Rc, Weak};

use runtime::file::{File, FsError, Mode};

/// Names a file of this slot: the log's number and which of its files.
pub type FileKey = (u64, FileRole);

/// What a file is to its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileRole {
    Checkpoint,
    /// A segment's batches, by its base offset.
    Segment(i64),
}

pub struct OpenFiles {
    max: usize,
    clock: Cell<u64>,
    state: Rc<RefCell<State>>,
}

/// An open file for as long as someone uses it.
pub struct UsedFile {
    /// Only gone while this is dropped.
    file: Option<Rc<File>>,
    max: usize,
    state: Rc<RefCell<State>>,
}

#[derive(Default)]
struct State {
    files: BTreeMap<FileKey, Slot>,
    by_use: BTreeMap<u64, FileKey>,
    /// Closed for all but those who were using them then.
    leaving: Vec<Weak<File>>,
    /// How often files were forgotten.
    forgotten: u64,
    /// For each file that is being opened, how often that had been when it began.
    opening: BTreeMap<u64, usize>,
}

struct Slot {
    file: Rc<File>,
    mode: Mode,
    used_at: u64,
}

impl OpenFiles {
    pub fn new(max: usize) -> OpenFiles {
        assert!(max >= crate::options::OPEN_FILES_MIN, "{max} open files are too few");
        OpenFiles { max, clock: Cell::new(0), state: Rc::default() }
    }

    pub fn count(&self) -> usize {
        self.state.borrow().files.len()
    }

    /// The open file, or opens `path`. A file open for synchronous writing serves readers too.
    pub async fn get(&self, key: FileKey, path: &Path, mode: Mode) -> Result<UsedFile, FsError> {
        if let Some(file) = self.find(key, mode) {
            return Ok(file);
        }
        let opening = Opening::begin(&self.state);
        let file = Rc::new(File::open(path, mode).await?);
        // Someone else may have opened it meanwhile.
        if let Some(file) = self.find(key, mode) {
            return Ok(file);
        }
        if opening.is_current() {
            self.insert(key, Rc::clone(&file), mode);
        } else {
            // It may be the one that was forgotten: then it has another name now, or none.
            self.state.borrow_mut().leave(&file);
        }
        Ok(self.used(file))
    }

    /// Takes in a file that its caller has just created.
    pub fn insert(&self, key: FileKey, file: Rc<File>, mode: Mode) {
        let used_at = self.tick();
        let mut state = self.state.borrow_mut();
        state.remove(key);
        state.by_use.insert(used_at, key);
        state.files.insert(key, Slot { file, mode, used_at });
        state.close_surplus(self.max);
    }

    /// Closes the file as soon as nobody uses it.
    pub fn forget(&self, key: FileKey) {
        let mut state = self.state.borrow_mut();
        state.forgotten += 1;
        state.remove(key);
    }

    /// Closes all files of a log.
    pub fn forget_log(&self, log: u64) {
        let first = (log, FileRole::Checkpoint);
        let last = (log, FileRole::Segment(i64::MAX));
        let mut state = self.state.borrow_mut();
        state.forgotten += 1;
        let keys: Vec<FileKey> = state.files.range(first..=last).map(|(key, _)| *key).collect();
        for key in keys {
            state.remove(key);
        }
    }

    /// Whether someone still uses a file that was forgotten, or may be about to.
    pub fn closed_in_use(&self) -> bool {
        let mut state = self.state.borrow_mut();
        state.leaving.retain(|file| file.strong_count() > 0);
        let first = state.opening.first_key_value().map(|(begun, _)| *begun);
        !state.leaving.is_empty() || first.is_some_and(|begun| begun < state.forgotten)
    }

    fn find(&self, key: FileKey, mode: Mode) -> Option<UsedFile> {
        let used_at = self.tick();
        let state = &mut *self.state.borrow_mut();
        let slot = state.files.get_mut(&key)?;
        let serves = slot.mode == mode || (slot.mode == Mode::DirectSync && mode == Mode::Direct);
        if !serves {
            return None;
        }
        state.by_use.remove(&slot.used_at);
        slot.used_at = used_at;
        state.by_use.insert(used_at, key);
        Some(self.used(Rc::clone(&slot.file)))
    }

    fn used(&self, file: Rc<File>) -> UsedFile {
        UsedFile { file: Some(file), max: self.max, state: Rc::clone(&self.state) }
    }

    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }
}

/// A file that is being opened.
struct Opening<'a> {
    state: &'a RefCell<State>,
    begun: u64,
}

impl Opening<'_> {
    fn begin(state: &RefCell<State>) -> Opening<'_> {
        let begun = state.borrow().forgotten;
        *state.borrow_mut().opening.entry(begun).or_default() += 1;
        Opening { state, begun }
    }

    /// Nothing was forgotten since it began.
    fn is_current(&self) -> bool {
        self.state.borrow().forgotten == self.begun
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        let left = state.opening.get_mut(&self.begun).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            state.opening.remove(&self.begun);
        }
    }
}

impl UsedFile {
    /// Another use of the same file.
    pub fn share(&self) -> UsedFile {
        let (file, max, state) = (self.file.clone(), self.max, Rc::clone(&self.state));
        UsedFile { file, max, state }
    }
}

impl Deref for UsedFile {
    type Target = File;

    fn deref(&self) -> &File {
        match &self.file {
            Some(file) => file,
            None => unreachable!("used after it was dropped"),
        }
    }
}

impl Drop for UsedFile {
    fn drop(&mut self) {
        self.file = None;
        self.state.borrow_mut().close_surplus(self.max);
    }
}

impl State {
    fn remove(&mut self, key: FileKey) {
        if let Some(slot) = self.files.remove(&key) {
            self.by_use.remove(&slot.used_at);
            if Rc::strong_count(&slot.file) > 1 {
                self.leave(&slot.file);
            }
            close(slot.file);
        }
    }

    /// Someone else still uses the file.
    fn leave(&mut self, file: &Rc<File>) {
        self.leaving.retain(|file| file.strong_count() > 0);
        self.leaving.push(Rc::downgrade(file));
    }

    /// Closes files that nobody uses, the longest idle first, as long as there are more than `max`.
    fn close_surplus(&mut self, max: usize) {
        let surplus = self.files.len().saturating_sub(max);
        if surplus == 0 {
            return;
        }
        let idle: Vec<FileKey> = self
            .by_use
            .values()
            .filter(|key| self.files.get(key).is_some_and(|s| Rc::strong_count(&s.file) == 1))
            .take(surplus)
            .copied()
            .collect();
        for key in idle {
            self.remove(key);
        }
    }
}

/// The last user's drop closes a file that is still in use.
fn close(file: Rc<File>) {
    if let Some(file) = Rc::into_inner(file) {
        crate::background::start(async move {
            if let Err(error) = file.close().await {
                tracing::warn!(%error, "closing a file failed");
            }
        });
    }
}
