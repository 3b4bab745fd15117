//! One segment, batch by batch, from its first byte to its last.
//!
//! Law: every batch is judged by its checksum, its place in the chain of offsets and its leader
//! epoch. Offsets and epochs are not covered by the checksum: the chain and the file of leader
//! epochs know what they must be. Behind damage the check goes on at the next batch that is whole,
//! so that one fault does not hide another.

use std::borrow::Cow;
use std::path::PathBuf;

use protocol::batch::header::{HEADER_BYTES, crc_ok};
use protocol::batch::{
    BatchError, BatchHeader, Codec, RecordIter, decompress, decompressed_bytes_max,
};

use super::fault::{Fault, FaultKind};
use super::index_check::IndexCheck;
use super::window::Window;
use super::{OfflineError, VerifyOptions};
use crate::epochs::LeaderEpochs;
use crate::index::IndexedBatch;
use crate::recovery::{Ending, Survey};
use crate::segment::{
    BLOCK, Chain, ChainBreak, SEGMENT_BYTES_MAX, TRAILER_BYTES, TrailerSalt, ends_like_a_mark,
};

/// What is known about a segment from outside of it.
pub(super) struct Surroundings<'a> {
    /// Base offset of the segment that follows.
    pub next_base: Option<i64>,
    /// The leader epochs of all offsets below `epochs_to`.
    pub epochs: Option<&'a LeaderEpochs>,
    pub epochs_to: i64,
    /// None when it is not known whose segment this is.
    pub salt: Option<TrailerSalt>,
    pub options: VerifyOptions,
}

/// A segment being read.
pub(super) struct SegmentCheck<'a> {
    window: Window,
    around: Surroundings<'a>,
    chain: Chain,
    index: Option<IndexCheck>,
    pub found: SegmentFound,
}

/// What a segment holds.
#[derive(Debug, Default)]
pub(super) struct SegmentFound {
    pub batches: u64,
    pub records: u64,
    /// Position behind its last batch.
    pub end: u64,
    pub faults: Vec<Fault>,
}

enum Step {
    End,
    Batch(BatchHeader),
    Break(ChainBreak),
}

impl<'a> SegmentCheck<'a> {
    pub fn new(
        window: Window,
        chain: Chain,
        around: Surroundings<'a>,
        index: Option<IndexCheck>,
    ) -> Self {
        SegmentCheck { window, around, chain, index, found: SegmentFound::default() }
    }

    /// Reads the segment and returns the chain behind it.
    pub fn run(mut self) -> Result<(SegmentFound, Chain), OfflineError> {
        let mut position = 0;
        loop {
            match self.step(position)? {
                Step::End => break,
                Step::Batch(header) => {
                    self.judge_place(&header, position)?;
                    self.judge_records(&header, position)?;
                    position += header.size_in_bytes() as u64;
                }
                Step::Break(reason) => match self.next_whole_batch(position)? {
                    Some((next, base_offset)) => {
                        self.fault(position, FaultKind::Batch(reason));
                        self.chain.next_offset = base_offset;
                        if let Some(index) = &mut self.index {
                            index.skip_to(next, base_offset);
                        }
                        position = next;
                    }
                    None => {
                        self.judge_end(position, reason)?;
                        break;
                    }
                },
            }
        }
        self.found.end = position;
        if let Some(index) = self.index.take() {
            let faults = index.finish(self.around.next_base.is_some());
            self.found.faults.extend(faults);
        }
        Ok((self.found, self.chain))
    }

