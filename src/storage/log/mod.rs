//! One partition: append, group commit, read, truncate, retain.
//!
//! Law: three ends, `durable ≤ committed ≤ end`. `end` is what has been appended, `committed` what
//! the flush policy vouches for, `durable` what is on stable storage; in a strict log the last two
//! are one. Whoever changes the log holds the turn; readers and the commit loop hold nothing over
//! an await. No task runs for a log in which nothing is pending.

mod append;
mod checkpointing;
mod close;
mod commit;
mod committed;
mod disk;
mod indexes;
mod journaling;
mod lookup;
mod prepare;
mod read;
mod retention;
mod roll;
mod seal;
mod tail;
mod truncate;
mod turn;
mod turned_away;
mod waiters;

pub use append::Appended;
pub(crate) use append::producer_batch;
pub(crate) use checkpointing::{parse_snapshot_name, snapshot_name};
pub use committed::Committed;
pub(crate) use journaling::Journaled;
pub use lookup::TimestampOffset;
pub use read::ReadChunk;
pub(crate) use read::ReadEnd;
pub use retention::Retained;
pub(crate) use tail::CHUNK_BYTES_MAX;
pub(crate) use turn::{Turn, TurnGuard};

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use protocol::Uuid;
use runtime::file::{FsError, Mode};
use runtime::local::Event;
use runtime::time::Instant;

use crate::checkpoint::Checkpoint;
use crate::compaction::CleanTurn;
use crate::directory::SegmentFile;
use crate::epochs::{EpochEnd, LeaderEpochs};
use crate::errors::Unavailable;
use crate::index::IndexPolicy;
use crate::journal::Journaling;
use crate::open_files::{FileRole, UsedFile};
use crate::options::LogOptions;
use crate::producer::{ProducerDescription, Producers};
use crate::segment::{ActiveSegment, SealedSegment, TrailerSalt};
use crate::store::Storage;
use tail::Tail;
pub use turned_away::TurnedAway;
use waiters::Waiters;

/// A partition's log on this slot. Clones are the same log.
#[derive(Clone)]
pub struct Log {
    pub(crate) inner: Rc<LogInner>,
}

pub(crate) struct LogInner {
    pub storage: Storage,
    /// Names the log's files and windows within the slot; never given twice.
    pub number: u64,
    pub topic: String,
    pub partition: i32,
    pub topic_id: Uuid,
    /// Greater than that of any earlier opening of the log by this process.
    pub ownership: u64,
    pub dir: RefCell<PathBuf>,
    pub options: RefCell<Rc<LogOptions>>,
    pub turn: Turn,
    pub checkpoint_turn: Turn,
    pub allocation_turn: Turn,
    pub save_turn: Turn,
    pub seal_turn: Turn,
    pub register_turn: Turn,
    pub clean_turn: CleanTurn,
    /// A round met damage: no other is tried until the log is opened again.
    pub uncleanable: Cell<bool>,
    /// How often segments were exchanged. What was read from a sealed segment's file, and what is
    /// known of it, counts only as long as this is the same.
    pub exchanges: Cell<u64>,
    /// Between two sealed segments that have the same base offset: who wants to read waits.
    pub exchanging: Cell<bool>,
    pub exchanged: Event,
    pub waiters: Waiters,
    pub advanced: Event,
    /// Notified when nothing is in the journal alone any more.
    pub destaged: Event,
    /// Where reads from disk ended last, to recognise who reads on.
    pub read_ends: Cell<[ReadEnd; 4]>,
    pub state: RefCell<State>,
}

