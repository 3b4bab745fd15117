//! What a partition remembers of its idempotent producers (KIP-98).
//!
//! Law: `check` decides and changes nothing; `apply` changes and never refuses. A batch is applied
//! exactly once, in offset order, live, as a follower and when the log is replayed. Each producer
//! id keeps its newest epoch and the last five batches of that epoch; a batch that repeats one of
//! them is answered with the offsets it got then, any other batch must follow the newest.
//! Producers are forgotten by the broker's clock, never by the timestamps inside records.
//!
//! Absent: transactions. The fields that they need (start offset of the open transaction,
//! coordinator epoch) are kept and stored, and stay empty until transactions are served.

mod entry;
mod sequence;
mod snapshot;

pub use entry::{BATCHES_REMEMBERED, ProducerEntry, RememberedBatch};
pub use sequence::Sequence;
pub use snapshot::{PRODUCERS_FILE_EXTENSION, ProducerSnapshot};

use std::collections::BTreeMap;

use thiserror::Error;

/// What the producer state needs to know of a batch that carries a producer id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerBatch {
    /// ≥ 0: batches without a producer never come here.
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// Sequence number of the first record; −1 in control batches only.
    pub base_sequence: i32,
    /// Offset of the last record minus offset of the first.
    pub last_offset_delta: i32,
    /// Largest timestamp of its records, milliseconds.
    pub max_timestamp: i64,
    pub control: bool,
}

impl ProducerBatch {
    /// The sequence number of its last record, beyond 2³¹−1 counted on from 0.
    pub fn last_sequence(&self) -> i32 {
        Sequence(self.base_sequence).plus(self.last_offset_delta).0
    }
}

/// What may be done with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Append it, then `apply` it.
    Append,
    /// It is in the log already, at these offsets: answer with them, append nothing.
    Duplicate(RememberedBatch),
}

/// Why a batch is refused. The numbers belong in the broker's log, not on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SequenceError {
    /// OUT_OF_ORDER_SEQUENCE_NUMBER.
    #[error("producer {producer_id} sent sequence {found}, expected {expected}")]
    OutOfOrder { producer_id: i64, expected: i32, found: i32 },
    /// OUT_OF_ORDER_SEQUENCE_NUMBER: a new epoch starts at 0.
    #[error("producer {producer_id} began epoch {epoch} with sequence {found}, not 0")]
    EpochNotFromZero { producer_id: i64, epoch: i16, found: i32 },
    /// INVALID_PRODUCER_EPOCH.
    #[error("producer {producer_id} sent epoch {found}, the partition knows {known}")]
    StaleEpoch { producer_id: i64, known: i16, found: i16 },
    /// INVALID_RECORD: a producer id asks for sequence numbers.
    #[error("producer {producer_id} sent a batch without a sequence number")]
    NoSequence { producer_id: i64 },
}

/// How long and how many producers are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerLimits {
    /// `producer.id.expiration.ms`.
    pub expiration_ms: i64,
    /// Beyond this number the longest idle ones are forgotten, so that clients cannot make the
    /// state grow without end. A forgotten producer that returns is taken as a new one.
    pub producers_max: usize,
}

/// The producers of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Producers {
    limits: ProducerLimits,
    entries: BTreeMap<i64, ProducerEntry>,
    /// First offset whose batch has not been applied.
    end_offset: i64,
}

/// Where a producer's last batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastOfProducer {
    /// Last offset of its last batch of records; none when only a marker is remembered.
    pub last_offset: Option<i64>,
    pub epoch: i16,
}

/// A producer as DescribeProducers shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerDescription {
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// −1 when no batch is remembered, as for the next two.
    pub last_sequence: i32,
    /// Milliseconds, as the producer stamped its last batch.
    pub last_timestamp: i64,
    pub coordinator_epoch: i32,
    pub current_txn_start_offset: i64,
}

impl Producers {
    /// No producer, as at the start of a log at `end_offset`.
    pub fn new(limits: ProducerLimits, end_offset: i64) -> Self {
        assert!(limits.producers_max > 0, "at least one producer must fit");
        Producers { limits, entries: BTreeMap::new(), end_offset }
    }

    /// Every batch below is applied; replay goes on from here.
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn entry(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.entries.get(&producer_id)
    }

    pub fn set_limits(&mut self, limits: ProducerLimits) {
        assert!(limits.producers_max > 0, "at least one producer must fit");
        self.limits = limits;
    }

