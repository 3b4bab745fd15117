//! The slot's journal: small commits of all its logs in one durable write.
//!
//! Law: one write at a time, and what gathers meanwhile goes into the next. An entry's bytes are
//! durable here before they are committed, and stay here until they are durable in their segment:
//! files are recycled oldest first, behind a low water that is durable itself. The journal never
//! makes a log wait: what it has no room for is committed straight to its segment. Of each log one
//! commit is in flight, here or there.
//!
//! What is not yet in its segment stays in the logs' tails, from where it is read; it is written
//! there in the background, whole blocks, the longest undestaged first.

mod files;
mod format;
mod leftover;
mod pending;
mod replay;
mod scan;
mod segment_end;
mod undestaged;
mod writer;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use runtime::file::{File, FsError};
use runtime::local::{Budget, Event};

pub use files::{JOURNAL_DIR_NAME, STATE_FILE_NAME, journal_dir, journal_file_name};
pub use format::{BadFormat, EntryHead, EntryKind, JournalState};
pub use leftover::{LEFTOVER_FILE_NAME, Leftover};
pub use pending::{LogKey, Pending};
pub use replay::{Owners, Replayed, replay};
pub use scan::{Order, ScanError, Seen, look_through};
pub use segment_end::{Refused, retry};

use crate::background;
use crate::log::LogInner;
use crate::options::JournalConfig;
use crate::statistics::StorageStats;
use files::{Shape, StateError, StateFile};
use format::{ENTRY_HEAD_BYTES, RECORD_BYTES_MAX, RECORD_HEAD_BYTES};
use undestaged::Undestaged;

/// One slot's journal.
pub struct Journal {
    slot: u32,
    dir: PathBuf,
    config: JournalConfig,
    /// How long a write that could take more waits for it.
    linger: Duration,
    /// What the logs' tails draw on.
    budget: Budget,
    stats: Rc<StorageStats>,
    /// Gone while it is being written.
    state_file: RefCell<Option<StateFile>>,
    ring: RefCell<Ring>,
    queue: RefCell<Queue>,
    undestaged: RefCell<Undestaged>,
    /// Room was made, or the writer stopped.
    changed: Event,
}

/// The files as a ring, and where it is written.
#[derive(Default)]
struct Ring {
    /// None before the files are written in full.
    files: Vec<Rc<File>>,
    salt: u64,
    file_bytes: u64,
    /// Files that hold records which count, oldest first; the last one is being written.
    spans: VecDeque<Span>,
    /// Where the next record goes in the last file.
    position: u64,
    next_sequence: u64,
    /// Small commits seen before the files were written in full.
    wanted: u64,
    preparing: bool,
    recycling: bool,
    closed: bool,
}

#[derive(Clone, Copy)]
struct Span {
    file: u32,
    /// Sequence number of its last record.
    last: u64,
}

/// Who waits to be written.
#[derive(Default)]
struct Queue {
    logs: VecDeque<Rc<LogInner>>,
    fences: VecDeque<Fence>,
    writing: bool,
}

/// An entry that somebody waits for.
struct Fence {
    head: EntryHead,
    done: Rc<Cell<Option<u64>>>,
}

/// Where the oldest undestaged record of a log is, and what it has asked for.
#[derive(Default)]
pub struct Journaling {
    /// Sequence number of the log's oldest record that is not in its segment.
    pub since: Option<u64>,
    /// Sequence number of its last record.
    pub last: u64,
    /// Memory and batch bytes that were last counted.
    pub held_bytes: usize,
    pub bytes: u64,
    /// It shall be destaged.
    pub destage: bool,
    /// A commit waits for the journal's next write, or is in it.
    pub in_flight: bool,
    /// It shall not be journaled for now: its segment is about to be left.
    pub barred: bool,
}

