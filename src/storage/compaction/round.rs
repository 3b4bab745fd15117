//! One round of cleaning one log.

use std::rc::Rc;

use protocol::batch::BatchHeader;
use runtime::file::{FsError, Mode};
use runtime::local::Lease;
use runtime::task::blocking;
use thiserror::Error;

use super::chunks::{Chunk, ChunkError, Chunks, accepted};
use super::filter::{Rules, Verdict, judge, map_batch};
use super::keys::{KeyMap, SLOT_BYTES};
use super::new_segment::{self, NewSegment};
use super::pace::Pace;
use super::plan::{Candidate, Cleanable, GroupLimits, Position, Wishes, cleanable, grouped};
use super::quiet::Stopped;
use super::transactions::WalkedTransactions;
use super::{cleaned_to, filter};
use crate::errors::{ReadError, Unavailable};
use crate::index::{OffsetIndex, TimeIndex};
use crate::log::{Log, LogInner};
use crate::segment::{Chain, SEGMENT_BYTES_MAX};

/// What a slot's rounds may use. One round at a time draws on it.
pub struct Cleaner {
    /// Bytes of the table of keys, at most (`log.cleaner.dedupe.buffer.size`).
    pub map_bytes_max: usize,
    /// How full that table may be (`log.cleaner.io.buffer.load.factor`).
    pub map_load: f64,
    /// Bytes that are read at once (`log.cleaner.io.buffer.size`).
    pub read_bytes: usize,
    pub pace: Pace,
}

/// What a round did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Up to here the log is clean.
    pub cleaned_to: i64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Of the segments that were looked at, before and after.
    pub segments: (usize, usize),
    pub bytes: (u64, u64),
    /// Keys in the dirty part.
    pub keys: usize,
    /// The memory for keys did not suffice: the rest is for the next round.
    pub map_full: bool,
}

/// Why a round ended early. What it had exchanged stays.
#[derive(Debug, Error)]
pub enum CleanError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("someone else needs the log")]
    Stopped,
    #[error("no space left for a cleaned segment")]
    NoSpace,
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<Stopped> for CleanError {
    fn from(_: Stopped) -> CleanError {
        CleanError::Stopped
    }
}

impl Cleaner {
    pub fn new(map_bytes_max: usize, bytes_per_second: f64) -> Cleaner {
        let (map_load, read_bytes) = (0.9, 512 << 10);
        Cleaner { map_bytes_max, map_load, read_bytes, pace: Pace::new(bytes_per_second) }
    }
}

impl Log {
    /// What could be cleaned now, as the topic's options want it. Nothing of a log that is not
    /// compacted.
    pub async fn cleanable(&self, now_ms: i64) -> Result<Cleanable, ReadError> {
        let log = &self.inner;
        log.check_service()?;
        let wishes = log.options().compaction;
        let candidates = log.candidates(&wishes).await?;
        let state = log.state.borrow();
        let position = Position {
            log_start: state.log_start,
            cleaned_to: state.cleaned_to,
            stable_to: state.committed,
        };
        Ok(cleanable(&candidates, position, &wishes, now_ms))
    }

    /// Cleans what can be cleaned, as far as the table of keys goes. `now_ms` is the broker's
    /// clock.
    pub async fn clean(&self, cleaner: &Cleaner, now_ms: i64) -> Result<Cleaned, CleanError> {
        let log = &self.inner;
        let Some(_turn) = log.clean_turn.begin() else { return Err(CleanError::Stopped) };
        let cleanable = self.cleanable(now_ms).await?;
        if cleanable.dirty_bytes == 0 {
            return Ok(Cleaned { cleaned_to: cleanable.first_dirty, ..Cleaned::default() });
        }
        let buffers = log.storage.memory().lease(2 * cleaner.read_bytes).await;
        let done = Cleaned::default();
        let started = runtime::time::now();
        let round = Round { log, cleaner, now_ms, cleanable, done, _buffers: buffers };
        let cleaned = round.run().await;
        if let Err(CleanError::Read(ReadError::Corrupt { .. })) = &cleaned {
            log.uncleanable.set(true);
        }
        let stats = log.storage.stats();
        stats.cleaner_rounds.increment();
        stats.cleaner_latency.record_nanos(runtime::time::now().since(started).as_nanos() as u64);
        cleaned
    }

    /// A round has met damage in the log: it is not cleaned any more.
    pub fn is_uncleanable(&self) -> bool {
        self.inner.uncleanable.get()
    }
}

struct Round<'a> {
    log: &'a Rc<LogInner>,
    cleaner: &'a Cleaner,
    now_ms: i64,
    cleanable: Cleanable,
    done: Cleaned,
    _buffers: Lease,
}

