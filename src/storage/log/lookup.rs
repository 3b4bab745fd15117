//! Offsets by timestamp (ListOffsets, KIP-79, KIP-734).
//!
//! Law: the answer is the first record, in offset order and not below the log start, whose
//! timestamp is the wanted one or later. Indexes only say where to begin.

use bytes::{Bytes, BytesMut};
use protocol::batch::{BatchHeader, HEADER_BYTES, RecordIter, decompress};

use super::{Log, LogInner};
use crate::errors::ReadError;
use crate::segment::Largest;
use std::rc::Rc;

/// A record found by its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampOffset {
    /// Milliseconds.
    pub timestamp: i64,
    pub offset: i64,
    pub leader_epoch: i32,
}

impl Log {
    /// The first record before `upto` with a timestamp of `timestamp` or later; none when there
    /// is none.
    pub async fn offset_for_timestamp(
        &self,
        timestamp: i64,
        upto: i64,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        loop {
            let exchanges = self.inner.exchanges();
            let found = self.first_from(timestamp, upto).await;
            if self.inner.exchanges() == exchanges {
                return found;
            }
        }
    }

    async fn first_from(
        &self,
        timestamp: i64,
        upto: i64,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        let log = &self.inner;
        for base in log.segment_bases() {
            let reaches = match log.largest(base).await? {
                Largest::Known(largest) => largest.timestamp >= timestamp,
                Largest::None | Largest::Unread => false,
            };
            if !reaches {
                continue;
            }
            let from = log.timestamp_scan_start(base, timestamp).await?;
            let matches = |found: i64| found >= timestamp;
            if let Some(found) = log.find_record(from, upto, matches).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first record that has the largest timestamp of the log; none in a log without
    /// timestamps.
    pub async fn max_timestamp(&self) -> Result<Option<TimestampOffset>, ReadError> {
        loop {
            let exchanges = self.inner.exchanges();
            let found = self.newest().await;
            if self.inner.exchanges() == exchanges {
                return found;
            }
        }
    }

    async fn newest(&self) -> Result<Option<TimestampOffset>, ReadError> {
        let log = &self.inner;
        let mut newest: Option<crate::index::TimeEntry> = None;
        for base in log.segment_bases() {
            if let Largest::Known(entry) = log.largest(base).await?
                && newest.is_none_or(|known| known.timestamp < entry.timestamp)
            {
                newest = Some(entry);
            }
        }
        let Some(entry) = newest else { return Ok(None) };
        let matches = |found: i64| found == entry.timestamp;
        let upto = entry.last_offset + 1;
        let found = log.find_record(entry.last_offset, upto, matches).await?;
        Ok(found.or_else(|| {
            let leader_epoch = self.epoch_at(entry.last_offset).unwrap_or(-1);
            let (timestamp, offset) = (entry.timestamp, entry.last_offset);
            Some(TimestampOffset { timestamp, offset, leader_epoch })
        }))
    }
}

impl LogInner {
    fn segment_bases(&self) -> Vec<i64> {
        let state = self.state.borrow();
        let sealed = state.sealed.iter().map(|segment| segment.base_offset);
        sealed.chain([state.active.base_offset]).collect()
    }

    /// The largest timestamp of a segment.
    pub async fn largest(self: &Rc<Self>, base: i64) -> Result<Largest, ReadError> {
        if self.state.borrow().active.base_offset == base {
            self.ensure_active_index().await?;
            let state = self.state.borrow();
            let index = state.active.index.as_ref();
            return Ok(index.map_or(Largest::None, Largest::of));
        }
        {
            let state = self.state.borrow();
            let found = state.sealed.iter().find(|segment| segment.base_offset == base);
            match found.map_or(Largest::None, |segment| segment.largest) {
                Largest::Unread => {}
                known => return Ok(known),
            }
        }
        Ok(Largest::of(&*self.sealed_index(base).await?))
    }

    async fn timestamp_scan_start(
        self: &Rc<Self>,
        base: i64,
        timestamp: i64,
    ) -> Result<i64, ReadError> {
        if self.state.borrow().active.base_offset != base {
            return Ok(self.sealed_index(base).await?.scan_start_for_timestamp(timestamp).offset);
        }
        self.ensure_active_index().await?;
        let state = self.state.borrow();
        let index = state.active.index.as_ref();
        Ok(index.map_or(base, |index| index.scan_start_for_timestamp(timestamp).offset))
    }

    /// The first record whose timestamp matches, in the batches from the one that holds `from` on
    /// to those before `upto`. Batches whose largest timestamp does not match are passed over
    /// without a look inside.
    async fn find_record(
        self: &Rc<Self>,
        from: i64,
        upto: i64,
        matches: impl Fn(i64) -> bool,
    ) -> Result<Option<TimestampOffset>, ReadError> {
        let log = Log { inner: Rc::clone(self) };
        let log_start = log.log_start_offset();
        let mut offset = from.max(log_start);
        while offset < upto {
            let chunk = log.read(offset, SCAN_BYTES, upto, true).await?;
            if chunk.bytes == 0 {
                break;
            }
            let mut rest = contiguous(&chunk.slices);
            while let Ok(header) = BatchHeader::parse(&rest) {
                let batch = rest.split_to(header.size_in_bytes());
                if !matches(header.max_timestamp) {
                    continue;
                }
                if let Some(found) = first_match(&header, &batch, log_start, &matches) {
                    return Ok(Some(found));
                }
            }
            offset = chunk.next_offset;
        }
        Ok(None)
    }
}

/// The first record of a batch, at `from` or behind it, whose timestamp matches. A batch whose
/// records cannot be read is answered with its first offset: it is served as it is.
fn first_match(
    header: &BatchHeader,
    batch: &Bytes,
    from: i64,
    matches: &impl Fn(i64) -> bool,
) -> Option<TimestampOffset> {
    let found = |timestamp, offset| TimestampOffset {
        timestamp,
        offset,
        leader_epoch: header.partition_leader_epoch,
    };
    let codec = header.compression().ok()?;
    let Ok(body) = decompress(codec, &batch[HEADER_BYTES..], BODY_BYTES_MAX) else {
        return Some(found(header.max_timestamp, header.base_offset.max(from)));
    };
    for record in RecordIter::new(&body, header.count) {
        let Ok(record) = record else { break };
        let timestamp = header.record_timestamp(record.timestamp_delta);
        let offset = header.base_offset + i64::from(record.offset_delta);
        if offset >= from && matches(timestamp) {
            return Some(found(timestamp, offset));
        }
    }
    None
}

pub fn contiguous(slices: &[Bytes]) -> Bytes {
    if let [whole] = slices {
        return whole.clone();
    }
    let mut joined = BytesMut::with_capacity(slices.iter().map(Bytes::len).sum());
    slices.iter().for_each(|slice| joined.extend_from_slice(slice));
    runtime::copied(joined.len());
    joined.freeze()
}

/// Bytes of batches looked at at a time.
const SCAN_BYTES: usize = 128 << 10;
/// Decompressed bytes of one batch that are looked at.
const BODY_BYTES_MAX: usize = 128 << 20;
