//! Writing the records of a batch anew: dense offsets, timestamps relative to the first record,
//! another codec. Keys, values and headers pass through byte for byte and are never held.

use std::io::Write;

use super::compression::{Codec, Compression, Encoder};
use super::header::{
    BatchHeader, CRC_AT, HEADER_BYTES, LOG_APPEND_TIME_BIT, LOG_OVERHEAD_BYTES, MAGIC,
    TRANSACTIONAL_BIT, TimestampType, crc_of,
};
use super::scan::{RecordHead, ScanError, Sink};
use super::varint;

/// The sink that writes a batch.
pub(super) struct Rewriter {
    encoder: Encoder,
    old_base_timestamp: i64,
    new_base_timestamp: Option<i64>,
    scratch: Vec<u8>,
}

impl Rewriter {
    /// The new batch, header included, is at most `bytes_max` long.
    pub fn new(old: &BatchHeader, compression: Compression, bytes_max: usize) -> Self {
        let bytes_max = bytes_max.min(i32::MAX as usize);
        let growth = if old.compression() == Ok(Codec::None) { 1 } else { USUAL_RATIO };
        let input_bytes = old.size_in_bytes() * growth;
        Self {
            encoder: Encoder::new(compression, vec![0; HEADER_BYTES], bytes_max, input_bytes),
            old_base_timestamp: old.base_timestamp,
            new_base_timestamp: None,
            scratch: Vec::with_capacity(32),
        }
    }

    /// Completes the batch; `None` when it became too long. Producer id, epoch and sequence are
    /// those of the old header.
    pub fn finish(
        self,
        old: &BatchHeader,
        codec_id: u8,
        timestamp_type: TimestampType,
        max_timestamp: i64,
    ) -> Option<(BatchHeader, Vec<u8>)> {
        let mut batch = self.encoder.finish().ok()?;
        let mut attributes = i16::from(codec_id) | (old.attributes & TRANSACTIONAL_BIT);
        if timestamp_type == TimestampType::LogAppendTime {
            attributes |= LOG_APPEND_TIME_BIT;
        }
        let mut header = BatchHeader {
            base_offset: 0,
            batch_length: i32::try_from(batch.len() - LOG_OVERHEAD_BYTES).ok()?,
            partition_leader_epoch: -1,
            magic: MAGIC,
            crc: 0,
            attributes,
            last_offset_delta: old.count - 1,
            base_timestamp: self.new_base_timestamp.unwrap_or(old.base_timestamp),
            max_timestamp,
            ..*old
        };
        batch[..HEADER_BYTES].copy_from_slice(&header.encode());
        header.crc = crc_of(&batch);
        batch[CRC_AT..][..4].copy_from_slice(&header.crc.to_be_bytes());
        Some((header, batch))
    }
}

impl Sink for Rewriter {
    fn head(&mut self, head: &RecordHead) -> Result<(), ScanError> {
        let timestamp = self.old_base_timestamp.wrapping_add(head.timestamp_delta);
        let base = *self.new_base_timestamp.get_or_insert(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(base);
        let offset_delta = i64::from(head.index);
        let bytes = 1 + varint::len(timestamp_delta) + varint::len(offset_delta) + head.tail_bytes;
        self.scratch.clear();
        varint::write(&mut self.scratch, bytes as i64);
        self.scratch.push(head.attributes);
        varint::write(&mut self.scratch, timestamp_delta);
        varint::write(&mut self.scratch, offset_delta);
        self.encoder.write_all(&self.scratch).map_err(|_| ScanError::SinkFull)
    }

    fn tail(&mut self, bytes: &[u8]) -> Result<(), ScanError> {
        self.encoder.write_all(bytes).map_err(|_| ScanError::SinkFull)
    }
}

/// How much larger than on the wire compressed records usually are.
const USUAL_RATIO: usize = 8;
