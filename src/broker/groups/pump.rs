//! Between the decisions about groups and the world: one partition's log, clock and answers.
//!
//! Law: decisions are synchronous and in order; their records go to the log in that order, all
//! that gathered meanwhile in one batch; no answer leaves before everything that was decided up
//! to it is durable. When the log does not take a batch, the state is dropped and loaded again.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use coordinator::{Coordinator, Output, Record, Reply, Sweep, Ticket, World};
use protocol::batch::{BatchBuilder, Compression, NewRecord, ProduceRules, validate_for_append};
use protocol::{ErrorCode, Str};
use runtime::local::Event;
use runtime::mesh::{OneshotReceiver, OneshotSender, oneshot};
use runtime::task::{Either, race};
use runtime::{task, time};
use storage::Log;

use super::load;
use crate::controller::random;
use crate::dispatch::pause_if_long;
use crate::shard::Partition;
use crate::slot::Slot;

/// How far decisions had come when an answer was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    life: u64,
    decided: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Loading,
    Serving,
    Closed,
}

/// Coordinates the groups of one partition.
pub struct Pump {
    partition: Rc<Partition>,
    coordinator: RefCell<Coordinator>,
    status: Cell<Status>,
    /// Grows when the state is dropped: marks of an earlier life are never reached.
    life: Cell<u64>,
    decided: Cell<u64>,
    durable: Cell<u64>,
    unwritten: RefCell<Vec<Record>>,
    waiting: RefCell<BTreeMap<Ticket, OneshotSender<(Reply, Mark)>>>,
    next_ticket: Cell<u64>,
    /// How large the log's active segment becomes before it is seen whether to seal it.
    seal_at: Cell<u64>,
    /// Something is to be written, or the pump was closed.
    stirred: Event,
    /// Until when `keep_time` sleeps, and what wakes it before.
    sleeps_until_ms: Cell<i64>,
    hurried: Event,
    /// `durable`, `life` or `status` changed.
    settled: Event,
}

impl Pump {
    pub fn start(slot: &Rc<Slot>, partition: Rc<Partition>) -> Rc<Pump> {
        let pump = Rc::new(Pump {
            partition,
            coordinator: RefCell::default(),
            status: Cell::new(Status::Loading),
            life: Cell::new(0),
            decided: Cell::new(0),
            durable: Cell::new(0),
            unwritten: RefCell::default(),
            waiting: RefCell::default(),
            next_ticket: Cell::new(0),
            seal_at: Cell::new(HISTORY_BYTES_AT_START),
            stirred: Event::new(),
            sleeps_until_ms: Cell::new(i64::MAX),
            hurried: Event::new(),
            settled: Event::new(),
        });
        task::spawn(pump.clone().run(slot.clone()));
        task::spawn(pump.clone().keep_time(slot.clone()));
        pump
    }

    pub fn serves(&self, partition: &Rc<Partition>) -> bool {
        Rc::ptr_eq(&self.partition, partition)
    }

    pub fn close(&self) {
        self.status.set(Status::Closed);
        self.drop_state();
    }

    pub fn check_serving(&self) -> Result<(), ErrorCode> {
        match self.status.get() {
            Status::Serving => Ok(()),
            Status::Loading => Err(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS),
            Status::Closed => Err(ErrorCode::NOT_COORDINATOR),
        }
    }

