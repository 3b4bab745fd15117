//! Reading what a fetch wants, once, without waiting for more to arrive.
//!
//! Partitions are read in the session's order. The first one that has data returns at least one
//! whole batch whatever the limits say, later ones obey them (KIP-74).

use std::rc::Rc;

use protocol::messages::fetch::EpochEndOffset;
use protocol::{ErrorCode, Records};
use storage::{Log, ReadError};

use crate::dispatch::{Pace, pause_if_long};
use crate::fetch::session::{Interest, PartitionKey, TopicKey, Wanted};
use crate::fetch::waiter::FetchWaiter;
use crate::shard::{LeaderHint, Partition, TopicRef, Unavailable};
use crate::slot::Slot;

/// What one fetch may return in all.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub bytes_max: usize,
    /// Whether only what no open transaction can still undo is wanted.
    pub committed_only: bool,
}

/// Everything to read, with the partitions of this slot looked up.
pub struct ReadPlan {
    targets: Vec<Target>,
}

/// A partition to read.
pub struct Target {
    pub key: PartitionKey,
    pub interest: Interest,
    partition: Result<Rc<Partition>, Box<PartitionRead>>,
}

/// What reading one partition gave.
#[derive(Clone, Debug)]
pub struct PartitionRead {
    pub error: ErrorCode,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
    pub records: Records,
    /// How many they are, counted by offsets.
    pub record_count: u64,
    pub diverging: Option<EpochEndOffset>,
    pub leader: Option<LeaderHint>,
    /// False when the partition is not read here at all.
    pub found: bool,
}

impl PartitionRead {
    fn failed(error: ErrorCode) -> PartitionRead {
        PartitionRead {
            error,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            records: Records::default(),
            record_count: 0,
            diverging: None,
            leader: None,
            found: true,
        }
    }

    /// Whether the fetch has to be answered without waiting.
    fn ends_waiting(&self) -> bool {
        self.error != ErrorCode::NONE || self.diverging.is_some()
    }
}

/// What reading everything gave.
pub struct Reads {
    /// One for each target.
    pub list: Vec<PartitionRead>,
    /// Of records, together.
    pub bytes: usize,
    /// Whether the fetch has to be answered without waiting.
    pub must_answer: bool,
}

impl ReadPlan {
    /// Of a request that belongs to no session.
    pub async fn of_list(slot: &Slot, mut wanted: Wanted) -> ReadPlan {
        let (mut targets, mut pace) = (Vec::new(), Pace::default());
        while let Some((key, interest)) = wanted.take_next() {
            let partition = find(slot, &key, &interest);
            targets.push(Target { key, interest, partition });
            pace.turn().await;
        }
        ReadPlan { targets }
    }

    /// Of all that a session wants.
    pub async fn of_session(slot: &Slot, session: i32) -> ReadPlan {
        let (mut targets, mut next) = (Vec::new(), 0);
        loop {
            let before = targets.len();
            for (place, key, interest) in
                slot.sessions.borrow().wanted(session, next).take(TARGETS_AT_A_TIME)
            {
                let partition = find(slot, key, interest);
                targets.push(Target { key: key.clone(), interest: interest.clone(), partition });
                next = place + 1;
            }
            if targets.len() == before {
                return ReadPlan { targets };
            }
            pause_if_long().await;
        }
    }

    /// Partitions may have come and gone since they were looked up.
    pub async fn look_up_again(&mut self, slot: &Slot) {
        for target in &mut self.targets {
            target.partition = find(slot, &target.key, &target.interest);
            pause_if_long().await;
        }
    }

