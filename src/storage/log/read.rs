//! Reading batches: from the buffers they were written from, else from disk.
//!
//! Law: whole batches only, in order, from the one that holds the wanted offset up to an exclusive
//! limit. A byte limit never cuts the first batch when one is asked for in any case. Batches of
//! the tail are handed out as they are; those from disk only with the right checksum.

use std::rc::Rc;

use bytes::Bytes;

use super::disk::{DiskError, DiskReader, Pieces};
use super::tail::Chunk;
use super::{Log, LogInner, State};
use crate::errors::ReadError;
use crate::windows::WINDOW_BYTES;

/// Batches that follow each other.
#[derive(Clone, Debug, Default)]
pub struct ReadChunk {
    /// The batches' bytes; a batch may be spread over several slices.
    pub slices: Vec<Bytes>,
    /// Sum of the slices' lengths.
    pub bytes: usize,
    /// First offset of the first batch, at or before the one asked for; −1 without batches.
    pub base_offset: i64,
    /// Where to read on.
    pub next_offset: i64,
}

/// Where a read from disk ended, and how many bytes were asked for ahead of whoever reads on there.
#[derive(Clone, Copy)]
pub struct ReadEnd {
    offset: i64,
    ahead: usize,
}

impl ReadEnd {
    /// Nobody's.
    pub const NONE: ReadEnd = ReadEnd { offset: -1, ahead: 0 };
}

/// What is asked for.
#[derive(Clone, Copy)]
struct Wanted {
    offset: i64,
    max_bytes: usize,
    upto: i64,
    min_one_batch: bool,
}

impl Log {
    /// Batches from the one that holds `offset` on, as far as they end before `upto` and fit
    /// `max_bytes`; with `min_one_batch` the first is given whatever its size. Offsets at or
    /// behind `upto` give nothing, those outside of the log an error.
    pub async fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        upto: i64,
        min_one_batch: bool,
    ) -> Result<ReadChunk, ReadError> {
        let mut wanted = Wanted { offset, max_bytes, upto, min_one_batch };
        loop {
            if let Some(chunk) = self.inner.read_tail(wanted)? {
                self.inner.storage.stats().tail_read_bytes.add(chunk.bytes as u64);
                return Ok(chunk);
            }
            let chunk = self.inner.read_disk(wanted).await?;
            runtime::reached("read from disk");
            self.inner.storage.stats().disk_read_bytes.add(chunk.bytes as u64);
            if chunk.bytes > 0 || chunk.next_offset <= wanted.offset || chunk.next_offset >= upto {
                return Ok(chunk);
            }
            // Compaction has left nothing here: on behind the gap.
            wanted.offset = chunk.next_offset;
        }
    }
}

impl Wanted {
    fn nothing(self) -> ReadChunk {
        let next_offset = self.offset;
        ReadChunk { slices: Vec::new(), bytes: 0, base_offset: -1, next_offset }
    }

    /// Whether a batch that begins at `first` cannot be the one behind `expected`, or the first.
    fn is_misplaced(self, first: i64, expected: Option<i64>, gaps: bool) -> bool {
        match expected {
            Some(expected) => first < expected || (first > expected && !gaps),
            None => first > self.offset && !gaps && !runtime::sabotaged("trust the index"),
        }
    }

    /// Whether a batch goes with what has been gathered.
    fn takes(self, gathered: &ReadChunk, last_offset: i64, size: usize) -> bool {
        let first = gathered.bytes == 0;
        let fits = gathered.bytes + size <= self.max_bytes || (first && self.min_one_batch);
        last_offset < self.upto && fits
    }
}

impl ReadChunk {
    fn add(&mut self, base_offset: i64, last_offset: i64, size: usize) {
        if self.bytes == 0 {
            self.base_offset = base_offset;
        }
        self.bytes += size;
        self.next_offset = last_offset + 1;
    }
}

