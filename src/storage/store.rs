//! What the logs of one slot share, and how logs come to be and go.
//!
//! Law: a log's directory is durable, with its identity and its first checkpoint, before anyone
//! learns that it exists; a deleted one leaves its place by one rename, and what is left of it
//! goes in the background, after a crash as well.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::time::Duration;

use protocol::Uuid;
use runtime::file::{AlignedBuf, Block, File, FsError, Mode};
use runtime::time::{Instant, now};

use crate::background;
use crate::checkpoint::{CHECKPOINT_FILE_NAME, Checkpoint, RecoveryPoint};
use crate::directory::{
    DELETED_DIR_NAME, IDENTITY_FILE_NAME, Identity, deleted_dir, log_dir_name, parse_log_dir_name,
};
use crate::disk_turns::DiskTurns;
use crate::errors::{CreateError, OpenError};
use crate::journal::{self, Journal, JournalError, Owners, Replayed, ScanError};
use crate::log::{Log, LogInner};
use crate::memory::Memory;
use crate::open_files::OpenFiles;
use crate::options::{LogOptions, StorageConfig};
use crate::producer::ProducerLimits;
use crate::recovery::{self, RecoveryReport};
use crate::removals::Removals;
use crate::statistics::StorageStats;

/// The storage of one slot. Clones are the same storage.
#[derive(Clone)]
pub struct Storage {
    parts: Rc<Parts>,
}

struct Parts {
    config: StorageConfig,
    memory: Memory,
    disk_turns: DiskTurns,
    open_files: Rc<OpenFiles>,
    removals: Rc<Removals>,
    stats: Rc<StorageStats>,
    journal: OnceCell<Rc<Journal>>,
    next_log: Cell<u64>,
    clock: Cell<ClockCheck>,
    /// Logs that were written to since their recovery point moved.
    unsettled: RefCell<Vec<Weak<LogInner>>>,
    settling: Cell<bool>,
}

/// Compares the wall clock with the monotonic one, from one retention pass to the next.
#[derive(Clone, Copy, Default)]
struct ClockCheck {
    last: Option<(Instant, i64)>,
    distrusted_until: Option<Instant>,
}

impl Storage {
    pub fn new(config: StorageConfig) -> Storage {
        let memory =
            Memory::new(config.budget.clone(), config.cache_bytes_max, config.index_bytes_max);
        let open_files = Rc::new(OpenFiles::new(config.open_files_max));
        let removals = Rc::new(Removals::new(open_files.clone()));
        let parts = Parts {
            config,
            memory,
            disk_turns: DiskTurns::new(),
            open_files,
            removals,
            stats: Rc::default(),
            journal: OnceCell::new(),
            next_log: Cell::new(0),
            clock: Cell::default(),
            unsettled: RefCell::default(),
            settling: Cell::new(false),
        };
        Storage { parts: Rc::new(parts) }
    }

