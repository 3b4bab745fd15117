//! The end of a log in memory: what is being gathered, what is being written, what was written.
//!
//! Law: chunks follow each other without a gap, up to the log's end. The open chunk is filled and
//! read by nobody; a frozen one never changes, while it is written and ever after, and readers get
//! slices of it. A chunk starts on a block boundary with the bytes of the block that its
//! predecessor ended in, so that every write is whole blocks. A batch never crosses chunks.
//! Chunks leave at the front, oldest first, and only when they are written to their segment: what
//! is durable in the slot's journal alone stays, and a chunk of which that holds is filled on.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use runtime::file::{AlignedBuf, Block};
use runtime::local::Lease;

use crate::segment::{BLOCK, Trailer, TrailerSalt, blocks_with_trailer};

/// Room for what arrives at a quiet log in one turn.
const CHUNK_BYTES_EXPECTED: usize = 16 << 10;

/// Up to so many bytes a chunk moves to a buffer of its own length. To copy more costs more than
/// the memory that goes to waste.
const EXACT_BYTES_MAX: usize = 32 << 10;

/// A write takes at most this many bytes, unless a single batch is larger.
pub const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Room for what goes to the journal: so much of a log is destaged in one write.
pub const JOURNALED_BYTES: usize = 64 << 10;

/// Chunks are put together to a write of at most this many bytes.
const JOINED_BYTES_MAX: usize = 256 << 10;

/// Where a batch of the tail is. Its segment is that of the chunk that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailBatch {
    pub base_offset: i64,
    pub last_offset: i64,
    pub position: u64,
    pub size: u32,
}

/// A chunk that is still filled.
pub struct OpenChunk {
    pub segment: i64,
    /// Position of the buffer's first byte, a block boundary.
    start: u64,
    /// Position of the first byte that is not carried over.
    from: u64,
    base_offset: i64,
    end_offset: i64,
    records: u64,
    /// The carried bytes and the batches so far.
    buffer: AlignedBuf,
    lease: Lease,
}

/// A chunk that never changes again.
pub struct Chunk {
    pub segment: i64,
    pub start: u64,
    pub from: u64,
    /// Position behind its last batch.
    pub to: u64,
    pub base_offset: i64,
    pub end_offset: i64,
    pub records: u64,
    /// Whole blocks: carried bytes, batches, zeros, mark.
    pub block: Block,
    /// Bytes of memory that it takes from the budget.
    cost: usize,
    bytes: OnceCell<Bytes>,
}

struct Carried {
    segment: i64,
    /// Position behind its bytes.
    position: u64,
    block: Block,
}

#[derive(Default)]
pub struct Tail {
    open: Option<OpenChunk>,
    chunks: VecDeque<Rc<Chunk>>,
    /// How many of `chunks`, from the front, are written.
    written: usize,
    /// Segment and position up to which the slot's journal has what is not written yet.
    journaled_to: Option<(i64, u64)>,
    batches: VecDeque<TailBatch>,
    /// The block in which the log ends, read back because its chunk had left.
    carried: Option<Carried>,
    /// Bytes of the last commit: the next one is likely to be like it.
    last_commit_bytes: usize,
}

impl OpenChunk {
    /// An empty chunk for batches from `position` on. `carried` is what the block that `position`
    /// lies in already holds. `lease` pays for the buffer.
    pub fn new(segment: i64, position: u64, end_offset: i64, carried: &[u8], lease: Lease) -> Self {
        let used = (position % BLOCK as u64) as usize;
        assert_eq!(carried.len(), used, "the carried bytes end where the chunk begins");
        let mut buffer = AlignedBuf::with_room(lease.bytes());
        buffer.put(carried);
        let start = position - used as u64;
        OpenChunk {
            segment,
            start,
            from: position,
            base_offset: end_offset,
            end_offset,
            records: 0,
            buffer,
            lease,
        }
    }

    /// Bytes used, the carried ones included.
    fn used(&self) -> usize {
        self.buffer.len()
    }

    fn fits(&self, bytes: usize) -> bool {
        blocks_with_trailer(self.used() + bytes) <= self.buffer.room()
    }

