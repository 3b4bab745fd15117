//! One partition that this slot leads: its log, its leader epoch, and who waits for it.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::{Rc, Weak};
use std::time::Duration;

use metadata::image::OpenedPartition;
use protocol::batch::BatchHeader;
use protocol::messages::fetch::EpochEndOffset;
use protocol::{ErrorCode, NodeId, Str, Uuid};
use runtime::local::Event;
use runtime::{task, time};
use storage::epochs::EpochEnd;
use storage::{Log, LogOptions, OpenError, RecoveryReport, TurnedAway};

use crate::fetch::Interest;
use crate::monitor::Timeline;
use crate::shard::{LeaderHint, LocalTopic, log_options};
use crate::slot::Slot;

/// Why a partition cannot be served now.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unavailable {
    #[error("the partition is being opened")]
    Opening,
    #[error("the partition is offline: {0}")]
    Offline(String),
    /// Another slot of the host is about to serve it: whoever asks waits for that.
    #[error("the partition is moving to another core")]
    Moving,
    #[error("the partition is closed")]
    Closed,
}

impl Unavailable {
    /// What a client is told that asks for the partition.
    pub fn code(&self) -> ErrorCode {
        match self {
            Unavailable::Offline(_) => ErrorCode::KAFKA_STORAGE_ERROR,
            Unavailable::Opening | Unavailable::Moving | Unavailable::Closed => {
                ErrorCode::NOT_LEADER_OR_FOLLOWER
            }
        }
    }
}

/// What became of an attempt to open a log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// It is open, or damaged: trying again would change nothing.
    Over,
    NoRoom,
    Unreadable,
}

impl Attempt {
    fn after(error: &OpenError) -> Attempt {
        match error {
            OpenError::Io(why) if why.is_full() => Attempt::NoRoom,
            OpenError::Io(why) if why.was_reading() => Attempt::Unreadable,
            _ => Attempt::Over,
        }
    }
}

/// A partition of this slot.
pub struct Partition {
    pub topic: Str,
    pub topic_id: Uuid,
    pub index: i32,
    owner: Weak<LocalTopic>,
    node: Cell<NodeId>,
    leader_epoch: Cell<i32>,
    state: RefCell<Result<Log, Unavailable>>,
    /// The log that was let go, for what can be told of it while its partition is moving.
    let_go: RefCell<Option<Log>>,
    /// Its log is being opened, or closed to be handed over.
    busy: Cell<bool>,
    /// Notified when `busy` or `state` has changed.
    changed: Event,
    timeline: RefCell<Timeline>,
    /// Before the log is open.
    turned_away: RefCell<TurnedAway>,
}

impl Partition {
    /// `turned_away` is what the slot turned away that had it before.
    pub fn new(
        owner: &Rc<LocalTopic>,
        opened: &OpenedPartition,
        turned_away: TurnedAway,
    ) -> Partition {
        Partition {
            topic: owner.name.clone(),
            topic_id: owner.id,
            index: opened.index,
            owner: Rc::downgrade(owner),
            node: Cell::new(NodeId(-1)),
            leader_epoch: Cell::new(opened.partition.leader_epoch),
            state: RefCell::new(Err(Unavailable::Opening)),
            let_go: RefCell::default(),
            busy: Cell::new(false),
            changed: Event::new(),
            timeline: RefCell::default(),
            turned_away: RefCell::new(turned_away),
        }
    }

    /// The topic that it is a part of, as long as that is served here.
    pub fn owner(&self) -> Option<Rc<LocalTopic>> {
        self.owner.upgrade()
    }