    /// Whether a client's batch may be appended. A producer that nobody remembers may start at
    /// any sequence number: its earlier batches may have been deleted or it was forgotten.
    pub fn check(&self, batch: &ProducerBatch) -> Result<Verdict, SequenceError> {
        let ProducerBatch { producer_id, producer_epoch, base_sequence, .. } = *batch;
        assert!(producer_id >= 0, "a batch without a producer has no state");
        let known = self.entries.get(&producer_id);
        let known_epoch = known.map_or(0, |entry| entry.epoch);
        if producer_epoch < known_epoch {
            return Err(SequenceError::StaleEpoch {
                producer_id,
                known: known_epoch,
                found: producer_epoch,
            });
        }
        if base_sequence < 0 {
            return Err(SequenceError::NoSequence { producer_id });
        }
        let Some(entry) = known else { return Ok(Verdict::Append) };
        if producer_epoch > entry.epoch {
            return match base_sequence {
                0 => Ok(Verdict::Append),
                found => Err(SequenceError::EpochNotFromZero {
                    producer_id,
                    epoch: producer_epoch,
                    found,
                }),
            };
        }
        if let Some(same) = entry.batch_with_sequences(base_sequence, batch.last_sequence()) {
            return Ok(Verdict::Duplicate(*same));
        }
        let expected = entry.next_sequence();
        if base_sequence == expected.0 {
            return Ok(Verdict::Append);
        }
        Err(SequenceError::OutOfOrder { producer_id, expected: expected.0, found: base_sequence })
    }

    /// Remembers a batch that has been given its offsets. `now_ms` is the broker's clock.
    pub fn apply(&mut self, batch: &ProducerBatch, base_offset: i64, now_ms: i64) {
        assert!(batch.producer_id >= 0, "a batch without a producer has no state");
        let applied = self.end_offset;
        assert!(base_offset >= applied, "batch at {base_offset}, all below {applied} are applied");
        self.advance_to(base_offset + i64::from(batch.last_offset_delta) + 1);
        if !self.entries.contains_key(&batch.producer_id) {
            self.make_room(now_ms);
        }
        let entry = self
            .entries
            .entry(batch.producer_id)
            .or_insert_with(|| ProducerEntry::new(batch.producer_epoch, now_ms));
        entry.begin_epoch(batch.producer_epoch);
        entry.last_seen_ms = entry.last_seen_ms.max(now_ms);
        if !batch.control {
            entry.remember(RememberedBatch {
                base_sequence: batch.base_sequence,
                last_sequence: batch.last_sequence(),
                base_offset,
                last_offset: base_offset + i64::from(batch.last_offset_delta),
                timestamp: batch.max_timestamp,
            });
        }
    }

    /// Batches without a producer end before `end_offset`.
    pub fn advance_to(&mut self, end_offset: i64) {
        let before = self.end_offset;
        assert!(
            end_offset >= before,
            "producer state cannot go back from {before} to {end_offset}"
        );
        self.end_offset = end_offset;
    }

    /// Forgets who has not written for the configured time and has no transaction open.
    /// Returns how many were forgotten.
    pub fn expire(&mut self, now_ms: i64) -> usize {
        let before = self.entries.len();
        let expiration_ms = self.limits.expiration_ms;
        self.entries.retain(|_, entry| {
            entry.current_txn_start_offset.is_some()
                || now_ms.saturating_sub(entry.last_seen_ms) < expiration_ms
        });
        before - self.entries.len()
    }

    /// Forgets everything; the log starts anew at `end_offset`.
    pub fn reset(&mut self, end_offset: i64) {
        self.entries.clear();
        self.end_offset = end_offset;
    }

    /// In the order of producer ids.
    pub fn describe(&self) -> Vec<ProducerDescription> {
        self.entries.iter().map(|(id, entry)| entry.describe(*id)).collect()
    }

    /// Where the last batch of each producer is, by producer id.
    pub fn last_of_each(&self) -> BTreeMap<i64, LastOfProducer> {
        let last = |entry: &ProducerEntry| LastOfProducer {
            last_offset: entry.last_batch().map(|batch| batch.last_offset),
            epoch: entry.epoch,
        };
        self.entries.iter().map(|(id, entry)| (*id, last(entry))).collect()
    }

    /// Room for one more: first the expired go, then a sixteenth of all, the longest idle first,
    /// so that the cost of making room is shared by many appends.
    fn make_room(&mut self, now_ms: i64) {
        if self.entries.len() < self.limits.producers_max {
            return;
        }
        if self.expire(now_ms) > 0 && self.entries.len() < self.limits.producers_max {
            return;
        }
        let mut idle: Vec<(i64, i64)> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.current_txn_start_offset.is_none())
            .map(|(id, entry)| (entry.last_seen_ms, *id))
            .collect();
        idle.sort_unstable();
        let surplus = self.entries.len() + 1 - self.limits.producers_max;
        let leaving = surplus.max(self.limits.producers_max / 16);
        for (_, id) in idle.into_iter().take(leaving) {
            self.entries.remove(&id);
        }
    }
}