pub(crate) struct State {
    pub sealed: Vec<SealedSegment>,
    pub active: ActiveSegment,
    pub tail: Tail,
    /// First offset that is served.
    pub log_start: i64,
    /// Offset the next batch gets.
    pub end: i64,
    pub committed: i64,
    pub durable: i64,
    pub epochs: LeaderEpochs,
    pub epochs_saved: bool,
    pub producers: Producers,
    pub turned_away: TurnedAway,
    pub service: Result<(), Unavailable>,
    /// False until the files are ready for the first append since the log was opened.
    pub prepared: bool,
    /// Behind the active segment's end there may be bytes of an unfinished write.
    pub stale_behind_end: bool,
    pub committing: bool,
    pub allocating: bool,
    pub checkpointing: bool,
    /// Bytes written since the recovery point moved.
    pub unchecked_bytes: u64,
    pub last_append: Option<Instant>,
    /// Of a relaxed log: records that only the page cache has.
    pub unsynced_records: u64,
    pub sync_scheduled: bool,
    /// Up to here the log was cleaned, as far as is known.
    pub cleaned_to: i64,
    pub checkpoint: Checkpoint,
    pub checkpoint_sequence: u64,
    pub journaling: Journaling,
}

impl Log {
    pub fn topic(&self) -> &str {
        &self.inner.topic
    }

    pub fn partition(&self) -> i32 {
        self.inner.partition
    }

    pub fn topic_id(&self) -> Uuid {
        self.inner.topic_id
    }

    /// First offset that is served. Never falls.
    pub fn log_start_offset(&self) -> i64 {
        self.inner.state.borrow().log_start
    }

    /// Offset that the next batch gets.
    pub fn log_end_offset(&self) -> i64 {
        self.inner.state.borrow().end
    }

    /// Behind everything that the flush policy vouches for: what may be acknowledged and, with
    /// one replica, shown to consumers.
    pub fn committed_end(&self) -> i64 {
        self.inner.state.borrow().committed
    }

    /// Behind everything that is on stable storage.
    pub fn durable_end(&self) -> i64 {
        self.inner.state.borrow().durable
    }

    /// With a single replica, what is committed here is committed.
    pub fn high_watermark(&self) -> i64 {
        self.committed_end()
    }

    /// Up to here no transaction is open. None can be, so far, so it is the high watermark.
    pub fn last_stable_offset(&self) -> i64 {
        self.committed_end()
    }

    /// Notified when the committed end or the log start moved, or the log stopped to serve.
    pub fn advanced(&self) -> &Event {
        &self.inner.advanced
    }

    /// Bytes of batches, those below the log start offset included as long as they are there.
    pub fn size_bytes(&self) -> u64 {
        self.inner.state.borrow().size_bytes()
    }

    /// Number of segments, the active one included.
    pub fn segments(&self) -> usize {
        self.inner.state.borrow().sealed.len() + 1
    }

    /// Leader epoch of the last batch, or begun since; −1 before the first.
    pub fn latest_epoch(&self) -> i32 {
        self.inner.state.borrow().epochs.latest().map_or(-1, |latest| latest.epoch)
    }

    /// Where `epoch` ended, as OffsetForLeaderEpoch answers it (KIP-101, KIP-279).
    pub fn end_offset_for_epoch(&self, epoch: i32) -> EpochEnd {
        let state = self.inner.state.borrow();
        state.epochs.end_offset_for(epoch, state.end)
    }

    /// Leader epoch of the record at `offset`.
    pub fn epoch_at(&self, offset: i64) -> Option<i32> {
        self.inner.state.borrow().epochs.epoch_at(offset)
    }

    /// From now on this leader epoch holds: its first batch will be at the log's end.
    pub fn begin_epoch(&self, epoch: i32) {
        let state = &mut *self.inner.state.borrow_mut();
        let start_offset = state.end;
        if state.epochs.latest().is_none_or(|latest| latest.epoch < epoch) {
            state.begin_epoch(epoch, start_offset);
        }
    }

    /// The idempotent producers that are remembered, by producer id.
    pub fn producers(&self) -> Vec<ProducerDescription> {
        self.inner.state.borrow().producers.describe()
    }

    /// The last recovery had to cut a batch, so the last acknowledged one may be missing.
    pub fn is_possibly_short(&self) -> bool {
        self.inner.state.borrow().checkpoint.possibly_short
    }

    pub fn options(&self) -> Rc<LogOptions> {
        self.inner.options()
    }

    /// Holds from the next append, roll or retention on.
    pub fn set_options(&self, options: Rc<LogOptions>) {
        *self.inner.options.borrow_mut() = options;
    }
}