impl Journal {
    /// Opens the slot's journal, whose entries have been replayed. Without room on the disk there
    /// is none: the reason is given back.
    pub async fn open(
        data_dir: &Path,
        slot: u32,
        mut config: JournalConfig,
        linger: Duration,
        budget: Budget,
        stats: Rc<StorageStats>,
    ) -> Result<Rc<Journal>, JournalError> {
        let dir = journal_dir(data_dir, slot);
        let shape = Shape::of(config.bytes);
        let state = match take_space(&dir, slot, shape).await {
            Err(JournalError::Io(error)) if error.is_full() => {
                let free = runtime::fs::info(data_dir).await?.free;
                return Err(JournalError::NoRoom { dir, needed: shape.bytes(), free });
            }
            taken => taken?,
        };
        let mut ring = Ring { next_sequence: state.state.low_water, ..Ring::default() };
        if state.state.prewritten {
            ring.files = files::open(&dir, &state.state).await?;
        }
        (ring.salt, ring.file_bytes) = (state.state.salt, state.state.file_bytes);
        let one_entry = ring.record_bytes_max() - RECORD_HEAD_BYTES - ENTRY_HEAD_BYTES;
        config.commit_bytes_max = config.commit_bytes_max.min(one_entry);
        Ok(Rc::new(Journal {
            slot,
            dir,
            config,
            linger,
            budget,
            stats,
            state_file: RefCell::new(Some(state)),
            ring: RefCell::new(ring),
            queue: RefCell::default(),
            undestaged: RefCell::default(),
            changed: Event::new(),
        }))
    }

    /// Bytes of batches that are only here.
    pub fn undestaged_bytes(&self) -> u64 {
        self.undestaged.borrow().bytes
    }

    /// Logs that have such batches.
    pub fn undestaged_logs(&self) -> usize {
        self.undestaged.borrow().logs()
    }

    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Whether a commit of so many bytes had better go here.
    pub fn takes(self: &Rc<Self>, bytes: usize) -> bool {
        if bytes > self.config.commit_bytes_max {
            return false;
        }
        if self.ring.borrow().files.is_empty() {
            self.note_wanted();
            return false;
        }
        let fits = self.undestaged.borrow().held_bytes < self.config.memory_bytes_max;
        fits && self.ring.borrow().has_room()
    }

    /// The log has a commit for the journal.
    pub fn enqueue(self: &Rc<Self>, log: Rc<LogInner>) {
        self.queue.borrow_mut().logs.push_back(log);
        self.maybe_write();
    }

    /// Makes an entry durable that settles everything before it. Returns its sequence number.
    pub async fn fence(self: &Rc<Self>, head: EntryHead) -> u64 {
        let done = Rc::new(Cell::new(None));
        self.queue.borrow_mut().fences.push_back(Fence { head, done: Rc::clone(&done) });
        self.maybe_write();
        loop {
            let changed = self.changed.listen();
            if let Some(sequence) = done.get() {
                return sequence;
            }
            changed.await;
        }
    }

    /// Whether a record with this number may still be read by a start.
    pub fn holds(&self, sequence: u64) -> bool {
        match &*self.state_file.borrow() {
            Some(file) => sequence >= file.state.low_water,
            None => true,
        }
    }

    /// Sequence numbers below which everything is in the segments.
    fn settled_to(&self) -> u64 {
        let oldest = self.undestaged.borrow_mut().oldest();
        oldest.unwrap_or(self.ring.borrow().next_sequence)
    }

    /// Counts what a log holds of the memory, and whether it has something undestaged.
    pub fn on_changed(self: &Rc<Self>, log: &Rc<LogInner>, now: Counted) {
        {
            let undestaged = &mut *self.undestaged.borrow_mut();
            undestaged.held_bytes = undestaged.held_bytes + now.held_bytes - now.before_held_bytes;
            undestaged.bytes = undestaged.bytes + now.bytes - now.before_bytes;
            if let Some(sequence) = now.begins {
                undestaged.begin(sequence, log);
            }
            if let Some(sequence) = now.ends {
                undestaged.end(sequence, log);
            }
        }
        self.maybe_destage();
        self.maybe_recycle();
    }

    /// Asks the logs that have waited longest to write out, more at a time the more there is need.
    fn maybe_destage(&self) {
        self.destage_while(Journal::destages_needed);
    }

    /// Someone needs memory.
    pub fn relieve(&self) {
        self.destage_while(|_, _| DESTAGES_IN_FLIGHT);
    }