    /// The batch at `position`, whole; its place in the log is not looked at.
    fn step(&mut self, position: u64) -> Result<Step, OfflineError> {
        let rest = self.window.length() - position;
        if rest == 0 {
            return Ok(Step::End);
        }
        let head = self.window.bytes(position, HEADER_BYTES)?;
        let header = match BatchHeader::parse_prefix(head) {
            Ok(header) => header,
            Err(error) => return Ok(Step::Break(ChainBreak::Header(error))),
        };
        let size = header.size_in_bytes();
        if size as u64 > rest {
            let available = rest as usize;
            return Ok(Step::Break(ChainBreak::Header(BatchError::Incomplete { size, available })));
        }
        if header.last_offset_delta < 0 {
            return Ok(Step::Break(ChainBreak::LastOffset(header.last_offset_delta)));
        }
        match crc_ok(self.window.bytes(position, size)?) {
            true => Ok(Step::Batch(header)),
            false => Ok(Step::Break(ChainBreak::Checksum)),
        }
    }

    /// Offset and epoch of a whole batch.
    fn judge_place(&mut self, header: &BatchHeader, position: u64) -> Result<(), OfflineError> {
        let (expected, mut base_offset) = (self.chain.next_offset, header.base_offset);
        if base_offset < expected || (base_offset > expected && !self.chain.gaps) {
            let reason = ChainBreak::Offset { found: base_offset, expected };
            self.fault(position, FaultKind::Batch(reason));
            // The batch that follows tells whether offsets are missing or this one is wrong.
            let behind = position + header.size_in_bytes() as u64;
            let follows = match self.step(behind)? {
                Step::Batch(next) => next.base_offset == header.next_offset(),
                Step::End | Step::Break(_) => false,
            };
            if base_offset < expected || !follows {
                base_offset = expected;
            }
        }
        self.judge_epoch(header, position, base_offset);
        let last_offset = base_offset.saturating_add(i64::from(header.last_offset_delta));
        self.chain.next_offset = last_offset.saturating_add(1);
        self.found.batches += 1;
        self.found.records += header.count.max(0) as u64;
        if let Some(index) = &mut self.index {
            index.on_batch(&IndexedBatch {
                last_offset,
                position: position as u32,
                size_bytes: header.size_in_bytes() as u32,
                max_timestamp: header.max_timestamp,
            });
        }
        Ok(())
    }

    fn judge_epoch(&mut self, header: &BatchHeader, position: u64, base_offset: i64) {
        let found = header.partition_leader_epoch;
        let known = self.around.epochs.filter(|_| base_offset < self.around.epochs_to);
        let expected = known.and_then(|epochs| epochs.epoch_at(base_offset));
        match expected {
            Some(expected) if expected != found => {
                self.fault(position, FaultKind::Epoch { expected, found });
            }
            None if found < self.chain.epoch => {
                let known = self.chain.epoch;
                self.fault(position, FaultKind::Batch(ChainBreak::Epoch { found, known }));
            }
            _ => self.chain.epoch = found,
        }
    }

    /// Looks at each record, when that was asked for.
    fn judge_records(&mut self, header: &BatchHeader, position: u64) -> Result<(), OfflineError> {
        let offsets = i64::from(header.last_offset_delta) + 1;
        if !self.around.options.deep {
            return Ok(());
        }
        if i64::from(header.count) > offsets
            || (!self.chain.gaps && i64::from(header.count) != offsets)
        {
            self.fault(position, FaultKind::Count { count: header.count, offsets });
        }
        let batch = self.window.bytes(position, header.size_in_bytes())?;
        let body = &batch[HEADER_BYTES..];
        let kind = match body_of(header, body) {
            Err(reason) => Some(FaultKind::Compressed(reason)),
            Ok(body) => {
                let mut records = RecordIter::new(&body, header.count);
                records.find_map(Result::err).map(FaultKind::Record)
            }
        };
        if let Some(kind) = kind {
            self.fault(position, kind);
        }
        Ok(())
    }