    /// With a salt, the chunk ends with the mark of a strict commit.
    fn freeze(mut self, salt: Option<TrailerSalt>) -> Chunk {
        let length = blocks_with_trailer(self.used());
        let to = self.start + self.used() as u64;
        if length < self.buffer.room() && length <= EXACT_BYTES_MAX {
            // Readers keep it for as long as there is memory: in no more than it needs.
            let mut exact = AlignedBuf::with_room(length);
            exact.put(&self.buffer);
            self.buffer = exact;
            // The allocator spends about a block more on one that has to be aligned.
            self.lease.shrink(length + BLOCK);
        }
        let cost = self.lease.bytes();
        assert!(cost >= self.buffer.room(), "the lease pays for the whole buffer");
        self.buffer.zero_to(length);
        if let Some(salt) = salt {
            let mark = Trailer { start_position: self.from, end_position: to };
            mark.put(salt, &mut self.buffer[..length]);
        }
        Chunk {
            segment: self.segment,
            start: self.start,
            from: self.from,
            to,
            base_offset: self.base_offset,
            end_offset: self.end_offset,
            records: self.records,
            block: self.buffer.freeze_prefix(length).holding(self.lease),
            cost,
            bytes: OnceCell::new(),
        }
    }
}

impl Chunk {
    /// Chunks that follow each other as one write, with the mark of a strict commit at its end.
    /// What the journal has of them is durable already: the mark says so, as a replay brings it
    /// here whatever becomes of this write.
    pub fn joined(chunks: &[Rc<Chunk>], salt: TrailerSalt, journaled_to: Option<u64>) -> Block {
        let (Some(first), Some(last)) = (chunks.first(), chunks.last()) else {
            return Block::empty();
        };
        let used = (last.to - first.start) as usize;
        let length = blocks_with_trailer(used);
        let mut buffer = AlignedBuf::with_room(length);
        buffer.put(&first.block[..(first.from - first.start) as usize]);
        for chunk in chunks {
            buffer.put(&chunk.block[(chunk.from - chunk.start) as usize..][..chunk.bytes_new()]);
        }
        assert_eq!(buffer.len(), used, "chunks leave no gap");
        buffer.zero_to(length);
        let start = journaled_to.unwrap_or(0).clamp(first.from, last.to);
        let mark = Trailer { start_position: start, end_position: last.to };
        mark.put(salt, &mut buffer[..length]);
        buffer.freeze()
    }

    fn bytes_new(&self) -> usize {
        (self.to - self.from) as usize
    }

    /// The batches at `from..to` of the segment, without a copy.
    pub fn slice(&self, from: u64, to: u64) -> Bytes {
        assert!(self.from <= from && from < to && to <= self.to, "outside of the chunk");
        let bytes = self.bytes.get_or_init(|| self.block.to_bytes());
        bytes.slice((from - self.start) as usize..(to - self.start) as usize)
    }

    /// Bytes of memory it takes from the budget.
    pub fn cost(&self) -> usize {
        self.cost
    }
}

/// Bytes to lease for a chunk that starts `carried` bytes into a block and must take `batch`; no
/// more than `most`, if the batch allows it.
pub fn chunk_bytes(carried: usize, batch: usize, expected: usize, most: usize) -> usize {
    let needed = blocks_with_trailer(carried + batch);
    let wanted = blocks_with_trailer(carried + expected).min(most.min(CHUNK_BYTES_MAX));
    needed.max(wanted)
}

impl Tail {
    /// Whether a batch of that many bytes can be placed at once.
    pub fn has_room(&self, segment: i64, bytes: usize) -> bool {
        let fits = |open: &OpenChunk| open.segment == segment && open.fits(bytes);
        self.open.as_ref().is_some_and(fits)
    }

    /// How many bytes the next chunk is likely to get.
    pub fn expected_bytes(&self) -> usize {
        // A chunk that was too small for what came during one write.
        let outgrown = self.open.as_ref().map_or(0, |open| 2 * open.used());
        let expected = self.last_commit_bytes.max(outgrown).max(CHUNK_BYTES_EXPECTED);
        // What several commits have filled says little of the next one.
        if self.journaled_to.is_some() { expected.min(JOURNALED_BYTES) } else { expected }
    }

    /// The block that `position` lies in, up to `position`, when it is still here.
    pub fn carried(&self, segment: i64, position: u64) -> Option<&[u8]> {
        let carried = (position % BLOCK as u64) as usize;
        if carried == 0 {
            return Some(&[]);
        }
        assert!(self.open.is_none(), "the open chunk is frozen first");
        if let Some(known) = &self.carried
            && (known.segment, known.position) == (segment, position)
        {
            return Some(&known.block);
        }
        let last = self.chunks.back()?;
        if last.segment != segment || last.to != position {
            return None;
        }
        let end = (position - last.start) as usize;
        Some(&last.block[end - carried..end])
    }