impl LogInner {
    pub fn options(&self) -> Rc<LogOptions> {
        Rc::clone(&self.options.borrow())
    }

    /// `<topic>-<partition>`
    pub fn name(&self) -> String {
        crate::directory::log_dir_name(&self.topic, self.partition)
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.borrow().join(file)
    }

    pub fn segment_path(&self, base_offset: i64, file: SegmentFile) -> PathBuf {
        self.path(&file.name(base_offset))
    }

    pub fn salt(&self, segment: i64) -> TrailerSalt {
        TrailerSalt::new(self.topic_id.0, self.partition, segment)
    }

    pub fn index_policy(&self) -> IndexPolicy {
        let options = self.options.borrow();
        IndexPolicy {
            interval_bytes: options.index_interval_bytes,
            bytes_max: options.segment_index_bytes,
        }
    }

    /// Whether offsets may be missing between batches, as compaction leaves them.
    pub fn has_gaps(&self) -> bool {
        self.options.borrow().cleanup_compact || self.state.borrow().checkpoint.thinned
    }

    pub fn exchanges(&self) -> u64 {
        self.exchanges.get()
    }

    /// Waits while segments change hands.
    pub async fn wait_for_exchange(&self) {
        loop {
            let listen = self.exchanged.listen();
            if !self.exchanging.get() {
                return;
            }
            listen.await;
        }
    }

    pub fn check_service(&self) -> Result<(), Unavailable> {
        self.state.borrow().service
    }

    /// How the active segment is written.
    pub fn write_mode(&self) -> Mode {
        match (self.options.borrow().is_strict(), self.storage.direct_io()) {
            (true, true) => Mode::DirectSync,
            (true, false) => Mode::BufferedSync,
            (false, _) => Mode::Buffered,
        }
    }

    pub async fn file_for_writing(&self, segment: i64) -> Result<UsedFile, FsError> {
        self.segment_file(segment, self.write_mode()).await
    }

    pub async fn file_for_reading(&self, segment: i64) -> Result<UsedFile, FsError> {
        let active = self.state.borrow().active.base_offset == segment;
        let mode = match (active, self.storage.direct_io()) {
            (true, _) => self.write_mode(),
            (false, true) => Mode::Direct,
            (false, false) => Mode::Buffered,
        };
        self.segment_file(segment, mode).await
    }

    pub async fn segment_file(&self, segment: i64, mode: Mode) -> Result<UsedFile, FsError> {
        let path = self.segment_path(segment, SegmentFile::Log);
        let key = (self.number, FileRole::Segment(segment));
        let file = self.storage.open_files().get(key, &path, mode).await;
        if self.check_service().is_err() {
            // Whoever came too late to be told so must not leave a file open behind the log's end.
            self.storage.open_files().forget(key);
        }
        file
    }

    /// Nobody can say any more what the disk holds: the process ends.
    pub fn abort(&self, path: &Path, error: &FsError) -> ! {
        let name = self.name();
        runtime::abort(&format!("{name}: {}: {error}; stopping", path.display()))
    }

    /// For the slot's memory: lets go of the oldest chunk that is written.
    pub fn evict_oldest_chunk(&self) -> Option<usize> {
        self.state.borrow_mut().tail.evict_oldest()
    }
}

impl State {
    pub fn size_bytes(&self) -> u64 {
        self.sealed.iter().map(|segment| segment.size).sum::<u64>() + self.active.size
    }

    /// Base offset of the oldest segment.
    pub fn first_base(&self) -> i64 {
        self.sealed.first().map_or(self.active.base_offset, |segment| segment.base_offset)
    }

    pub fn begin_epoch(&mut self, epoch: i32, start_offset: i64) {
        let start = crate::epochs::EpochStart { epoch, start_offset };
        if self.epochs.assign(start) {
            self.epochs_saved = false;
        }
    }

    pub fn assert_ends(&self) {
        let State { log_start, durable, committed, end, .. } = *self;
        assert!(durable <= committed && committed <= end, "{durable} ≤ {committed} ≤ {end}");
        assert!(log_start <= end && self.first_base() <= log_start.max(self.active.base_offset));
    }
}