/// What mapping carries from chunk to chunk, to the thread beside the executor and back.
struct Mapping {
    map: KeyMap,
    transactions: WalkedTransactions,
    chain: Chain,
    from: i64,
    mapped_to: i64,
    full: bool,
}

/// What judging carries likewise.
struct Judging {
    rules: Rules,
    map: KeyMap,
    transactions: WalkedTransactions,
    chain: Chain,
    /// The last batch of the group that was not kept, until one is.
    last_gone: Option<BatchHeader>,
    kept: Vec<(BatchHeader, bytes::Bytes)>,
}

/// Position and reason of damage in a segment.
type Damage = (u64, String);

impl Round<'_> {
    async fn run(mut self) -> Result<Cleaned, CleanError> {
        let candidates = self.log.candidates(&self.log.options().compaction).await?;
        let (mapping, lease) = self.map_keys(&candidates).await?;
        let mapped_to = if mapping.full { mapping.mapped_to } else { self.cleanable.to };
        self.done.keys = mapping.map.count();
        self.done.map_full = mapping.full;
        runtime::reached("clean: keys mapped");
        let segments = self.measured(candidates, mapped_to).await?;
        let options = self.log.options();
        let limits = GroupLimits {
            segment_bytes: options.segment_bytes.min(SEGMENT_BYTES_MAX),
            index_bytes: u64::from(options.segment_index_bytes),
        };
        let rules = Rules {
            now_ms: self.now_ms,
            delete_retention_ms: options.delete_retention_ms,
            mapped_to,
            cleanable_to: self.cleanable.to,
            producers: Default::default(),
        };
        let mut judging = Judging {
            rules,
            map: mapping.map,
            transactions: WalkedTransactions::default(),
            chain: mapping.chain,
            last_gone: None,
            kept: Vec::new(),
        };
        for group in grouped(&segments, limits) {
            judging = self.clean_group(group, judging).await?;
        }
        drop(lease);
        self.log.set_cleaned_to(mapped_to).await?;
        self.done.cleaned_to = mapped_to;
        runtime::reached("clean: round done");
        Ok(self.done)
    }

    async fn map_keys(&mut self, candidates: &[Candidate]) -> Result<(Mapping, Lease), CleanError> {
        let Cleanable { first_dirty, to, .. } = self.cleanable;
        let seed = [runtime::time::random_u64(), runtime::time::random_u64()];
        let bytes = MAP_BYTES_FIRST.min(self.cleaner.map_bytes_max);
        let mut lease = self.log.storage.memory().lease(bytes).await;
        let mut mapping = Mapping {
            map: KeyMap::new(seed, bytes, self.cleaner.map_load),
            transactions: WalkedTransactions::default(),
            chain: Chain { next_offset: first_dirty, epoch: -1, gaps: true },
            from: first_dirty,
            mapped_to: first_dirty,
            full: false,
        };
        let dirty = candidates.iter().filter(|segment| segment.next_base > first_dirty);
        for segment in dirty.take_while(|segment| segment.next_base <= to) {
            let base = segment.base_offset;
            let start = self.log.scan_start(base, first_dirty.max(base)).await?;
            mapping.chain = Chain { next_offset: base, epoch: -1, gaps: true };
            let mut chunks = self.chunks(segment, u64::from(start.position)).await?;
            while let Some(chunk) = self.next_chunk(base, &mut chunks).await? {
                mapping = self.with_room(mapping, &mut lease, &chunk).await;
                let mapped = blocking(move || mapping.map_chunk(&chunk)).await;
                mapping = mapped.map_err(|damage| self.damaged(base, damage))?;
                if mapping.full {
                    return Ok((mapping, lease));
                }
            }
        }
        Ok((mapping, lease))
    }

    /// The table with room for the keys of the chunk, if memory allows.
    async fn with_room(&self, mapping: Mapping, lease: &mut Lease, chunk: &Chunk) -> Mapping {
        let batches = protocol::batch::Batches::of(chunk.bytes.clone());
        let records = batches.filter_map(|batch| batch.ok()).map(|(header, _)| header.count);
        let records = records.map(|count| count.max(0) as usize).sum::<usize>();
        if mapping.map.room() >= records || lease.bytes() >= self.cleaner.map_bytes_max {
            return mapping;
        }
        let needed = (mapping.map.count() + records) as f64 / self.cleaner.map_load;
        let wanted = (needed as usize + 2).saturating_mul(SLOT_BYTES).max(2 * lease.bytes());
        let bytes = wanted.min(self.cleaner.map_bytes_max);
        let Some(larger) = self.log.storage.memory().try_lease(bytes) else { return mapping };
        let load = self.cleaner.map_load;
        let Mapping { map, .. } = mapping;
        let map = blocking(move || map.grown(bytes, load)).await;
        *lease = larger;
        Mapping { map, ..mapping }
    }

    /// The segments up to `mapped_to` with the sizes of their indexes.
    async fn measured(
        &self,
        candidates: Vec<Candidate>,
        mapped_to: i64,
    ) -> Result<Vec<Candidate>, CleanError> {
        let mut segments = candidates;
        segments.retain(|it| it.base_offset < mapped_to && it.next_base <= self.cleanable.to);
        for segment in &mut segments {
            let index = self.log.sealed_index(segment.base_offset).await?;
            let offsets = index.offsets().len() * OffsetIndex::ENTRY_BYTES;
            let times = index.times().len() * TimeIndex::ENTRY_BYTES;
            segment.index_bytes = (offsets as u64, times as u64);
        }
        Ok(segments)
    }

    async fn clean_group(
        &mut self,
        group: &[Candidate],
        mut judging: Judging,
    ) -> Result<Judging, CleanError> {
        let base = group[0].base_offset;
        let dir = self.log.dir.borrow().clone();
        judging.rules.producers = self.log.state.borrow().producers.last_of_each();
        judging.chain = Chain { next_offset: base, epoch: -1, gaps: true };
        let mode = if self.log.storage.direct_io() { Mode::Direct } else { Mode::Buffered };
        let created = NewSegment::create(&dir, base, mode, self.log.index_policy()).await;
        let mut made = self.on_write(base, created).await?;
        let filled = self.fill(group, judging, &mut made).await;
        let mut judging = match filled {
            Ok(judging) => judging,
            Err(error) => {
                self.discard(base).await;
                return Err(error);
            }
        };
        if let Some(header) = judging.last_gone.take().filter(|_| made.size() == 0) {
            // A segment is never without a batch: its offsets stay accounted for.
            let empty = protocol::batch::emptied(&header);
            let header = header_of(&empty);
            let put = made.put(&header, &empty).await;
            self.on_write(base, put).await?;
        }
        let before = group.iter().map(|segment| segment.size).sum::<u64>();
        self.done.segments.0 += group.len();
        self.done.segments.1 += 1;
        self.done.bytes.0 += before;
        self.done.bytes.1 += made.size();
        let finished = made.finish().await;
        let made = self.on_write(base, finished).await?;
        let taken = self.log.take_over(group, made).await;
        if !matches!(taken, Ok(true)) {
            self.discard(base).await;
        }
        taken?;
        Ok(judging)
    }

    /// Writes what stays of the group's segments.
    async fn fill(
        &mut self,
        group: &[Candidate],
        mut judging: Judging,
        made: &mut NewSegment,
    ) -> Result<Judging, CleanError> {
        for segment in group {
            let base = segment.base_offset;
            let mut chunks = self.chunks(segment, 0).await?;
            while let Some(chunk) = self.next_chunk(base, &mut chunks).await? {
                let judged = blocking(move || judging.judge_chunk(&chunk)).await;
                judging = judged.map_err(|damage| self.damaged(base, damage))?;
                let mut written = 0;
                for (header, batch) in judging.kept.drain(..) {
                    let put = made.put(&header, &batch).await;
                    self.on_write(group[0].base_offset, put).await?;
                    written += batch.len() as u64;
                }
                self.done.written_bytes += written;
                self.log.storage.stats().cleaner_written_bytes.add(written);
                self.log.clean_turn.pause_until(self.cleaner.pace.spend(written)).await?;
            }
        }
        Ok(judging)
    }

    async fn chunks(&self, segment: &Candidate, position: u64) -> Result<Chunks, CleanError> {
        let opened = self.log.file_for_reading(segment.base_offset).await;
        let file = opened.map_err(ReadError::from)?;
        Ok(Chunks::new(file, position, segment.size, self.cleaner.read_bytes))
    }

    async fn next_chunk(
        &mut self,
        base: i64,
        chunks: &mut Chunks,
    ) -> Result<Option<Chunk>, CleanError> {
        self.log.clean_turn.check()?;
        self.log.check_service()?;
        let chunk = match chunks.next().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(None),
            Err(ChunkError::Io(error)) => return Err(ReadError::from(error).into()),
            Err(ChunkError::Damaged { position, reason }) => {
                return Err(self.damaged(base, (position, reason)));
            }
        };
        let bytes = chunk.bytes.len() as u64;
        self.done.read_bytes += bytes;
        self.log.storage.stats().cleaner_read_bytes.add(bytes);
        self.log.clean_turn.pause_until(self.cleaner.pace.spend(bytes)).await?;
        runtime::reached("clean: chunk read");
        Ok(Some(chunk))
    }

    fn damaged(&self, base: i64, (position, reason): Damage) -> CleanError {
        if self.log.state.borrow().sealed.iter().all(|segment| segment.base_offset != base) {
            // Retention took it meanwhile.
            return CleanError::Stopped;
        }
        self.log.corrupt(base, position, reason).into()
    }

    /// Without room the round ends; on any other failure of a write the process does.
    async fn on_write<T>(&self, base: i64, written: Result<T, FsError>) -> Result<T, CleanError> {
        let error = match written {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        self.log.check_service()?;
        if !error.is_full() {
            self.log.abort(&error.path.clone(), &error);
        }
        self.discard(base).await;
        Err(CleanError::NoSpace)
    }

    async fn discard(&self, base: i64) {
        let dir = self.log.dir.borrow().clone();
        if let Err(error) = new_segment::remove(&dir, base).await {
            tracing::warn!(log = %self.log.name(), %error, "a cleaned segment's files stay");
        }
    }
}