    /// What `carried` will give for `position`.
    pub fn restore_carried(&mut self, segment: i64, position: u64, block: Block) {
        assert_eq!(block.len() as u64, position % BLOCK as u64);
        self.carried = Some(Carried { segment, position, block });
    }

    /// `chunk` is filled from now on.
    pub fn begin(&mut self, chunk: OpenChunk) {
        assert!(self.open.is_none(), "one open chunk at a time");
        self.carried = None;
        self.open = Some(chunk);
    }

    /// Copies a batch to the end of the open chunk. `batch` says where it goes; it must have been
    /// asked whether there is room.
    pub fn place(&mut self, batch: TailBatch, records: u64, header: &[u8], body: &[u8]) {
        let Some(open) = self.open.as_mut() else { unreachable!("no open chunk to place into") };
        let size = header.len() + body.len();
        assert!(open.fits(size) && size == batch.size as usize);
        assert_eq!(batch.position, open.start + open.used() as u64, "batches leave no gap");
        assert!(batch.base_offset >= open.end_offset && batch.last_offset >= batch.base_offset);
        open.end_offset = batch.last_offset + 1;
        open.records += records;
        self.batches.push_back(batch);
        open.buffer.put(header);
        open.buffer.put(body);
    }

    /// The open chunk, if it holds a batch, is frozen and queued for writing.
    pub fn freeze_open(&mut self, salt: impl FnOnce(i64) -> Option<TrailerSalt>) {
        let Some(open) = self.open.take() else { return };
        if open.end_offset == open.base_offset {
            return;
        }
        let salt = salt(open.segment);
        self.last_commit_bytes = open.used();
        self.chunks.push_back(Rc::new(open.freeze(salt)));
    }

    pub fn has_unwritten(&self) -> bool {
        self.chunks.len() > self.written
            || self.open.as_ref().is_some_and(|open| open.end_offset > open.base_offset)
    }

    /// Bytes of batches that are in no segment and in no journal yet.
    pub fn pending_bytes(&self) -> usize {
        self.unwritten(|_, piece| piece.len()).sum()
    }

    /// Position in the segment up to which the journal has what is not written yet.
    pub fn journaled_to(&self, segment: i64) -> Option<u64> {
        self.journaled_to.filter(|(found, _)| *found == segment).map(|(_, to)| to)
    }

    /// Bytes of batches that only the journal has.
    pub fn journaled_bytes(&self) -> u64 {
        let Some((_, to)) = self.journaled_to else { return 0 };
        let open = self.open.as_ref().map(|open| open.from);
        let from = self.chunks.get(self.written).map(|chunk| chunk.from).or(open);
        from.map_or(0, |from| to.saturating_sub(from))
    }

    /// Bytes of memory that chunks hold which are in no segment yet.
    pub fn unwritten_cost(&self) -> usize {
        let frozen = self.chunks.iter().skip(self.written).map(|chunk| chunk.cost());
        frozen.sum::<usize>() + self.open.as_ref().map_or(0, |open| open.lease.bytes())
    }

    /// What is pending in this segment, in order; none when some of it belongs into another.
    pub fn pending_in(&self, segment: i64) -> Option<impl Iterator<Item = &[u8]>> {
        let whole = self.unwritten(|found, _| found == segment).all(|same| same);
        whole.then(|| self.unwritten(|_, piece| piece))
    }