    /// Where the next whole batch of this segment begins, behind damage at `position`, and its
    /// base offset.
    fn next_whole_batch(&mut self, position: u64) -> Result<Option<(u64, i64)>, OfflineError> {
        let mut at = position + 1;
        while at + HEADER_BYTES as u64 <= self.window.length() {
            let bytes = self.window.bytes(at, SCAN_BYTES)?;
            let Some(heads) = bytes.len().checked_sub(HEADER_BYTES - 1) else { break };
            let magic = bytes[MAGIC_AT..MAGIC_AT + heads].iter().position(|byte| *byte == MAGIC);
            let Some(candidate) = magic else {
                at += heads as u64;
                continue;
            };
            at += candidate as u64;
            if let Some(base_offset) = self.whole_batch_at(at)? {
                return Ok(Some((at, base_offset)));
            }
            at += 1;
        }
        Ok(None)
    }

    fn whole_batch_at(&mut self, position: u64) -> Result<Option<i64>, OfflineError> {
        let head = self.window.bytes(position, HEADER_BYTES)?;
        let Ok(header) = BatchHeader::parse_prefix(head) else { return Ok(None) };
        let next_base = self.around.next_base.unwrap_or(i64::MAX);
        let offsets = self.chain.next_offset..next_base;
        let fits = header.size_in_bytes() as u64 <= SEGMENT_BYTES_MAX;
        if !fits || !offsets.contains(&header.base_offset) {
            return Ok(None);
        }
        match self.step(position)? {
            Step::Batch(header) => Ok(Some(header.base_offset)),
            Step::End | Step::Break(_) => Ok(None),
        }
    }

    /// No batch follows `position` in this file.
    fn judge_end(&mut self, position: u64, reason: ChainBreak) -> Result<(), OfflineError> {
        let head = self.window.bytes(position, HEADER_BYTES)?;
        let nothing_there = head.iter().all(|byte| *byte == 0);
        let batch_bytes = match BatchHeader::parse_prefix(head) {
            Ok(header) => Some(header.size_in_bytes()),
            Err(_) => None,
        };
        let mut survey = Survey::at(position, self.chain.next_offset);
        let extent = position + batch_bytes.unwrap_or(HEADER_BYTES) as u64;
        let mut at = position - position % BLOCK as u64;
        while at < self.window.length() {
            let salt = self.around.salt;
            let block = self.window.bytes(at, BLOCK)?;
            match salt {
                Some(salt) => survey.look_at(block, at, position, extent, salt),
                None => {
                    let (block, salt) = (without_mark(block), TrailerSalt::NONE);
                    survey.look_at(block, at, position, extent, salt);
                }
            }
            at += BLOCK as u64;
        }
        let bytes = survey.written_to - position;
        let sealed = self.around.next_base.is_some();
        let kind = match survey.verdict(position, batch_bytes) {
            Ending::Clean => return Ok(()),
            Ending::Torn { bytes } if !sealed => FaultKind::Unfinished { bytes },
            Ending::Torn { .. } => FaultKind::Behind { bytes, reason: "the segment is sealed" },
            Ending::Damaged { reason } if nothing_there => FaultKind::Behind { bytes, reason },
            Ending::Damaged { .. } => FaultKind::Batch(reason),
        };
        self.fault(position, kind);
        Ok(())
    }

    fn fault(&mut self, position: u64, kind: FaultKind) {
        let file: PathBuf = self.window.path().to_owned();
        let offset = Some(self.chain.next_offset);
        self.found.faults.push(Fault { file, position, offset, kind });
    }
}

/// The records of a batch, decompressed.
pub(super) fn body_of<'a>(header: &BatchHeader, body: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
    match header.compression() {
        Err(codec) => Err(format!("there is no codec {codec}")),
        Ok(Codec::None) => Ok(Cow::Borrowed(body)),
        Ok(codec) => decompress(codec, body, decompressed_bytes_max(usize::MAX))
            .map(Cow::Owned)
            .map_err(|error| error.to_string()),
    }
}

/// The block without the mark at its end, if one seems to be there.
fn without_mark(block: &[u8]) -> &[u8] {
    match ends_like_a_mark(block) {
        true => &block[..block.len() - TRAILER_BYTES],
        false => block,
    }
}

const MAGIC_AT: usize = 16;
const MAGIC: u8 = 2;
const SCAN_BYTES: usize = 1 << 20;
