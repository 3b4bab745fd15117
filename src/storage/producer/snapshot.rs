//! The producer snapshot file: all remembered batches of every producer, so that a clean restart
//! reads no record data and still knows each repeat.
//!
//! Law: a derived file. Missing or damaged, it is made again by replaying the batch headers of the
//! log from an older snapshot or from the log's start.
//!
//! The payload of the sealed file (see `envelope`), big endian:
//! ```text
//! 8   end offset: every batch below it is included
//! 4   number of producers, each:
//!       8   producer id, rising
//!       2   epoch
//!       4   coordinator epoch, −1 when none
//!       8   start offset of the open transaction, −1 when none
//!       8   broker's clock at the last batch, milliseconds
//!       1   number of batches (0 to 5), oldest first, each:
//!             4+4 first and last sequence   8+8 first and last offset   8 largest timestamp
//! ```

use std::collections::BTreeMap;

use super::{BATCHES_REMEMBERED, ProducerEntry, ProducerLimits, Producers, RememberedBatch};
use crate::envelope::{self, EnvelopeError, PayloadReader, Purpose};

/// Snapshot files are named by their end offset, 20 digits, and this extension.
pub const PRODUCERS_FILE_EXTENSION: &str = "producers";

/// A snapshot file's content before limits are put on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerSnapshot {
    pub end_offset: i64,
    entries: BTreeMap<i64, ProducerEntry>,
}

impl ProducerSnapshot {
    /// The state at the snapshot's end offset. Producers whose time has come are left out by the
    /// next `expire`.
    pub fn into_producers(self, limits: ProducerLimits) -> Producers {
        assert!(limits.producers_max > 0, "at least one producer must fit");
        Producers { limits, entries: self.entries, end_offset: self.end_offset }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reads a snapshot file; an error asks for a replay.
    pub fn from_file(file: &[u8]) -> Result<Self, EnvelopeError> {
        let (_, payload) = envelope::open(PURPOSE, file)?;
        let mut reader = PayloadReader::new(payload);
        let end_offset = reader.i64()?;
        let count = reader.u32()?;
        let mut entries = BTreeMap::new();
        for _ in 0..count {
            let producer_id = reader.i64()?;
            let entry = read_entry(&mut reader, end_offset)?;
            if entries.last_key_value().is_some_and(|(last, _)| *last >= producer_id) {
                return Err(EnvelopeError::Payload { reason: "producer ids do not rise" });
            }
            entries.insert(producer_id, entry);
        }
        reader.finish()?;
        Ok(ProducerSnapshot { end_offset, entries })
    }
}

impl Producers {
    /// The snapshot file's bytes.
    pub fn to_file(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(12 + self.entries.len() * ENTRY_BYTES_MAX);
        payload.extend_from_slice(&self.end_offset.to_be_bytes());
        payload.extend_from_slice(&(self.entries.len() as u32).to_be_bytes());
        for (producer_id, entry) in &self.entries {
            payload.extend_from_slice(&producer_id.to_be_bytes());
            write_entry(&mut payload, entry);
        }
        envelope::seal(PURPOSE, &payload)
    }
}

fn write_entry(payload: &mut Vec<u8>, entry: &ProducerEntry) {
    payload.extend_from_slice(&entry.epoch.to_be_bytes());
    payload.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
    payload.extend_from_slice(&entry.current_txn_start_offset.unwrap_or(-1).to_be_bytes());
    payload.extend_from_slice(&entry.last_seen_ms.to_be_bytes());
    payload.push(entry.batches().len() as u8);
    for batch in entry.batches() {
        payload.extend_from_slice(&batch.base_sequence.to_be_bytes());
        payload.extend_from_slice(&batch.last_sequence.to_be_bytes());
        payload.extend_from_slice(&batch.base_offset.to_be_bytes());
        payload.extend_from_slice(&batch.last_offset.to_be_bytes());
        payload.extend_from_slice(&batch.timestamp.to_be_bytes());
    }
}

fn read_entry(
    reader: &mut PayloadReader<'_>,
    end_offset: i64,
) -> Result<ProducerEntry, EnvelopeError> {
    let epoch = reader.i16()?;
    let coordinator_epoch = reader.i32()?;
    let txn_start = reader.i64()?;
    let last_seen_ms = reader.i64()?;
    let count = reader.u8()?;
    if usize::from(count) > BATCHES_REMEMBERED {
        return Err(EnvelopeError::Payload { reason: "a producer has more than five batches" });
    }
    let mut entry = ProducerEntry::new(epoch, last_seen_ms);
    entry.coordinator_epoch = coordinator_epoch;
    entry.current_txn_start_offset = Some(txn_start).filter(|offset| *offset >= 0);
    let mut next_offset = 0;
    for _ in 0..count {
        let batch = RememberedBatch {
            base_sequence: reader.i32()?,
            last_sequence: reader.i32()?,
            base_offset: reader.i64()?,
            last_offset: reader.i64()?,
            timestamp: reader.i64()?,
        };
        let follows = batch.base_offset >= next_offset && batch.last_offset >= batch.base_offset;
        if !follows || batch.last_offset >= end_offset {
            return Err(EnvelopeError::Payload { reason: "a producer's offsets do not rise" });
        }
        next_offset = batch.last_offset + 1;
        entry.remember(batch);
    }
    Ok(entry)
}

const PURPOSE: Purpose = Purpose { letters: *b"CTPS", version: 1 };
const ENTRY_BYTES_MAX: usize = 39 + BATCHES_REMEMBERED * 32;
