//! Producers whose first batch found no room, a disk that could not be read, or a log that was not
//! open yet.
//!
//! Law: a partition takes any sequence from a producer it does not know (KIP-360), so what such a
//! producer sent behind a batch that was turned away must be turned away as well: once it is
//! appended, the earlier one can never be. It goes along when a partition moves to another slot.
//! Nothing of this is remembered over a restart, after
//! which a client sends again in order anyway.

use std::collections::BTreeMap;

use protocol::batch::BatchHeader;

use crate::log::append::producer_batch;
use crate::producer::{ProducerBatch, SequenceError};

/// Producers remembered at most; beyond it all are forgotten.
const PRODUCERS_MAX: usize = 1000;

/// Whose batches were turned away, and from which sequence on.
#[derive(Clone, Debug, Default)]
pub struct TurnedAway {
    /// The earliest sequence that was turned away, by producer id and epoch.
    first: BTreeMap<(i64, i16), i32>,
}

impl TurnedAway {
    /// Notes a batch that came before the log was open.
    pub fn note_batch(&mut self, header: &BatchHeader) {
        if let Some(batch) = producer_batch(header) {
            self.note(&batch);
        }
    }

    pub(super) fn note(&mut self, batch: &ProducerBatch) {
        self.note_sequence((batch.producer_id, batch.producer_epoch), batch.base_sequence);
    }

    /// Notes what somebody else has turned away of the same partition.
    pub fn merge(&mut self, other: TurnedAway) {
        other.first.into_iter().for_each(|(key, sequence)| self.note_sequence(key, sequence));
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    fn note_sequence(&mut self, key: (i64, i16), sequence: i32) {
        if self.first.len() >= PRODUCERS_MAX {
            self.first.clear();
        }
        let first = self.first.entry(key).or_insert(sequence);
        *first = (*first).min(sequence);
    }

    /// Refuses a batch that was sent behind one that was turned away.
    pub(super) fn check(&self, batch: &ProducerBatch) -> Result<(), SequenceError> {
        match self.first.get(&(batch.producer_id, batch.producer_epoch)) {
            Some(expected) if batch.base_sequence > *expected => Err(SequenceError::OutOfOrder {
                producer_id: batch.producer_id,
                expected: *expected,
                found: batch.base_sequence,
            }),
            _ => Ok(()),
        }
    }

    /// The producer is known from now on.
    pub(super) fn forget(&mut self, batch: &ProducerBatch) {
        if !self.first.is_empty() {
            self.first.remove(&(batch.producer_id, batch.producer_epoch));
        }
    }
}