impl LogInner {
    /// What the tail has of it; none when only the disk has the offset.
    fn read_tail(&self, wanted: Wanted) -> Result<Option<ReadChunk>, ReadError> {
        let state = &mut *self.state.borrow_mut();
        state.service?;
        let (log_start, log_end) = (state.log_start, state.end);
        let offset = wanted.offset;
        if offset < log_start || offset > log_end {
            return Err(ReadError::OutOfRange { offset, log_start, log_end });
        }
        if offset >= wanted.upto.min(log_end) {
            return Ok(Some(wanted.nothing()));
        }
        if wanted.upto > state.tail.frozen_end() && state.tail.find(offset).is_some() {
            // A follower reads what is not yet written.
            self.freeze_open(state);
        }
        let Some(first) = state.tail.find(offset) else { return Ok(None) };
        Ok(Some(gather_tail(state, first, wanted)))
    }

    async fn read_disk(self: &Rc<Self>, wanted: Wanted) -> Result<ReadChunk, ReadError> {
        loop {
            self.wait_for_exchange().await;
            let exchanges = self.exchanges();
            let read = self.read_present(wanted).await;
            if self.exchanges() == exchanges {
                return read;
            }
            runtime::reached("read: again after an exchange");
        }
    }

    /// The answer counts when no segments were exchanged meanwhile.
    async fn read_present(self: &Rc<Self>, wanted: Wanted) -> Result<ReadChunk, ReadError> {
        let exchanges = self.exchanges();
        let first = self.read_segment(wanted).await;
        let Err(ReadError::Corrupt { .. }) = first else { return first };
        if self.exchanges() != exchanges {
            return first;
        }
        runtime::reached("read: index doubted");
        // The index may have led to a place that is no batch.
        let base = self.segment_of(wanted.offset);
        match self.rebuild_index(base).await {
            Ok(()) => self.read_segment(wanted).await,
            Err(_) => first,
        }
    }

    async fn read_segment(self: &Rc<Self>, wanted: Wanted) -> Result<ReadChunk, ReadError> {
        let exchanges = self.exchanges();
        let base = self.segment_of(wanted.offset);
        let start = self.scan_start(base, wanted.offset).await?;
        if self.exchanges() != exchanges {
            return Ok(wanted.nothing());
        }
        let gaps = self.has_gaps();
        let Some(limit) = self.disk_limit(base) else {
            // It left between two awaits: retention or truncation took it.
            let state = self.state.borrow();
            let (log_start, log_end) = (state.log_start, state.end);
            return Err(ReadError::OutOfRange { offset: wanted.offset, log_start, log_end });
        };
        let mut reader = DiskReader::new(self, base, limit);
        let mut position = u64::from(start.position);
        reader.read_ahead(position, position + wanted.max_bytes.min(AT_ONCE_BYTES_MAX) as u64);
        let mut gathered = wanted.nothing();
        let mut pieces = Pieces::default();
        let mut expected = None;
        while position < limit {
            let header = match reader.header(position).await {
                Err(DiskError::Read(error)) if gathered.bytes == 0 => return Err(error),
                Err(_) => break,
                Ok(header) => header,
            };
            let (first, last) = (header.base_offset, header.last_offset());
            let size = header.size_in_bytes();
            if last < first || wanted.is_misplaced(first, expected, gaps) {
                if gathered.bytes > 0 {
                    break;
                }
                return Err(reader.corrupt(position, "it is not the batch that follows"));
            }
            expected = Some(last + 1);
            if last >= wanted.offset {
                if !wanted.takes(&gathered, last, size) {
                    break;
                }
                match reader.batch(position, &header, &mut pieces).await {
                    Ok(()) => gathered.add(first, last, size),
                    Err(_) if gathered.bytes > 0 => break,
                    Err(DiskError::Read(error)) => return Err(error),
                    Err(DiskError::Exchanged) => break,
                    Err(DiskError::Short) => {
                        let alone = reader.batch_alone(position, &header).await?;
                        gathered.add(first, last, size);
                        gathered.slices.push(alone);
                        return Ok(gathered);
                    }
                }
            }
            position += size as u64;
        }
        self.maybe_read_ahead(
            &reader,
            wanted.offset,
            gathered.next_offset,
            position,
            wanted.max_bytes,
        );
        let reached_end = position >= limit && gathered.bytes == 0;
        if reached_end && !self.moves_on(base, limit, gaps, &mut gathered) {
            return Err(reader.corrupt(position, "the offset is in no batch"));
        }
        gathered.slices = pieces.into_slices();
        Ok(gathered)
    }

