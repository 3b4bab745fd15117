//! What a restart accepts of a log, and what it refuses.
//!
//! Law: after a clean close nothing is read but the checkpoint. After a crash the batches behind
//! the recovery point are read, each accepted by checksum, offset and epoch. A torn write is cut
//! where its first bad batch begins; anything else that is bad takes the log offline, by name,
//! and leaves every byte as it is. What is accepted is made durable before it is served
//! (KAFKA-10101), and so is the end that is found: what a killed process took away stays away. Each
//! step may be cut short by another crash and is then simply done again.
//!
//! Derived files that are missing or damaged are made again from the batches.

mod derived;
mod ending;
mod inventory;
mod scanner;
mod walk;

pub use derived::{Entries, load_index};
pub use ending::{Ending, Survey};
pub use inventory::{Inventory, is_beginning};
pub use scanner::{Scanner, Step};

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use runtime::local::Event;

use crate::checkpoint::Checkpoint;
use crate::compaction::exchange::{self, Unfinished};
use crate::compaction::{self};
use crate::directory::{Identity, SegmentFile};
use crate::epochs::LeaderEpochs;
use crate::errors::OpenError;
use crate::index::SegmentIndex;
use crate::journal::{LEFTOVER_FILE_NAME, Leftover, Refused, retry};
use crate::log::{Log, LogInner, ReadEnd, State};
use crate::options::LogOptions;
use crate::producer::Producers;
use crate::segment::{ActiveSegment, IndexFlushed, RollsFrom};
use crate::store::Storage;
use walk::Walk;

/// What opening a log found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The log had been closed in order.
    pub clean: bool,
    /// The host's incarnation that wrote the last checkpoint.
    pub incarnation: i64,
    /// Bytes of segments that were read.
    pub scanned_bytes: u64,
    /// Bytes cut from the end, and the offset they began at.
    pub cut_bytes: u64,
    pub cut_at_offset: Option<i64>,
    /// A batch was there but not whole: the last acknowledged one may be missing.
    pub possibly_short: bool,
    /// Derived files that had to be made again.
    pub rebuilt: Vec<&'static str>,
}

impl RecoveryReport {
    fn mark(&self) {
        if self.clean {
            runtime::reached("recovery: closed in order");
        } else if self.scanned_bytes > 0 {
            runtime::reached("recovery: batches read");
        }
        if self.cut_at_offset.is_some() {
            runtime::reached("recovery: torn write cut");
        }
        if self.possibly_short {
            runtime::reached("recovery: possibly short");
        }
        if !self.rebuilt.is_empty() {
            runtime::reached("recovery: derived files made again");
        }
    }
}

/// Opens the log in its directory.
pub async fn open(
    storage: &Storage,
    topic: &str,
    identity: Identity,
    options: Rc<LogOptions>,
) -> Result<(Log, RecoveryReport), OpenError> {
    let dir = storage.log_dir(topic, identity.partition);
    finish_exchange(&dir, identity).await?;
    let mut inventory = Inventory::take(&dir, identity).await?;
    if inventory.has_journal_leftover {
        apply_leftover(storage, topic, identity, &dir).await?;
        inventory = Inventory::take(&dir, identity).await?;
    }
    let checkpoint = inventory.checkpoint;
    let log = blank(storage, topic, identity, options, checkpoint, inventory.checkpoint_sequence);
    let mut walk = Walk::new(&log.inner, &inventory);
    let result = walk.run().await;
    let report = match result {
        Ok(report) => report,
        Err(error) => {
            storage.open_files().forget_log(log.inner.number);
            return Err(error);
        }
    };
    if report.clean && inventory.must_settle_checkpoint() {
        log.inner.sync_checkpoint().await?;
    }
    let inventory_has_cleaned_to = inventory.has_cleaned_to;
    inventory.remove_leftovers(storage).await?;
    let short = report.possibly_short;
    if short && !checkpoint.possibly_short {
        log.inner.change_checkpoint(|checkpoint| checkpoint.possibly_short = true).await;
    }
    report.mark();
    if inventory_has_cleaned_to {
        let cleaned_to = compaction::load(&dir).await?;
        log.inner.state.borrow_mut().cleaned_to = cleaned_to;
    }
    if !report.clean {
        log.inner.finish_sealed_in_background();
    }
    Ok((log, report))
}

/// An exchange of segments that was ordered is finished before anything is looked at.
async fn finish_exchange(dir: &Path, identity: Identity) -> Result<(), OpenError> {
    let damaged = |file: PathBuf, offset, position, reason| {
        Err(OpenError::Damaged { file, offset, position, reason })
    };
    match exchange::finish(dir, identity).await {
        Ok(_) => Ok(()),
        Err(Unfinished::Io(error)) => Err(error.into()),
        Err(Unfinished::Order(why)) => {
            damaged(dir.join(exchange::EXCHANGE_FILE_NAME), -1, 0, why.to_string())
        }
        Err(Unfinished::Length { base, expected, found }) => {
            let reason = format!("the cleaned segment should have {expected} bytes");
            damaged(dir.join(SegmentFile::Log.name(base)), base, found, reason)
        }
    }
}

