//! One producer id of one partition.
//!
//! Law: the remembered batches are of the current epoch, in order, each following the one before
//! it in offsets. A new epoch starts with none.

use super::{ProducerDescription, Sequence};

/// Clients keep at most five requests in flight with idempotence; one of them may be a repeat.
pub const BATCHES_REMEMBERED: usize = 5;

/// A batch that is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RememberedBatch {
    pub base_sequence: i32,
    pub last_sequence: i32,
    pub base_offset: i64,
    pub last_offset: i64,
    /// Largest timestamp of its records, milliseconds.
    pub timestamp: i64,
}

/// What is remembered of one producer id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    pub epoch: i16,
    /// Epoch of the coordinator that wrote the last transaction marker; −1 as long as none did.
    pub coordinator_epoch: i32,
    /// Start of the open transaction. Always none until transactions are served.
    pub current_txn_start_offset: Option<i64>,
    /// The broker's clock at the last batch, milliseconds.
    pub last_seen_ms: i64,
    batches: [RememberedBatch; BATCHES_REMEMBERED],
    count: u8,
}

impl ProducerEntry {
    pub fn new(epoch: i16, now_ms: i64) -> Self {
        ProducerEntry {
            epoch,
            coordinator_epoch: -1,
            current_txn_start_offset: None,
            last_seen_ms: now_ms,
            batches: [NO_BATCH; BATCHES_REMEMBERED],
            count: 0,
        }
    }

    /// The remembered batches, oldest first.
    pub fn batches(&self) -> &[RememberedBatch] {
        &self.batches[..usize::from(self.count)]
    }

    pub fn last_batch(&self) -> Option<&RememberedBatch> {
        self.batches().last()
    }

    /// The remembered batch with exactly these first and last sequence numbers.
    pub fn batch_with_sequences(&self, first: i32, last: i32) -> Option<&RememberedBatch> {
        self.batches().iter().find(|b| b.base_sequence == first && b.last_sequence == last)
    }

    /// What the next batch of this epoch must start with.
    pub fn next_sequence(&self) -> Sequence {
        self.last_batch().map_or(Sequence(0), |batch| Sequence(batch.last_sequence).next())
    }

    /// Sequence numbers start anew with each epoch. What is in the log counts, even an older
    /// epoch: the leader that appended it had forgotten this producer.
    pub fn begin_epoch(&mut self, epoch: i16) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.count = 0;
        }
    }

    /// Adds the newest batch, forgetting the oldest when five are there.
    pub fn remember(&mut self, batch: RememberedBatch) {
        if let Some(last) = self.last_batch() {
            assert!(batch.base_offset > last.last_offset, "{batch:?} does not follow {last:?}");
        }
        if usize::from(self.count) == BATCHES_REMEMBERED {
            self.batches.rotate_left(1);
            self.count -= 1;
        }
        self.batches[usize::from(self.count)] = batch;
        self.count += 1;
    }

    pub fn describe(&self, producer_id: i64) -> ProducerDescription {
        let last = self.last_batch();
        ProducerDescription {
            producer_id,
            producer_epoch: self.epoch,
            last_sequence: last.map_or(-1, |batch| batch.last_sequence),
            last_timestamp: last.map_or(-1, |batch| batch.timestamp),
            coordinator_epoch: self.coordinator_epoch,
            current_txn_start_offset: self.current_txn_start_offset.unwrap_or(-1),
        }
    }
}

const NO_BATCH: RememberedBatch = RememberedBatch {
    base_sequence: -1,
    last_sequence: -1,
    base_offset: -1,
    last_offset: -1,
    timestamp: -1,
};