    /// Whether a read that found nothing in a segment may go on behind it.
    fn moves_on(&self, base: i64, limit: u64, gaps: bool, gathered: &mut ReadChunk) -> bool {
        let state = self.state.borrow();
        let next = state.sealed.iter().map(|segment| segment.base_offset);
        let next = next.chain([state.active.base_offset]).find(|next| *next > base);
        let in_tail = state.tail.begins_at() == Some((base, limit));
        match next {
            Some(next) if gaps => gathered.next_offset = gathered.next_offset.max(next),
            _ => return in_tail,
        }
        true
    }

    /// Base offset of the segment that holds `offset`.
    pub fn segment_of(&self, offset: i64) -> i64 {
        let state = self.state.borrow();
        if offset >= state.active.base_offset {
            return state.active.base_offset;
        }
        let after = state.sealed.partition_point(|segment| segment.base_offset <= offset);
        state
            .sealed
            .get(after.saturating_sub(1))
            .map_or(state.active.base_offset, |s| s.base_offset)
    }

    /// Position up to which a segment's batches are to be read from disk; none when it is gone.
    pub fn disk_limit(&self, base: i64) -> Option<u64> {
        let tail_begin = self.tail_begin(base);
        let state = self.state.borrow();
        let size = if state.active.base_offset == base {
            state.active.size
        } else {
            state.sealed.iter().find(|segment| segment.base_offset == base)?.size
        };
        Some(tail_begin.unwrap_or(size).min(size))
    }

    /// Who reads on where a read ended gets the next bytes ahead of time: as many as it takes at
    /// a time, and twice as many with every read in order, up to what the settings allow.
    fn maybe_read_ahead(
        &self,
        reader: &DiskReader,
        offset: i64,
        next_offset: i64,
        position: u64,
        max_bytes: usize,
    ) {
        let mut ends = self.read_ends.get();
        let most = self.storage.config().read_ahead_bytes_max;
        match ends.iter_mut().find(|end| end.offset == offset) {
            Some(end) => {
                let ahead =
                    max_bytes.max(2 * end.ahead).clamp(WINDOW_BYTES, most.max(WINDOW_BYTES));
                *end = ReadEnd { offset: next_offset, ahead };
                if most > 0 {
                    reader.read_ahead(position, position + ahead as u64);
                }
            }
            None => {
                ends.rotate_right(1);
                ends[0] = ReadEnd { offset: next_offset, ahead: 0 };
            }
        }
        self.read_ends.set(ends);
    }
}

fn gather_tail(state: &State, first: usize, wanted: Wanted) -> ReadChunk {
    let mut gathered = wanted.nothing();
    let mut run: Option<(&Rc<Chunk>, u64, u64)> = None;
    let mut number = first;
    while let Some(batch) = state.tail.batch(number) {
        let size = batch.size as usize;
        if !wanted.takes(&gathered, batch.last_offset, size) {
            break;
        }
        let held = run.map(|(held, _, _)| held).filter(|held| batch.base_offset < held.end_offset);
        let Some(chunk) = held.or_else(|| state.tail.chunk_of(batch.base_offset)) else { break };
        let end = batch.position + u64::from(batch.size);
        run = match run {
            Some((held, from, _)) if Rc::ptr_eq(held, chunk) => Some((held, from, end)),
            finished => {
                gathered.slices.extend(finished.map(|(chunk, from, to)| chunk.slice(from, to)));
                Some((chunk, batch.position, end))
            }
        };
        gathered.add(batch.base_offset, batch.last_offset, size);
        number += 1;
    }
    gathered.slices.extend(run.map(|(chunk, from, to)| chunk.slice(from, to)));
    gathered
}

/// Of what a single read wants, so much is asked for before the first part of it is there.
const AT_ONCE_BYTES_MAX: usize = 8 * WINDOW_BYTES;