/// Batches that a journal had and the segment did not take, when the host started.
async fn apply_leftover(
    storage: &Storage,
    topic: &str,
    identity: Identity,
    dir: &std::path::Path,
) -> Result<(), OpenError> {
    let path = dir.join(LEFTOVER_FILE_NAME);
    let file = runtime::fs::read(&path).await?;
    let (offset, applied) = match Leftover::from_file(&file) {
        Ok(leftover) => {
            let first = leftover.entries.first();
            let offset = first.map_or(-1, |entry| entry.head.base_offset);
            (offset, retry(storage, topic, identity, &leftover).await)
        }
        Err(error) => (-1, Err(Refused::Damaged(error.to_string()))),
    };
    // What cannot be read now is tried again later.
    if let Err(Refused::Io(error)) = applied {
        return Err(error.into());
    }
    if let Err(reason) = applied {
        let reason = format!("batches that only the journal had are missing: {reason}");
        return Err(OpenError::Damaged { file: path, offset, position: 0, reason });
    }
    runtime::fs::remove_file(&path).await?;
    runtime::fs::sync_dir(dir).await?;
    Ok(())
}

/// The log that `create_log` has just made.
pub fn empty_log(
    storage: &Storage,
    topic: &str,
    identity: Identity,
    options: Rc<LogOptions>,
    checkpoint: Checkpoint,
) -> Log {
    blank(storage, topic, identity, options, checkpoint, 1)
}

/// A log without segments that ends at its checkpoint.
fn blank(
    storage: &Storage,
    topic: &str,
    identity: Identity,
    options: Rc<LogOptions>,
    checkpoint: Checkpoint,
    checkpoint_sequence: u64,
) -> Log {
    let state = blank_state(storage, checkpoint, checkpoint_sequence);
    let inner = LogInner {
        storage: storage.clone(),
        number: storage.next_log_number(),
        topic: topic.to_owned(),
        partition: identity.partition,
        topic_id: identity.topic_id,
        ownership: runtime::time::now().as_nanos(),
        dir: RefCell::new(storage.log_dir(topic, identity.partition)),
        options: RefCell::new(options),
        turn: Default::default(),
        checkpoint_turn: Default::default(),
        allocation_turn: Default::default(),
        save_turn: Default::default(),
        seal_turn: Default::default(),
        clean_turn: Default::default(),
        uncleanable: Cell::new(false),
        exchanges: Cell::new(0),
        exchanging: Cell::new(false),
        exchanged: Event::new(),
        register_turn: Default::default(),
        waiters: Default::default(),
        advanced: Event::new(),
        destaged: Event::new(),
        read_ends: Cell::new([ReadEnd::NONE; 4]),
        state: RefCell::new(state),
    };
    let log = Log { inner: Rc::new(inner) };
    let jitter_ms = log.inner.draw_jitter();
    {
        let policy = log.inner.index_policy();
        let active = &mut log.inner.state.borrow_mut().active;
        active.jitter_ms = jitter_ms;
        if checkpoint.recovery_point.position == 0 {
            let base = checkpoint.recovery_point.segment_base;
            active.index = Some(SegmentIndex::new(base, policy));
        }
    }
    log
}

/// The state of a log without segments: all up to the checkpoint is durable, and nothing is more.
fn blank_state(storage: &Storage, checkpoint: Checkpoint, checkpoint_sequence: u64) -> State {
    let end = checkpoint.recovery_point.offset;
    let active = ActiveSegment {
        base_offset: checkpoint.recovery_point.segment_base,
        size: 0,
        allocated: 0,
        exists: false,
        index: None,
        index_flushed: IndexFlushed::default(),
        rolls_from: RollsFrom::Unread,
        jitter_ms: 0,
    };
    State {
        sealed: Vec::new(),
        active,
        tail: Default::default(),
        log_start: checkpoint.log_start_offset,
        end,
        committed: end,
        durable: end,
        epochs: LeaderEpochs::new(),
        epochs_saved: true,
        producers: Producers::new(storage.producer_limits(), end),
        turned_away: Default::default(),
        service: Ok(()),
        prepared: false,
        stale_behind_end: false,
        committing: false,
        allocating: false,
        checkpointing: false,
        unchecked_bytes: 0,
        last_append: None,
        unsynced_records: 0,
        sync_scheduled: false,
        cleaned_to: compaction::NOWHERE,
        checkpoint,
        checkpoint_sequence,
        journaling: Default::default(),
    }
}