    /// The parts of unwritten chunks that are not journaled, by their segments.
    fn unwritten<'a, T>(
        &'a self,
        take: impl Fn(i64, &'a [u8]) -> T + 'a,
    ) -> impl Iterator<Item = T> + 'a {
        let frozen = self.chunks.iter().skip(self.written);
        let frozen = frozen.map(|chunk| {
            let used = (chunk.to - chunk.start) as usize;
            (chunk.segment, chunk.start, chunk.from, &chunk.block[..used])
        });
        let open = self.open.iter().map(|open| {
            let filled: &[u8] = &open.buffer;
            (open.segment, open.start, open.from, filled)
        });
        frozen.chain(open).filter_map(move |(segment, start, from, bytes)| {
            let from = match self.journaled_to {
                Some((journaled, to)) if journaled == segment => from.max(to),
                _ => from,
            };
            let rest = bytes.get((from - start) as usize..)?;
            (!rest.is_empty()).then(|| take(segment, rest))
        })
    }

    /// The journal has everything before this position.
    pub fn on_journaled(&mut self, segment: i64, to: u64) {
        assert!(self.journaled_to.is_none_or(|known| known < (segment, to)));
        self.journaled_to = Some((segment, to));
    }

    /// The oldest chunks that are not written yet, as many as one write takes: `most` bytes, unless
    /// the first is larger. The open chunk must have been frozen if it is to be seen.
    pub fn next_to_write(&self, most: usize) -> Vec<Rc<Chunk>> {
        let most = most.min(JOINED_BYTES_MAX);
        let mut next: Vec<Rc<Chunk>> = Vec::new();
        let mut bytes = 0;
        for chunk in self.chunks.iter().skip(self.written) {
            let last = next.last();
            let follows = last.is_none_or(|last| last.segment == chunk.segment);
            bytes += chunk.bytes_new();
            // Chunks are put together by a copy: worth it for those that are small.
            let joins = last.is_none() || (self.journaled_to.is_some() && bytes <= most);
            if !follows || !joins {
                break;
            }
            next.push(Rc::clone(chunk));
        }
        next
    }

    pub fn has_frozen_unwritten(&self) -> bool {
        self.chunks.len() > self.written
    }

    /// The oldest unwritten chunk is written.
    pub fn on_written(&mut self) {
        assert!(self.written < self.chunks.len());
        let chunk = &self.chunks[self.written];
        if self.journaled_to.is_some_and(|to| to <= (chunk.segment, chunk.to)) {
            self.journaled_to = None;
        }
        self.written += 1;
    }

    /// Lets go of the oldest written chunk; returns the bytes it held.
    pub fn evict_oldest(&mut self) -> Option<usize> {
        if self.written == 0 {
            return None;
        }
        self.written -= 1;
        let chunk = self.chunks.pop_front()?;
        while self.batches.front().is_some_and(|batch| batch.last_offset < chunk.end_offset) {
            self.batches.pop_front();
        }
        if self.chunks.is_empty() && self.open.is_none() {
            assert!(self.batches.is_empty());
            self.batches = VecDeque::new();
            self.chunks = VecDeque::new();
            self.last_commit_bytes = 0;
        }
        Some(chunk.cost())
    }

    /// Lets go of the written chunks of segments up to the one with this base offset; returns the
    /// bytes they held.
    pub fn forget_segments_to(&mut self, base: i64) -> usize {
        let mut held = 0;
        while self.chunks.front().is_some_and(|chunk| chunk.segment <= base)
            && let Some(bytes) = self.evict_oldest()
        {
            held += bytes;
        }
        held
    }

    /// Forgets everything; nothing may be waiting to be written. Returns the bytes that were held.
    pub fn clear(&mut self) -> usize {
        assert!(!self.has_unwritten(), "unwritten batches must not be forgotten");
        let held = self.chunks.iter().map(|chunk| chunk.cost()).sum();
        *self = Tail::default();
        held
    }

    /// Segment and position of the first batch that is here.
    pub fn begins_at(&self) -> Option<(i64, u64)> {
        let first = self.chunks.front().map(|chunk| (chunk.segment, chunk.from));
        first.or_else(|| self.open.as_ref().map(|open| (open.segment, open.from)))
    }

    /// Offset behind the last frozen chunk; −1 when there is none.
    pub fn frozen_end(&self) -> i64 {
        self.chunks.back().map_or(-1, |chunk| chunk.end_offset)
    }

    /// Number of the batch that holds `offset` or is the first behind it; none when the tail
    /// begins behind `offset`.
    pub fn find(&self, offset: i64) -> Option<usize> {
        let first = self.batches.front()?;
        if offset < first.base_offset {
            return None;
        }
        Some(self.batches.partition_point(|batch| batch.last_offset < offset))
    }

    pub fn batch(&self, number: usize) -> Option<&TailBatch> {
        self.batches.get(number)
    }

    /// The frozen chunk that holds `offset`.
    pub fn chunk_of(&self, offset: i64) -> Option<&Rc<Chunk>> {
        let number = self.chunks.partition_point(|chunk| chunk.end_offset <= offset);
        self.chunks.get(number).filter(|chunk| chunk.base_offset <= offset)
    }
}