impl Mapping {
    fn map_chunk(mut self, chunk: &Chunk) -> Result<Mapping, Damage> {
        for batch in accepted(&mut self.chain, chunk) {
            let (header, batch) = batch?;
            if header.last_offset() < self.from {
                continue;
            }
            let mapped =
                map_batch(&mut self.map, &mut self.transactions, &header, &batch, self.from);
            let (mapped_to, full) =
                mapped.map_err(|filter::Unreadable(reason)| (chunk.position, reason))?;
            self.mapped_to = mapped_to;
            self.full = full;
            if full {
                break;
            }
        }
        Ok(self)
    }
}

impl Judging {
    fn judge_chunk(mut self, chunk: &Chunk) -> Result<Judging, Damage> {
        for batch in accepted(&mut self.chain, chunk) {
            let (header, batch) = batch?;
            let verdict = judge(&self.rules, &self.map, &mut self.transactions, &header, &batch);
            match verdict.map_err(|filter::Unreadable(reason)| (chunk.position, reason))? {
                Verdict::Whole => self.kept.push((header, batch)),
                Verdict::Rewritten(batch) => self.kept.push((header_of(&batch), batch)),
                Verdict::Gone => self.last_gone = Some(header),
            }
        }
        Ok(self)
    }
}

fn header_of(batch: &[u8]) -> BatchHeader {
    match BatchHeader::parse(batch) {
        Ok(header) => header,
        Err(error) => unreachable!("just made: {error}"),
    }
}