    /// `most` says how many destagings may be under way.
    fn destage_while(&self, most: impl Fn(&Journal, &Undestaged) -> usize) {
        loop {
            let log = {
                let undestaged = &mut *self.undestaged.borrow_mut();
                if undestaged.asked() >= most(self, undestaged) {
                    return;
                }
                let Some(log) = undestaged.next() else { return };
                log
            };
            log.destage_for_journal();
        }
    }

    /// A journal that is rather empty lets the logs gather; one that fills slowly is emptied by
    /// few writes at a time, beside which its own are hardly slower.
    fn destages_needed(&self, undestaged: &Undestaged) -> usize {
        let ring = self.ring.borrow();
        let files = (ring.spans.len(), ring.files.len());
        let memory = (undestaged.held_bytes, self.config.memory_bytes_max);
        let quarters = quarters_of(files).max(quarters_of(memory));
        if self.budget.waiting() > 0 { DESTAGES_IN_FLIGHT } else { DESTAGES[quarters.min(3)] }
    }

    /// Makes the oldest files free again once nothing in them counts.
    fn maybe_recycle(self: &Rc<Self>) {
        let settled_to = self.settled_to();
        {
            let ring = &mut *self.ring.borrow_mut();
            let needed = quarters_of((ring.spans.len(), ring.files.len())) > 0;
            let current = ring.spans.len().saturating_sub(1);
            let settled = ring.spans.iter().take(current).any(|span| span.last < settled_to);
            let early = recycles_early() && current > 0;
            if !(needed && settled || early) || ring.recycling || ring.closed {
                return;
            }
            ring.recycling = true;
        }
        let journal = Rc::clone(self);
        background::start(async move { journal.recycle(settled_to).await });
    }

    async fn recycle(self: Rc<Self>, settled_to: u64) {
        let low_water = {
            let ring = self.ring.borrow();
            let current = ring.spans.len() - 1;
            let free = ring.spans.iter().take(current).take_while(|it| it.last < settled_to);
            let early = ring.spans.front().filter(|_| recycles_early());
            free.last().or(early).map(|span| span.last + 1)
        };
        if let Some(low_water) = low_water {
            self.change_state(|state| state.low_water = low_water).await;
            let ring = &mut *self.ring.borrow_mut();
            while ring.spans.len() > 1 && ring.spans[0].last < low_water {
                ring.spans.pop_front();
            }
            runtime::reached("journal: file recycled");
        }
        self.ring.borrow_mut().recycling = false;
        self.changed.notify_all();
    }

    /// The state file changes; a failure ends the process.
    async fn change_state(&self, change: impl FnOnce(&mut JournalState)) {
        let taken = self.state_file.borrow_mut().take();
        let Some(mut file) = taken else { unreachable!("one change at a time") };
        if let Err(error) = file.change(change).await {
            self.abort(&error);
        }
        *self.state_file.borrow_mut() = Some(file);
    }

    fn abort(&self, error: &FsError) -> ! {
        runtime::abort(&format!("the journal of slot {}: {error}; stopping", self.slot))
    }

    /// Small commits come that the journal would take: its files are written in full for them.
    fn note_wanted(self: &Rc<Self>) {
        {
            let ring = &mut *self.ring.borrow_mut();
            ring.wanted += 1;
            if ring.wanted < self.config.prewrite_after || ring.preparing || ring.closed {
                return;
            }
            ring.preparing = true;
        }
        let journal = Rc::clone(self);
        background::start(async move { journal.prepare().await });
    }

    async fn prepare(self: Rc<Self>) {
        let Some(state) = self.state_file.borrow().as_ref().map(|file| file.state) else { return };
        match files::prewrite(&self.dir, &state).await {
            Ok(()) => self.begin_service(&state).await,
            // Where nothing can be allocated ahead, only this finds out.
            Err(error) if error.is_full() => self.go_without(&error).await,
            Err(error) => self.abort(&error),
        }
        self.ring.borrow_mut().preparing = false;
        self.changed.notify_all();
    }