    /// When its records were appended, for monitoring.
    pub fn timeline(&self) -> RefMut<'_, Timeline> {
        self.timeline.borrow_mut()
    }

    /// `topic-index`, as in file names and log lines.
    pub fn name(&self) -> String {
        format!("{}-{}", self.topic, self.index)
    }

    pub fn log(&self) -> Result<Log, Unavailable> {
        self.state.borrow().clone()
    }

    /// Notes a batch that the log could not take because it is not open.
    pub fn turn_away(&self, header: &BatchHeader) {
        self.turned_away.borrow_mut().note_batch(header);
    }

    /// Notified when the partition has been opened or closed, or has gone to another slot.
    pub fn changed(&self) -> &Event {
        &self.changed
    }

    pub fn is_moving(&self) -> bool {
        matches!(&*self.state.borrow(), Err(Unavailable::Moving))
    }

    /// The log that does not serve any more, while the partition is moving.
    pub fn log_let_go(&self) -> Option<Log> {
        self.let_go.borrow().clone()
    }

    /// Waits until it is known who serves the partition from now on.
    pub async fn moved(&self) {
        loop {
            let changed = self.changed.listen();
            if !self.is_moving() {
                return;
            }
            changed.await;
        }
    }

    pub fn is_offline(&self) -> bool {
        matches!(&*self.state.borrow(), Err(Unavailable::Offline(_)))
    }

    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch.get()
    }

    pub fn leader_hint(&self) -> LeaderHint {
        LeaderHint { node: self.node.get(), epoch: self.leader_epoch.get() }
    }

    /// Opens the log; on damage the partition stays offline and says so. Where room was missing
    /// or the disk could not be read, it is tried again.
    pub async fn open(self: Rc<Self>, slot: &Rc<Slot>) {
        self.node.set(slot.node);
        let attempt = self.try_open(slot).await;
        if attempt != Attempt::Over {
            task::spawn(self.keep_trying(slot.clone(), attempt));
        }
    }

    async fn keep_trying(self: Rc<Self>, slot: Rc<Slot>, first: Attempt) {
        let (mut attempt, mut pause) = (first, RETRY_PAUSE);
        loop {
            let longest = match attempt {
                Attempt::Over => return,
                Attempt::NoRoom => ROOM_PAUSE_MAX,
                Attempt::Unreadable => READ_PAUSE_MAX,
            };
            pause = pause.min(longest);
            time::sleep(pause).await;
            pause *= 2;
            if !matches!(&*self.state.borrow(), Err(Unavailable::Offline(_))) {
                return;
            }
            attempt = self.try_open(&slot).await;
        }
    }

    async fn try_open(&self, slot: &Slot) -> Attempt {
        self.busy.set(true);
        let opened = self.open_log(slot).await;
        let mut attempt = Attempt::Over;
        let state = match opened {
            Ok((log, report)) => {
                self.say(&report);
                log.begin_epoch(self.leader_epoch.get());
                log.remember_turned_away(self.turned_away.take());
                Ok(log)
            }
            Err(OpenError::Io(why)) if !why.is_full() && !why.was_reading() => {
                // Nobody can say any more what the disk holds.
                runtime::abort(&format!("{}: {why}; stopping", self.name()));
            }
            Err(why) => {
                tracing::error!(partition = %self.name(), %why, "the partition is offline");
                attempt = Attempt::after(&why);
                Err(Unavailable::Offline(why.to_string()))
            }
        };
        *self.state.borrow_mut() = state;
        self.busy.set(false);
        self.changed.notify_all();
        attempt
    }

    /// Waits until the log is not being opened or closed.
    async fn settle(&self) {
        while self.busy.get() {
            self.changed.listen().await;
        }
    }

    /// A topic made anew under an old name may find the old one's directory, which another slot
    /// is about to take away.
    async fn open_log(&self, slot: &Slot) -> Result<(Log, RecoveryReport), OpenError> {
        let options = self.owner.upgrade().map(|owner| log_options(&owner.settings()));
        let options = Rc::new(options.unwrap_or_default());
        let deadline = time::now() + PREDECESSOR_WAIT;
        loop {
            let opened = slot
                .storage
                .open_or_create(&self.topic, self.index, self.topic_id, options.clone())
                .await;
            match opened {
                Err(OpenError::Foreign { found, .. })
                    if time::now() < deadline && slot.image().topic_by_id(found).is_none() =>
                {
                    time::sleep(PREDECESSOR_POLL).await;
                }
                opened => return opened,
            }
        }
    }

    fn say(&self, report: &RecoveryReport) {
        if let Some(offset) = report.cut_at_offset {
            let (partition, bytes) = (self.name(), report.cut_bytes);
            tracing::warn!(partition, offset, bytes, "cut an unfinished write from the log's end");
        }
        if !report.rebuilt.is_empty() {
            tracing::info!(partition = %self.name(), rebuilt = ?report.rebuilt, "derived files");
        }
    }

    pub fn log_start_offset(&self) -> Option<i64> {
        self.log().ok().map(|log| log.log_start_offset())
    }

    pub fn begin_epoch(&self, epoch: i32) {
        self.leader_epoch.set(epoch);
        if let Ok(log) = self.log() {
            log.begin_epoch(epoch);
            // Whoever waits under the old epoch has to learn of the new one.
            log.advanced().notify_all();
        }
    }

    pub fn set_options(&self, options: Rc<LogOptions>) {
        if let Ok(log) = self.log() {
            log.set_options(options);
        }
    }

    /// Ends the service so that another slot can begin it: what was appended is committed and
    /// answered, the log is closed in order, and who asks from now on waits for the new owner.
    /// Returns whom the next owner has to turn away as well.
    pub async fn let_go(&self) -> TurnedAway {
        self.settle().await;
        if self.is_moving() {
            return TurnedAway::default();
        }
        if let Ok(log) = self.log() {
            log.prepare_to_close().await;
        }
        let Ok(log) = self.log() else {
            // Nothing is waited for that is not served.
            *self.state.borrow_mut() = Err(Unavailable::Closed);
            self.changed.notify_all();
            return self.turned_away.take();
        };
        self.busy.set(true);
        *self.let_go.borrow_mut() = Some(log.clone());
        *self.state.borrow_mut() = Err(Unavailable::Moving);
        if !runtime::sabotaged("move without draining") {
            log.close().await;
        }
        let mut turned_away = log.take_turned_away();
        turned_away.merge(self.turned_away.take());
        self.busy.set(false);
        self.changed.notify_all();
        turned_away
    }

    /// Closes the log in order; whoever waits is told that another slot leads now.
    pub async fn close(&self) {
        self.settle().await;
        let state = self.state.replace(Err(Unavailable::Closed));
        if let Ok(log) = state {
            log.close().await;
        }
        self.let_go.take();
        self.changed.notify_all();
    }

    /// Takes the partition's files out of sight at once and removes them in the background.
    pub async fn delete(&self, slot: &Slot) {
        self.settle().await;
        let state = self.state.replace(Err(Unavailable::Closed));
        self.let_go.take();
        self.changed.notify_all();
        let deleted = match state {
            Ok(log) => log.delete().await,
            Err(_) => {
                let stray = slot.storage.delete_stray(&self.topic, self.index, self.topic_id);
                stray.await.map(drop)
            }
        };
        match deleted {
            Ok(()) => {}
            Err(why) if why.is_full() || why.was_reading() => {
                let partition = self.name();
                tracing::error!(partition, %why, "cannot delete the partition's files");
            }
            Err(why) => runtime::abort(&format!("{}: {why}; stopping", self.name())),
        }
    }

    /// Where the reader's log parts from ours, if it does (KIP-595). An epoch newer than the log
    /// is answered like an offset out of range.
    pub fn diverging_epoch(
        &self,
        log: &Log,
        interest: &Interest,
    ) -> Result<Option<EpochEndOffset>, ErrorCode> {
        if interest.last_fetched_epoch < 0 {
            return Ok(None);
        }
        let end = log.end_offset_for_epoch(interest.last_fetched_epoch);
        if end == EpochEnd::UNKNOWN {
            return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
        }
        let EpochEnd { epoch, end_offset } = end;
        let diverges = epoch < interest.last_fetched_epoch || end_offset < interest.fetch_offset;
        Ok(diverges.then_some(EpochEndOffset { epoch, end_offset }))
    }
}

/// Before a log that could not be opened is tried again; doubled each time, up to the longest.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
const ROOM_PAUSE_MAX: Duration = Duration::from_secs(4);
const READ_PAUSE_MAX: Duration = Duration::from_secs(60);
/// How long another slot may take to move a deleted namesake out of the way.
const PREDECESSOR_WAIT: Duration = Duration::from_secs(10);
const PREDECESSOR_POLL: Duration = Duration::from_millis(2);