    /// Makes a new, empty log whose first offset is 0.
    pub async fn create_log(
        &self,
        topic: &str,
        partition: i32,
        topic_id: Uuid,
        options: Rc<LogOptions>,
    ) -> Result<Log, CreateError> {
        let dir = self.log_dir(topic, partition);
        let identity = Identity { topic_id, partition };
        match runtime::fs::list(&dir).await {
            Ok(entries) if entries.iter().any(|entry| entry.name.ends_with(".log")) => {
                return Err(CreateError::Exists(dir));
            }
            Ok(entries) => {
                let made = entries.iter().any(|entry| entry.name == CHECKPOINT_FILE_NAME);
                if made && !recovery::is_beginning(&dir).await.map_err(CreateError::Io)? {
                    return Err(CreateError::Exists(dir));
                }
                // A creation that a crash cut short is begun anew.
                remove_leftover(&dir).await?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(CreateError::Io(error)),
        }
        let checkpoint = Checkpoint {
            topic_id: topic_id.0,
            partition,
            clean: true,
            possibly_short: false,
            relaxed: false,
            thinned: false,
            incarnation: self.parts.config.incarnation,
            log_start_offset: 0,
            recovery_point: RecoveryPoint::at_start(0),
            producers_offset: -1,
            journal: None,
        };
        let made = self.make_files(&dir, identity, &checkpoint).await;
        made.map_err(|error| match error.is_full() {
            true => CreateError::NoSpace(dir.clone()),
            false => CreateError::Io(error),
        })?;
        Ok(recovery::empty_log(self, topic, identity, options, checkpoint))
    }

    async fn make_files(
        &self,
        dir: &Path,
        identity: Identity,
        checkpoint: &Checkpoint,
    ) -> Result<(), FsError> {
        runtime::fs::create_dir_all(dir).await?;
        // Nobody believes the directory before its checkpoint is there, so nothing here needs to
        // be atomic, and each file is made durable once.
        let identity = identity.to_file();
        let mut buffer = AlignedBuf::zeroed(identity.len());
        buffer[..identity.len()].copy_from_slice(identity.as_bytes());
        let block = buffer.freeze().slice(0..identity.len());
        runtime::reached("log made: directory");
        write_new(&dir.join(IDENTITY_FILE_NAME), Mode::BufferedSync, block).await?;
        runtime::reached("log made: identity");
        let both_slots = checkpoint.first_file(FIRST_SEQUENCE);
        write_new(&dir.join(CHECKPOINT_FILE_NAME), self.sync_mode(), both_slots).await?;
        runtime::reached("log made: checkpoint");
        runtime::fs::sync_dir(dir).await?;
        runtime::reached("log made: files durable");
        runtime::fs::sync_dir(self.data_dir()).await
    }

    /// Opens a log that is there, after whatever recovery it needs. Nothing in the directory is
    /// changed when the answer is an error.
    pub async fn open_log(
        &self,
        topic: &str,
        partition: i32,
        topic_id: Uuid,
        options: Rc<LogOptions>,
    ) -> Result<(Log, RecoveryReport), OpenError> {
        recovery::open(self, topic, Identity { topic_id, partition }, options).await
    }

    /// Opens the log, or makes it when there is none or only the beginning of one.
    pub async fn open_or_create(
        &self,
        topic: &str,
        partition: i32,
        topic_id: Uuid,
        options: Rc<LogOptions>,
    ) -> Result<(Log, RecoveryReport), OpenError> {
        match self.open_log(topic, partition, topic_id, Rc::clone(&options)).await {
            Err(OpenError::Missing(_)) => {}
            opened => return opened,
        }
        match self.create_log(topic, partition, topic_id, options).await {
            Ok(log) => Ok((log, RecoveryReport::default())),
            Err(CreateError::Io(error)) => Err(OpenError::Io(error)),
            Err(CreateError::NoSpace(path)) => {
                let source = std::io::ErrorKind::StorageFull.into();
                Err(OpenError::Io(FsError::new("create", &path, source)))
            }
            Err(CreateError::Exists(path)) => Err(OpenError::Missing(path)),
        }
    }

    /// The logs that have a directory here: topic and partition, by name. What they are is only
    /// known once they are opened.
    pub async fn list_logs(&self) -> Result<Vec<(String, i32)>, FsError> {
        let entries = runtime::fs::list(self.data_dir()).await?;
        let names = entries.iter().filter(|entry| entry.is_dir);
        let logs = names.filter_map(|entry| parse_log_dir_name(&entry.name));
        Ok(logs.map(|(topic, partition)| (topic.to_owned(), partition)).collect())
    }

    /// Whose directory this is; none when that cannot be told.
    pub async fn topic_id_of(&self, topic: &str, partition: i32) -> Option<Uuid> {
        let path = self.log_dir(topic, partition).join(IDENTITY_FILE_NAME);
        let file = runtime::fs::read(path).await.ok()?;
        Identity::from_file(&file).ok().map(|identity| identity.topic_id)
    }

    /// Moves a directory that no topic claims (any more) out of the way and removes it in the
    /// background. Returns false when it is not there or names another topic id.
    pub async fn delete_stray(
        &self,
        topic: &str,
        partition: i32,
        topic_id: Uuid,
    ) -> Result<bool, FsError> {
        let from = self.log_dir(topic, partition);
        let Ok(file) = runtime::fs::read(from.join(IDENTITY_FILE_NAME)).await else {
            return Ok(false);
        };
        let identity = Identity { topic_id, partition };
        if Identity::from_file(&file) != Ok(identity) {
            return Ok(false);
        }
        self.move_to_deleted(&from, identity).await?;
        Ok(true)
    }

    /// Begins to remove what deletions before the last stop left behind, and says of how many
    /// partitions. One slot of the host does this, once, at start.
    pub async fn finish_deletions(&self) -> Result<usize, FsError> {
        let root = self.deleted_root();
        // Made ahead: a deletion may come when there is no room for it any more.
        match runtime::fs::create_dir_all(&root).await {
            Err(error) if error.is_full() => return Ok(0),
            made => made?,
        }
        let entries = runtime::fs::list(&root).await?;
        for entry in &entries {
            self.parts.removals.add_dir(root.join(&entry.name));
        }
        Ok(entries.len())
    }

    /// One durable rename; the bytes go in the background. Returns where they are meanwhile.
    pub(crate) async fn move_to_deleted(
        &self,
        from: &Path,
        identity: Identity,
    ) -> Result<PathBuf, FsError> {
        let to = deleted_dir(self.data_dir(), identity);
        runtime::fs::create_dir_all(self.deleted_root()).await?;
        if runtime::fs::exists(&to).await? {
            runtime::fs::remove_dir_all(&to).await?;
        }
        runtime::fs::rename(from, &to).await?;
        runtime::reached("log deleted: renamed");
        runtime::fs::sync_dir(self.deleted_root()).await?;
        runtime::fs::sync_dir(self.data_dir()).await?;
        runtime::reached("log deleted: durable");
        self.parts.removals.add_dir(to.clone());
        Ok(to)
    }

    /// Lets caches go until `bytes` of the budget are free or nothing is left to let go.
    pub fn relieve(&self, bytes: usize) {
        self.parts.memory.make_room(bytes);
    }

    pub(crate) fn config(&self) -> &StorageConfig {
        &self.parts.config
    }

    /// Brings into the segments what only the journals of all slots have, and marks the logs of
    /// which they lost something. One slot of the host does this, once, before any log is opened.
    pub async fn replay_journals(&self, owners: Owners) -> Result<Replayed, ScanError> {
        journal::replay(self, owners).await
    }

    /// Opens the slot's journal, before any of its logs. What journals held before has been
    /// replayed. Without direct I/O there is none: commits cost no device write there.
    pub async fn open_journal(&self, slot: u32) -> Result<(), JournalError> {
        let Some(config) = self.parts.config.journal.filter(|_| self.direct_io()) else {
            return Ok(());
        };
        let (dir, budget) = (self.data_dir(), self.parts.config.budget.clone());
        let stats = Rc::clone(&self.parts.stats);
        let linger = self.parts.config.commit_linger;
        let journal = Journal::open(dir, slot, config, linger, budget, stats).await?;
        assert!(self.parts.journal.set(journal).is_ok(), "the journal is opened once");
        Ok(())
    }

    /// All logs are closed: the next start need not look into the journal.
    pub async fn close_journal(&self) {
        if let Some(journal) = self.parts.journal.get() {
            journal.close().await;
        }
    }

    pub(crate) fn journal(&self) -> Option<&Rc<Journal>> {
        self.parts.journal.get()
    }

    /// Bytes of batches that only the journal has.
    pub fn undestaged_bytes(&self) -> u64 {
        self.parts.journal.get().map_or(0, |journal| journal.undestaged_bytes())
    }

    /// Logs of which the journal has something that is not in their segments.
    pub fn undestaged_logs(&self) -> usize {
        self.parts.journal.get().map_or(0, |journal| journal.undestaged_logs())
    }

    pub fn stats(&self) -> &StorageStats {
        &self.parts.stats
    }

    /// Bytes that tails and read windows hold for readers.
    pub fn cached_bytes(&self) -> usize {
        self.parts.memory.cached_bytes()
    }

    /// Segment and checkpoint files that are open.
    pub fn files_open(&self) -> usize {
        self.parts.open_files.count()
    }

    pub fn data_dir(&self) -> &Path {
        &self.parts.config.data_dir
    }

    pub(crate) fn log_dir(&self, topic: &str, partition: i32) -> PathBuf {
        self.data_dir().join(log_dir_name(topic, partition))
    }

    pub(crate) fn deleted_root(&self) -> PathBuf {
        self.data_dir().join(DELETED_DIR_NAME)
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.parts.memory
    }

    pub(crate) fn disk_turns(&self) -> &DiskTurns {
        &self.parts.disk_turns
    }

    /// Reads of windows that the disk has been asked for.
    pub fn disk_reads_under_way(&self) -> usize {
        self.parts.disk_turns.under_way()
    }

    pub(crate) fn removals(&self) -> &Rc<Removals> {
        &self.parts.removals
    }

    pub(crate) fn open_files(&self) -> &OpenFiles {
        &self.parts.open_files
    }

    pub(crate) fn direct_io(&self) -> bool {
        self.parts.config.direct_io
    }

    pub(crate) fn incarnation(&self) -> i64 {
        self.parts.config.incarnation
    }

    /// How files are written whose every write is durable.
    pub(crate) fn sync_mode(&self) -> Mode {
        if self.direct_io() { Mode::DirectSync } else { Mode::BufferedSync }
    }

    pub(crate) fn producer_limits(&self) -> ProducerLimits {
        ProducerLimits {
            expiration_ms: self.parts.config.producer_expiration_ms,
            producers_max: PRODUCERS_PER_LOG_MAX,
        }
    }

    /// After the wall clock has jumped by more than ten minutes, deletion by age pauses for a
    /// while: a wrong clock must not empty the topics.
    pub(crate) fn clock_has_jumped(&self, now_ms: i64) -> bool {
        let now = now();
        let mut check = self.parts.clock.get();
        if let Some((then, then_ms)) = check.last {
            let passed_ms = now.since(then).as_millis() as i64;
            if (now_ms - then_ms - passed_ms).abs() > CLOCK_JUMP_MS {
                check.distrusted_until = Some(now + CLOCK_DISTRUST);
            }
        }
        check.last = Some((now, now_ms));
        let jumped = check.distrusted_until.is_some_and(|until| now < until);
        self.parts.clock.set(check);
        jumped
    }

    /// The log was written to: once it is quiet, its recovery point moves to its end, so that a
    /// start after a crash reads only what was written last.
    pub(crate) fn note_written(&self, log: &Rc<LogInner>) {
        self.parts.unsettled.borrow_mut().push(Rc::downgrade(log));
        if !self.parts.settling.replace(true) {
            let storage = self.clone();
            background::start(async move { storage.settle_quiet_logs().await });
        }
    }

    /// Runs as long as there are logs to settle.
    async fn settle_quiet_logs(self) {
        loop {
            runtime::time::sleep(SETTLE_AFTER).await;
            let logs = std::mem::take(&mut *self.parts.unsettled.borrow_mut());
            for weak in logs {
                let Some(log) = weak.upgrade() else { continue };
                if log.maybe_settle(SETTLE_AFTER).await {
                    self.parts.unsettled.borrow_mut().push(weak);
                }
            }
            if self.parts.unsettled.borrow().is_empty() {
                self.parts.settling.set(false);
                return;
            }
        }
    }

    pub(crate) fn next_log_number(&self) -> u64 {
        let number = self.parts.next_log.get();
        self.parts.next_log.set(number + 1);
        number
    }
}

/// One write that makes a new file durable, but for its name.
async fn write_new(path: &Path, mode: Mode, block: Block) -> Result<(), FsError> {
    let file = File::create_new(path, mode).await?;
    file.write_at(0, block).await?;
    file.close().await
}

async fn remove_leftover(dir: &Path) -> Result<(), CreateError> {
    runtime::fs::remove_dir_all(dir).await.map_err(CreateError::Io)
}

/// A log without appends for this long is quiet.
const SETTLE_AFTER: Duration = Duration::from_secs(5);
const CLOCK_JUMP_MS: i64 = 600_000;
const CLOCK_DISTRUST: Duration = Duration::from_secs(300);
const FIRST_SEQUENCE: u64 = 1;
/// Producers that one log remembers at most.
const PRODUCERS_PER_LOG_MAX: usize = 100_000;