    async fn begin_service(&self, state: &JournalState) {
        self.change_state(|state| state.prewritten = true).await;
        match files::open(&self.dir, state).await {
            Ok(files) => self.ring.borrow_mut().files = files,
            Err(error) => self.abort(&error),
        }
        runtime::reached("journal: ready");
    }

    /// There is no journal until the next start, and its space is free.
    async fn go_without(&self, error: &FsError) {
        let slot = self.slot;
        tracing::warn!(slot, %error, "no room for the journal: going on without one");
        self.ring.borrow_mut().closed = true;
        let taken = self.state_file.borrow_mut().take();
        let Some(mut file) = taken else { unreachable!("one change at a time") };
        if let Err(error) = files::remove(&self.dir, &mut file).await {
            self.abort(&error);
        }
        *self.state_file.borrow_mut() = Some(file);
        runtime::reached("journal: given up");
    }

    /// All logs are closed: nothing in the journal counts any more, and the next start need not
    /// read it.
    pub async fn close(self: &Rc<Self>) {
        self.ring.borrow_mut().closed = true;
        loop {
            let changed = self.changed.listen();
            let busy = {
                let (queue, ring) = (self.queue.borrow(), self.ring.borrow());
                queue.writing || ring.recycling || ring.preparing
            };
            if !busy {
                break;
            }
            changed.await;
        }
        let settled_to = self.settled_to();
        self.change_state(|state| state.low_water = settled_to).await;
    }
}

/// What became of a log's share.
#[derive(Clone, Copy, Default)]
pub struct Counted {
    pub before_held_bytes: usize,
    pub held_bytes: usize,
    pub before_bytes: u64,
    pub bytes: u64,
    /// The log has its first undestaged record, with this number.
    pub begins: Option<u64>,
    /// All of it is in the segments; this was the number of its first undestaged record.
    pub ends: Option<u64>,
}

impl Ring {
    /// Whether a record of any size finds its place at once.
    fn has_room(&self) -> bool {
        let free = self.files.len() - self.spans.len();
        let rest = self.file_bytes.saturating_sub(self.position);
        free > 0 || (!self.spans.is_empty() && rest >= self.record_bytes_max() as u64)
    }

    /// The most that one record takes.
    fn record_bytes_max(&self) -> usize {
        let most = RECORD_BYTES_MAX as u64;
        most.min((self.file_bytes / 2).next_multiple_of(crate::segment::BLOCK as u64)) as usize
    }
}

/// The journal's state, with files of this shape.
async fn take_space(dir: &Path, slot: u32, shape: Shape) -> Result<StateFile, JournalError> {
    let mut state = match StateFile::open(dir).await {
        // Whoever made it may have been killed before its name was durable.
        Ok(Some(state)) => {
            files::sync_names(dir).await?;
            state
        }
        // What it was good for has been seen to.
        Ok(None) | Err(StateError::Damaged(_)) => StateFile::create(dir, slot).await?,
        Err(error) => return Err(error.into()),
    };
    files::allocate(dir, &mut state, shape).await?;
    Ok(state)
}

/// A guarantee that tests break on purpose.
fn recycles_early() -> bool {
    runtime::sabotaged("recycle before destaged")
}

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error(transparent)]
    Io(#[from] FsError),
    #[error("{0}")]
    State(String),
    /// Nothing of it was taken.
    #[error("{} would take {needed} bytes of disk, and {free} are free", dir.display())]
    NoRoom { dir: PathBuf, needed: u64, free: u64 },
}

impl From<StateError> for JournalError {
    fn from(error: StateError) -> JournalError {
        match error {
            StateError::Io(error) => JournalError::Io(error),
            other => JournalError::State(other.to_string()),
        }
    }
}

/// How many whole quarters are used, of so many in all.
fn quarters_of((used, all): (usize, usize)) -> usize {
    (used * 4).saturating_sub(1) / all.max(1)
}

/// Destaging writes that the journal asks for at a time, in its first to last quarter.
const DESTAGES: [usize; 4] = [0, 2, 4, DESTAGES_IN_FLIGHT];
/// The same when somebody waits.
const DESTAGES_IN_FLIGHT: usize = 16;