impl LogInner {
    /// The sealed segments that may be cleaned: finished, and behind nothing that a start would
    /// look for.
    async fn candidates(self: &Rc<Self>, wishes: &Wishes) -> Result<Vec<Candidate>, ReadError> {
        let (mut candidates, first_dirty) = {
            let state = self.state.borrow();
            let stable = state.checkpoint.recovery_point.segment_base;
            let nexts = state.sealed.iter().skip(1).map(|segment| segment.base_offset);
            let nexts = nexts.chain([state.active.base_offset]);
            let with_next = state.sealed.iter().zip(nexts);
            let finished = with_next.take_while(|(it, next)| it.finished && *next <= stable);
            let candidate =
                |(segment, next_base): (&crate::segment::SealedSegment, i64)| Candidate {
                    base_offset: segment.base_offset,
                    next_base,
                    size: segment.size,
                    index_bytes: (0, 0),
                    newest_ms: -1,
                    first_ms: -1,
                };
            let candidates: Vec<Candidate> = finished.map(candidate).collect();
            (candidates, state.cleaned_to.max(state.log_start))
        };
        for candidate in candidates.iter_mut().filter(|it| it.next_base > first_dirty) {
            if wishes.min_compaction_lag_ms > 0 {
                candidate.newest_ms = self.newest_ms(candidate.base_offset).await?;
            }
            if wishes.max_compaction_lag_ms < i64::MAX {
                candidate.first_ms = self.first_batch_ms(candidate.base_offset).await?;
            }
        }
        Ok(candidates)
    }

    async fn first_batch_ms(self: &Rc<Self>, base: i64) -> Result<i64, ReadError> {
        let file = self.file_for_reading(base).await?;
        let head = file.read_at(0, crate::segment::BLOCK).await?;
        Ok(BatchHeader::parse_prefix(&head).map_or(-1, |header| header.max_timestamp))
    }

    async fn set_cleaned_to(self: &Rc<Self>, offset: i64) -> Result<(), CleanError> {
        let dir = self.dir.borrow().clone();
        match cleaned_to::save(&dir, offset).await {
            Ok(()) => {}
            // Lost at the next start, which cleans again then.
            Err(error) if error.is_full() => {
                tracing::warn!(log = %self.name(), %error, "what was cleaned is not noted");
            }
            Err(error) => {
                self.check_service()?;
                self.abort(&error.path.clone(), &error);
            }
        }
        self.state.borrow_mut().cleaned_to = offset;
        Ok(())
    }
}

/// The table of keys begins small and grows as it is needed.
const MAP_BYTES_FIRST: usize = 256 << 10;
