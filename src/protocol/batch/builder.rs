//! Building batches: for the command line, the load generator, the broker's own records, tests.
//!
//! Offsets are dense from 0, timestamps relative to the first record's, the checksum is right.

use std::io::Write;

use bytes::Bytes;

use super::compression::{Compression, Encoder};
use super::header::{
    BatchHeader, CONTROL_BIT, CRC_AT, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, NO_PRODUCER_ID,
    NO_SEQUENCE, NO_TIMESTAMP, TRANSACTIONAL_BIT, crc_of,
};
use super::varint;

/// A record to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewRecord<'a> {
    /// Milliseconds since 1970, or -1.
    pub timestamp: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
}

/// Collects records into one batch.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    compression: Compression,
    header: BatchHeader,
    records: Vec<u8>,
    scratch: Vec<u8>,
}

impl BatchBuilder {
    pub fn new(compression: Compression) -> Self {
        let header = BatchHeader {
            base_offset: 0,
            batch_length: 0,
            partition_leader_epoch: -1,
            magic: MAGIC,
            crc: 0,
            attributes: i16::from(compression.codec().id()),
            last_offset_delta: -1,
            base_timestamp: NO_TIMESTAMP,
            max_timestamp: NO_TIMESTAMP,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: -1,
            base_sequence: NO_SEQUENCE,
            count: 0,
        };
        Self { compression, header, records: Vec::new(), scratch: Vec::new() }
    }

    /// Makes it an idempotent producer's batch.
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }

    /// Makes it part of its producer's transaction.
    pub fn transactional(mut self) -> Self {
        self.header.attributes |= TRANSACTIONAL_BIT;
        self
    }

    /// Makes it a control batch: its records are transaction markers.
    pub fn control(mut self) -> Self {
        self.header.attributes |= CONTROL_BIT;
        self
    }

    pub fn base_offset(mut self, base_offset: i64) -> Self {
        self.header.base_offset = base_offset;
        self
    }

    pub fn leader_epoch(mut self, leader_epoch: i32) -> Self {
        self.header.partition_leader_epoch = leader_epoch;
        self
    }

    /// Makes room for so many bytes of records.
    pub fn reserve(&mut self, bytes: usize) {
        self.records.reserve(bytes);
    }

    /// Adds a record at the next offset.
    pub fn append(&mut self, record: &NewRecord<'_>) -> &mut Self {
        let header = &mut self.header;
        if header.count == 0 {
            header.base_timestamp = record.timestamp;
        }
        header.max_timestamp = header.max_timestamp.max(record.timestamp);
        header.last_offset_delta += 1;
        header.count += 1;

        let body = &mut self.scratch;
        body.clear();
        body.push(0);
        varint::write(body, record.timestamp.wrapping_sub(header.base_timestamp));
        varint::write(body, i64::from(header.last_offset_delta));
        write_nullable(body, record.key);
        write_nullable(body, record.value);
        varint::write(body, record.headers.len() as i64);
        for (key, value) in record.headers {
            write_nullable(body, Some(key.as_bytes()));
            write_nullable(body, *value);
        }
        varint::write(&mut self.records, body.len() as i64);
        self.records.extend_from_slice(body);
        self
    }

    /// Number of records so far.
    pub fn count(&self) -> i32 {
        self.header.count
    }

    /// Bytes of the batch so far, before compression.
    pub fn uncompressed_bytes(&self) -> usize {
        HEADER_BYTES + self.records.len()
    }

    /// The finished batch. Panics when it is longer than 2^31-1 bytes.
    pub fn build(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.uncompressed_bytes());
        out.resize(HEADER_BYTES, 0);
        let mut encoder = Encoder::new(self.compression, out, usize::MAX, self.records.len());
        // Compression into memory fails only at the limit, and there is none.
        let written = encoder.write_all(&self.records).and_then(|()| encoder.finish());
        let batch = match written {
            Ok(batch) => batch,
            Err(error) => unreachable!("compressing into memory failed: {error}"),
        };
        sealed(self.header, batch)
    }
}

/// Puts the header in front of the records, with the right length and checksum.
pub(super) fn sealed(mut header: BatchHeader, mut batch: Vec<u8>) -> Bytes {
    let length = i32::try_from(batch.len() - LOG_OVERHEAD_BYTES);
    assert!(length.is_ok(), "a batch of {} bytes cannot be written", batch.len());
    header.batch_length = length.unwrap_or_default();
    batch[..HEADER_BYTES].copy_from_slice(&header.encode());
    let crc = crc_of(&batch);
    batch[CRC_AT..][..4].copy_from_slice(&crc.to_be_bytes());
    batch.into()
}

pub(super) fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => varint::write(out, -1),
        Some(bytes) => {
            varint::write(out, bytes.len() as i64);
            out.extend_from_slice(bytes);
        }
    }
}