    pub fn len(&self) -> usize {
        self.targets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    pub fn into_targets(self) -> Vec<Target> {
        self.targets
    }

    /// Listens to everything that can still grow.
    pub async fn listen(&self) -> FetchWaiter {
        let (mut waiter, mut pace) = (FetchWaiter::default(), Pace::default());
        for partition in self.targets.iter().filter_map(|target| target.partition.as_ref().ok()) {
            match partition.log() {
                Ok(log) => waiter.listen(log.advanced().listen()),
                Err(_) => waiter.listen(partition.changed().listen()),
            }
            pace.turn().await;
        }
        waiter
    }
}

fn find(
    slot: &Slot,
    key: &PartitionKey,
    interest: &Interest,
) -> Result<Rc<Partition>, Box<PartitionRead>> {
    let topic = match &key.topic {
        TopicKey::Name(name) => TopicRef::Name(name),
        TopicKey::Id(id) => TopicRef::Id(*id),
    };
    match slot.find(topic, key.index) {
        Ok((_, partition)) => Ok(partition),
        Err(misrouted) => {
            let (error, leader) =
                (since_it_was_named(slot, misrouted.error, interest), misrouted.leader);
            let found = !matches!(
                error,
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::UNKNOWN_TOPIC_ID
            );
            Err(Box::new(PartitionRead { leader, found, ..PartitionRead::failed(error) }))
        }
    }
}

/// A session knows a topic by the id it had when it was named: gone since, it is an unknown
/// partition; made anew under its name, its id is the wrong one.
fn since_it_was_named(slot: &Slot, error: ErrorCode, interest: &Interest) -> ErrorCode {
    match &interest.name {
        Some(name) if error == ErrorCode::UNKNOWN_TOPIC_ID => match slot.image().topic(name) {
            Some(_) => ErrorCode::INCONSISTENT_TOPIC_ID,
            None => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        },
        _ => error,
    }
}

/// Reads every target once, in order.
pub async fn read_all(plan: &ReadPlan, limits: Limits) -> Reads {
    let mut reads =
        Reads { list: Vec::with_capacity(plan.targets.len()), bytes: 0, must_answer: false };
    for target in &plan.targets {
        let read = match &target.partition {
            Err(failed) => (**failed).clone(),
            Ok(partition) => {
                let left = limits.bytes_max.saturating_sub(reads.bytes);
                let bytes_max = left.min(target.interest.max_bytes.max(0) as usize);
                read_one(partition, &target.interest, bytes_max, reads.bytes == 0).await
            }
        };
        reads.bytes += read.records.len();
        reads.must_answer |= read.ends_waiting();
        reads.list.push(read);
        pause_if_long().await;
    }
    reads
}

fn positions(log: &Log) -> PartitionRead {
    let high_watermark = log.high_watermark();
    PartitionRead {
        high_watermark,
        last_stable_offset: high_watermark,
        log_start_offset: log.log_start_offset(),
        ..PartitionRead::failed(ErrorCode::NONE)
    }
}

/// There is nothing to read until there is somebody else to be sent to.
fn read_moving(log: &Log, interest: &Interest) -> PartitionRead {
    match (log.log_start_offset()..=log.log_end_offset()).contains(&interest.fetch_offset) {
        true => positions(log),
        false => PartitionRead::failed(ErrorCode::OFFSET_OUT_OF_RANGE),
    }
}

async fn read_one(
    partition: &Partition,
    interest: &Interest,
    bytes_max: usize,
    one_batch_at_least: bool,
) -> PartitionRead {
    if let Err(error) = Slot::check_epoch(partition, interest.current_leader_epoch) {
        let leader =
            Some(partition.leader_hint()).filter(|_| error == ErrorCode::FENCED_LEADER_EPOCH);
        return PartitionRead { leader, ..PartitionRead::failed(error) };
    }
    let log = match (partition.log(), partition.log_let_go()) {
        (Ok(log), _) => log,
        (Err(Unavailable::Moving), Some(log)) => return read_moving(&log, interest),
        (Err(why), _) => return PartitionRead::failed(why.code()),
    };
    let positions = positions(&log);
    let high_watermark = positions.high_watermark;
    match partition.diverging_epoch(&log, interest) {
        Err(error) => return PartitionRead::failed(error),
        Ok(Some(end)) => return PartitionRead { diverging: Some(end), ..positions },
        Ok(None) => {}
    }
    let read = log.read(interest.fetch_offset, bytes_max, high_watermark, one_batch_at_least).await;
    match read {
        Ok(chunk) => {
            let record_count = (chunk.next_offset - interest.fetch_offset).max(0) as u64;
            let records = chunk.slices.into_iter().collect();
            PartitionRead { records, record_count, ..positions }
        }
        Err(ReadError::OutOfRange { .. }) => PartitionRead::failed(ErrorCode::OFFSET_OUT_OF_RANGE),
        Err(why @ ReadError::Corrupt { .. }) => {
            tracing::error!(partition = %partition.name(), %why, "damaged records are not served");
            PartitionRead { error: ErrorCode::CORRUPT_MESSAGE, ..positions }
        }
        // Closed meanwhile: the next look at the partition says why.
        Err(ReadError::Unavailable(_)) => read_moving(&log, interest),
        Err(why) => {
            tracing::error!(partition = %partition.name(), %why, "cannot read");
            PartitionRead::failed(ErrorCode::KAFKA_STORAGE_ERROR)
        }
    }
}

/// Partitions of a session that are looked up in one go.
const TARGETS_AT_A_TIME: usize = 200;