    /// Decides something now. The answer holds once its mark is durable.
    pub fn decide<R>(
        &self,
        slot: &Slot,
        verb: impl FnOnce(&mut Coordinator, &World<'_>) -> (Output, R),
    ) -> (R, Mark) {
        let (settings, image) = (slot.groups.settings(slot), slot.image());
        let world = World {
            now_ms: now_ms(),
            wall_ms: time::wall_ms(),
            random: random(),
            settings: &settings,
            image: &image,
        };
        let (output, answer) = verb(&mut self.coordinator.borrow_mut(), &world);
        if !output.records.is_empty() {
            self.decided.set(self.decided.get() + output.records.len() as u64);
            self.unwritten.borrow_mut().extend(output.records);
            self.stirred.notify_all();
        }
        let mark = self.mark();
        for (ticket, reply) in output.replies {
            if let Some(sender) = self.waiting.borrow_mut().remove(&ticket) {
                // Whoever asked may have left.
                let _ = sender.send((reply, mark));
            }
        }
        if self.next_alarm_ms() < self.sleeps_until_ms.get() {
            self.hurried.notify_all();
        }
        (answer, mark)
    }

    /// Asks something whose answer may come later.
    pub fn ask(
        &self,
        slot: &Slot,
        verb: impl FnOnce(&mut Coordinator, &World<'_>, Ticket) -> Output,
    ) -> OneshotReceiver<(Reply, Mark)> {
        let ticket = Ticket(self.next_ticket.get());
        self.next_ticket.set(ticket.0 + 1);
        let (sender, answer) = oneshot();
        self.waiting.borrow_mut().insert(ticket, sender);
        self.decide(slot, |coordinator, world| (verb(coordinator, world, ticket), ()));
        answer
    }

    /// Looks at the state without changing it.
    pub fn look<R>(&self, look: impl FnOnce(&Coordinator) -> R) -> (R, Mark) {
        (look(&self.coordinator.borrow()), self.mark())
    }

    /// Looks at the state and at the world without changing either.
    pub fn ask_about<R>(
        &self,
        slot: &Slot,
        look: impl FnOnce(&Coordinator, &World<'_>) -> R,
    ) -> (R, Mark) {
        self.decide(slot, |coordinator, world| (Output::default(), look(coordinator, world)))
    }

    /// Waits until everything up to the mark is durable.
    pub async fn durable(&self, mark: Mark) -> Result<(), ErrorCode> {
        loop {
            let settled = self.settled.listen();
            if self.life.get() != mark.life {
                return Err(ErrorCode::NOT_COORDINATOR);
            }
            if self.durable.get() >= mark.decided {
                return Ok(());
            }
            settled.await;
        }
    }

    pub fn on_topics_deleted(&self, slot: &Slot, topics: &BTreeSet<Str>) {
        if self.check_serving().is_ok() {
            self.decide(slot, |coordinator, _| {
                coordinator.on_topics_deleted(topics.clone());
                (Output::default(), ())
            });
        }
    }

    pub fn on_topics_changed(&self, slot: &Slot, topics: &BTreeSet<Str>) {
        if self.check_serving().is_ok() {
            self.decide(slot, |coordinator, world| {
                coordinator.on_topics_changed(world, topics);
                (Output::default(), ())
            });
        }
    }

    fn mark(&self) -> Mark {
        Mark { life: self.life.get(), decided: self.decided.get() }
    }

    fn drop_state(&self) {
        *self.coordinator.borrow_mut() = Coordinator::default();
        self.unwritten.borrow_mut().clear();
        self.waiting.borrow_mut().clear();
        self.life.set(self.life.get() + 1);
        self.durable.set(self.decided.get());
        self.stirred.notify_all();
        self.hurried.notify_all();
        self.settled.notify_all();
    }

    /// Loads and writes until the pump is closed.
    async fn run(self: Rc<Self>, slot: Rc<Slot>) {
        while self.status.get() != Status::Closed {
            if let Ok(log) = self.partition.log()
                && self.load(&slot, &log).await
            {
                self.write_all(&log).await;
                if self.status.get() == Status::Closed {
                    return;
                }
                self.status.set(Status::Loading);
                self.drop_state();
            }
            time::sleep(RELOAD_PAUSE).await;
        }
    }

    async fn load(&self, slot: &Slot, log: &Log) -> bool {
        let begun = time::now();
        match load::load(log).await {
            Ok(_) if self.status.get() == Status::Closed => false,
            Ok(loaded) => {
                runtime::reached("groups: loaded");
                *self.coordinator.borrow_mut() = loaded;
                self.status.set(Status::Serving);
                self.decide(slot, |coordinator, world| (coordinator.on_loaded(world), ()));
                let (took, partition) = (time::now().since(begun), self.partition.name());
                tracing::debug!(partition, took_ms = took.as_millis() as u64, "groups loaded");
                true
            }
            Err(why) => {
                tracing::error!(partition = %self.partition.name(), %why, "cannot load groups");
                false
            }
        }
    }

    /// Writes what is decided until that fails or the pump is closed.
    async fn write_all(&self, log: &Log) {
        while self.status.get() != Status::Closed {
            let stirred = self.stirred.listen();
            let (records, mark) = (self.unwritten.take(), self.mark());
            if records.is_empty() {
                stirred.await;
                continue;
            }
            if let Err(why) = self.write(log, &records).await {
                if self.status.get() == Status::Closed {
                    return;
                }
                let partition = self.partition.name();
                tracing::error!(partition, why, "records of groups were not written");
                return;
            }
            if self.life.get() == mark.life {
                self.durable.set(mark.decided);
                self.settled.notify_all();
            }
            self.maybe_seal(log).await;
        }
    }

    /// What was said again and again makes every load longer, and only sealed segments are
    /// compacted: so the active one is sealed early when most of it must be history.
    async fn maybe_seal(&self, log: &Log) {
        let active_bytes = log.active_bytes();
        if active_bytes < self.seal_at.get() {
            return;
        }
        let current_bytes = self.coordinator.borrow().offsets_count() as u64 * OFFSET_BYTES;
        let history_max = (HISTORY_SHARE * current_bytes).max(self.seal_at.get());
        if active_bytes >= history_max && log.seal(time::wall_ms()).await {
            runtime::reached("groups: a segment of history sealed");
            self.seal_at.set(HISTORY_BYTES);
        } else {
            self.seal_at.set(history_max.max(active_bytes + HISTORY_BYTES / 4));
        }
    }

    async fn write(&self, log: &Log, records: &[Record]) -> Result<(), String> {
        let now_ms = time::wall_ms();
        let mut written = log.log_end_offset();
        let mut rest = records;
        while !rest.is_empty() {
            let mut builder = BatchBuilder::new(Compression::None);
            builder.reserve(room_of(rest));
            let mut taken = 0;
            while let Some(record) = rest.get(taken) {
                if taken > 0 && builder.uncompressed_bytes() >= BATCH_BYTES {
                    break;
                }
                let (key, value) = (Some(&*record.key), record.value.as_deref());
                builder.append(&NewRecord { timestamp: now_ms, key, value, headers: &[] });
                taken += 1;
            }
            rest = &rest[taken..];
            let rules = ProduceRules {
                max_message_bytes: usize::MAX,
                compacted: true,
                ..ProduceRules::of_default_topic(now_ms)
            };
            let batch = validate_for_append(builder.build(), &rules);
            let batch = batch.map_err(|why| why.error.to_string())?;
            let epoch = self.partition.leader_epoch();
            let appended = log.append(&batch, epoch, now_ms).await;
            written = appended.map_err(|why| why.to_string())?.last_offset + 1;
            runtime::reached("groups: a batch appended");
            if !rest.is_empty() {
                pause_if_long().await;
            }
        }
        log.committed(written).await.map_err(|why| why.to_string())
    }

    fn next_alarm_ms(&self) -> i64 {
        self.coordinator.borrow().poll_wake().unwrap_or(i64::MAX)
    }

    /// Rings the alarms of the groups, and now and then lets go of what is too old, in pieces.
    async fn keep_time(self: Rc<Self>, slot: Rc<Slot>) {
        let mut sweep = None;
        let mut sweep_ms = now_ms() + slot.settings().groups.retention_check_interval_ms;
        while self.status.get() != Status::Closed {
            let hurried = self.hurried.listen();
            let (wake_ms, now) = (self.next_alarm_ms(), now_ms());
            if self.status.get() == Status::Serving && wake_ms <= now {
                self.decide(&slot, |coordinator, world| (coordinator.on_time(world), ()));
                // What goes in pieces is due again at once.
                task::yield_now().await;
                continue;
            }
            if sweep.is_none() && sweep_ms <= now {
                sweep_ms = now + slot.settings().groups.retention_check_interval_ms;
                sweep = Some(Sweep::default());
            }
            if let (Some(piece), Status::Serving) = (sweep.take(), self.status.get()) {
                sweep =
                    self.decide(&slot, |coordinator, world| coordinator.expire(world, &piece)).0;
                task::yield_now().await;
                continue;
            }
            let pause_ms = wake_ms.min(sweep_ms).saturating_sub(now).clamp(1, PAUSE_MAX_MS);
            self.sleeps_until_ms.set(now + pause_ms);
            let pause = time::sleep(Duration::from_millis(pause_ms as u64));
            if let Either::Left(()) = race(hurried, pause).await {
                task::yield_now().await;
            }
            self.sleeps_until_ms.set(i64::MAX);
        }
    }
}

/// Bytes that the next batch of these records takes, about.
fn room_of(records: &[Record]) -> usize {
    let mut bytes = 0;
    for record in records {
        let value = record.value.as_ref().map_or(0, |value| value.len());
        bytes += record.key.len() + value + RECORD_HEAD_BYTES;
        if bytes >= BATCH_BYTES {
            break;
        }
    }
    bytes
}

fn now_ms() -> i64 {
    (time::now().as_nanos() / 1_000_000) as i64
}

/// Varints in front of a record's key and value, generously.
const RECORD_HEAD_BYTES: usize = 24;
const BATCH_BYTES: usize = 512 << 10;
/// How many times over an active segment says what there is to say.
const HISTORY_SHARE: u64 = 4;
/// What a committed offset takes in the log, about.
const OFFSET_BYTES: u64 = 100;
/// History that is not worth a segment of its own: read in a few hundredths of a second.
const HISTORY_BYTES: u64 = 4 << 20;
/// The same in what a start has found, for it may not be the last.
const HISTORY_BYTES_AT_START: u64 = 1 << 20;
const RELOAD_PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX_MS: i64 = 60_000;
