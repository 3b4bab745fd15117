//! The walk over the segments that a start has to read.

use std::rc::Rc;

use protocol::batch::BatchHeader;
use runtime::file::{File, FsError, Mode};

use super::RecoveryReport;
use super::derived::{Entries, load_epochs, load_index, load_producers};
use super::ending::{Ending, judge};
use super::inventory::Inventory;
use super::scanner::{Scanner, Step};
use crate::checkpoint::{Checkpoint, RecoveryPoint};
use crate::directory::SegmentFile;
use crate::epochs::{EpochStart, LeaderEpochs};
use crate::errors::OpenError;
use crate::index::{IndexedBatch, SegmentIndex};
use crate::log::{CHUNK_BYTES_MAX, LogInner, producer_batch};
use crate::producer::Producers;
use crate::segment::{BLOCK, Chain, ChainBreak, IndexFlushed, Largest, RollsFrom, SealedSegment};

pub struct Walk<'a> {
    log: &'a Rc<LogInner>,
    inventory: &'a Inventory,
    chain: Chain,
    epochs: LeaderEpochs,
    producers: Producers,
    /// Segments whose files are to be removed: nothing in them, or nothing that may stay.
    dropped: Vec<i64>,
    read: Vec<ReadSegment>,
    begins_anew: bool,
    report: RecoveryReport,
}

struct ReadSegment {
    base: i64,
    size: u64,
    file_length: u64,
    index: SegmentIndex,
    /// Entries that the index files are known to have.
    flushed: IndexFlushed,
}

/// Where the walk begins.
struct Start {
    segment: i64,
    position: u64,
    index: Option<SegmentIndex>,
}

impl<'a> Walk<'a> {
    pub fn new(log: &'a Rc<LogInner>, inventory: &'a Inventory) -> Walk<'a> {
        let point = inventory.checkpoint.recovery_point;
        let gaps = log.has_gaps();
        let limits = log.storage.producer_limits();
        Walk {
            log,
            inventory,
            chain: Chain { next_offset: point.offset, epoch: point.epoch, gaps },
            epochs: LeaderEpochs::new(),
            producers: Producers::new(limits, point.offset),
            dropped: Vec::new(),
            read: Vec::new(),
            begins_anew: false,
            report: RecoveryReport {
                incarnation: inventory.checkpoint.incarnation,
                ..RecoveryReport::default()
            },
        }
    }

    /// Reads what must be read and puts the result into the log. Files change only at the end,
    /// when nothing can be refused any more.
    pub async fn run(&mut self) -> Result<RecoveryReport, OpenError> {
        self.check_segments()?;
        let start = self.choose_start().await?;
        let clean = self.inventory.checkpoint.clean && start.is_none();
        match start {
            Some(start) => self.read_segments(start).await?,
            None if clean => {}
            None => unreachable!("an unclean log is always read"),
        }
        if clean {
            self.install_clean();
        } else {
            self.make_durable().await?;
            self.install();
        }
        self.report.clean = clean;
        Ok(self.report.clone())
    }

    /// The segments that the checkpoint speaks of are there.
    fn check_segments(&self) -> Result<(), OpenError> {
        let checkpoint = &self.inventory.checkpoint;
        let point = checkpoint.recovery_point;
        let segments = &self.inventory.segments;
        let first = segments.first_key_value().map_or(point.segment_base, |(base, _)| *base);
        let missing = |base: i64| OpenError::Damaged {
            file: self.log.segment_path(base, SegmentFile::Log),
            offset: base,
            position: 0,
            reason: "the file is missing".to_owned(),
        };
        if first > checkpoint.log_start_offset {
            return Err(missing(checkpoint.log_start_offset));
        }
        let lost = segments.is_empty() && point.offset < checkpoint.log_start_offset;
        if lost && !checkpoint.relaxed {
            return Err(missing(point.segment_base));
        }
        // What is to go as a whole may have been cut before, since it was sealed.
        let sealed = segments.range(..point.segment_base).filter(|_| !self.is_to_begin_anew());
        for (base, length) in sealed {
            let registered = self.inventory.registered.get(base);
            if registered.is_some_and(|known| known.size > *length) {
                return Err(OpenError::Damaged {
                    file: self.log.segment_path(*base, SegmentFile::Log),
                    offset: *base,
                    position: *length,
                    reason: "the file is shorter than when it was sealed".to_owned(),
                });
            }
        }
        let length = segments.get(&point.segment_base);
        match length {
            // Segments below the log start may have gone before the recovery point moved.
            None if point.position > 0 && first <= point.segment_base => {
                Err(missing(point.segment_base))
            }
            Some(length) if *length < point.position => Err(OpenError::Damaged {
                file: self.log.segment_path(point.segment_base, SegmentFile::Log),
                offset: point.offset,
                position: *length,
                reason: format!("the file ends before position {}", point.position),
            }),
            _ => Ok(()),
        }
    }

    /// Where to begin; none when nothing has to be read. Derived files that cannot be used move
    /// the start back.
    async fn choose_start(&mut self) -> Result<Option<Start>, OpenError> {
        let inventory = self.inventory;
        let point = inventory.checkpoint.recovery_point;
        let limits = self.log.storage.producer_limits();
        let epochs = load_epochs(inventory).await?;
        let producers = load_producers(inventory, limits).await?;
        if epochs.is_none() {
            self.report.rebuilt.push("leader epochs");
        }
        if producers.is_none() {
            self.report.rebuilt.push("producers");
        }
        if inventory.must_read_everything() {
            self.report.rebuilt.push("checkpoint");
        }
        let (Some(epochs), Some(producers), false) =
            (epochs, producers, inventory.must_read_everything())
        else {
            let first = inventory.segments.first_key_value().map(|(base, _)| *base);
            let segment = first.unwrap_or(point.segment_base);
            self.chain = Chain { next_offset: segment, epoch: -1, gaps: self.chain.gaps };
            self.producers = Producers::new(limits, segment);
            return Ok(Some(Start { segment, position: 0, index: None }));
        };
        self.epochs = epochs;
        self.producers = producers;
        if inventory.checkpoint.clean {
            return Ok(None);
        }
        let first = inventory.segments.first_key_value().map(|(base, _)| *base);
        if let Some(first) = first.filter(|first| point.segment_base < *first) {
            // Deleted before the recovery point moved, and so below the log start. What producers
            // wrote in between is not known, and a producer must not look as if it had lost it.
            self.chain.next_offset = first;
            if point.offset < first {
                self.producers.reset(first);
            }
            return Ok(Some(Start { segment: first, position: 0, index: None }));
        }
        if let Some(segment) = self.segment_being_cut() {
            self.chain = Chain { next_offset: segment, epoch: -1, gaps: self.chain.gaps };
            self.producers = Producers::new(limits, segment);
            return Ok(Some(Start { segment, position: 0, index: None }));
        }
        let (segment, position) = (point.segment_base, point.position);
        let index = self.load_point_index().await?;
        if index.is_none() {
            self.report.rebuilt.push("index");
            self.chain = Chain { next_offset: segment, epoch: -1, gaps: self.chain.gaps };
            return Ok(Some(Start { segment, position: 0, index: None }));
        }
        Ok(Some(Start { segment, position, index }))
    }

    /// The segment that holds the log's start, when the log was to begin anew there and not all of
    /// it has gone: what is left is whole, and is cut again.
    fn segment_being_cut(&self) -> Option<i64> {
        let log_start = self.inventory.checkpoint.log_start_offset;
        let at_or_before = self.inventory.segments.range(..=log_start).next_back();
        let first = at_or_before.map(|(base, _)| *base);
        first.filter(|base| self.is_to_begin_anew() && *base < log_start)
    }

    /// The checkpoint says that the log begins at its start, and that nothing is there yet.
    fn is_to_begin_anew(&self) -> bool {
        let Checkpoint { recovery_point: point, log_start_offset, .. } = self.inventory.checkpoint;
        (point.segment_base, point.position, point.offset)
            == (log_start_offset, 0, log_start_offset)
    }

    async fn load_point_index(&self) -> Result<Option<SegmentIndex>, OpenError> {
        let point = self.inventory.checkpoint.recovery_point;
        let entries = Entries::First(flushed_before(&point));
        let policy = self.log.index_policy();
        let dir = &self.inventory.dir;
        Ok(load_index(dir, point.segment_base, policy, point.position, entries).await?)
    }

    async fn read_segments(&mut self, start: Start) -> Result<(), OpenError> {
        let inventory = self.inventory;
        let bases: Vec<(i64, u64)> =
            inventory.segments.range(start.segment..).map(|(base, len)| (*base, *len)).collect();
        let mut position = start.position;
        let mut index = start.index;
        for (number, (base, length)) in bases.iter().copied().enumerate() {
            let flushed = self.flushed(base, index.is_some());
            let mut index =
                index.take().unwrap_or_else(|| SegmentIndex::new(base, self.log.index_policy()));
            let file = self.log.file_for_writing(base).await?;
            let mut scanner = Scanner::new(file, length);
            let reason = loop {
                match scanner.step(position, &mut self.chain).await? {
                    Step::Batch(header) => {
                        self.take_note(&header, position, &mut index);
                        position += header.size_in_bytes() as u64;
                    }
                    Step::Break(reason) => break reason,
                }
            };
            let next = bases.get(number + 1).map(|(base, _)| *base);
            let last = match next {
                Some(next) if next == self.chain.next_offset => false,
                // Offsets are missing at a segment's end, and nothing else is there.
                Some(next) if self.chain.gaps && next > self.chain.next_offset => {
                    let ending = judge(
                        &mut scanner,
                        position,
                        self.chain.next_offset,
                        None,
                        self.log.salt(base),
                    )
                    .await?;
                    if ending == Ending::Clean {
                        self.chain.next_offset = next;
                    }
                    ending != Ending::Clean
                }
                _ => true,
            };
            let point = inventory.checkpoint.recovery_point;
            if last && number + 1 == bases.len() && self.is_outlived() {
                break;
            }
            let before_point = (base, position) < (point.segment_base, point.position);
            if last && before_point && !self.is_to_begin_anew() {
                return Err(self.damaged(base, position, reason.to_string()));
            }
            if last {
                self.judge_end(&mut scanner, &reason, base, position, &bases[number + 1..]).await?;
            }
            self.report.scanned_bytes += scanner.bytes_read();
            self.read.push(ReadSegment {
                base,
                size: position,
                file_length: length,
                index,
                flushed,
            });
            if last {
                break;
            }
            position = 0;
        }
        if self.chain.next_offset < inventory.checkpoint.log_start_offset {
            self.begin_at_log_start();
        }
        Ok(())
    }

    /// Everything read so far lies below the log start, and the log has begun anew there: its
    /// names came back because their removal was not durable.
    fn is_outlived(&self) -> bool {
        let log_start = self.inventory.checkpoint.log_start_offset;
        self.is_to_begin_anew() && self.chain.next_offset < log_start
    }

    /// All that was left lies below the log start: the log goes on there, empty.
    fn begin_at_log_start(&mut self) {
        let log_start = self.inventory.checkpoint.log_start_offset;
        self.dropped = self.inventory.segments.keys().copied().collect();
        self.read.clear();
        self.begins_anew = true;
        self.chain.next_offset = log_start;
        self.producers.advance_to(log_start);
    }

    /// The log ends at `position` of this segment. What follows may be nothing, or the rest of an
    /// unfinished write, or it takes the log offline.
    async fn judge_end(
        &mut self,
        scanner: &mut Scanner,
        found: &ChainBreak,
        base: i64,
        position: u64,
        later: &[(i64, u64)],
    ) -> Result<(), OpenError> {
        let header = scanner.header_at(position, &self.chain).await?;
        let batch_bytes = header.ok().map(|header| header.size_in_bytes());
        let salt = self.log.salt(base);
        let mut ending =
            judge(scanner, position, self.chain.next_offset, batch_bytes, salt).await?;
        for (later_base, length) in later.iter().copied() {
            let file = self.log.file_for_writing(later_base).await?;
            let mut later_scanner = Scanner::new(file, length);
            let salt = self.log.salt(later_base);
            let blank = judge(&mut later_scanner, 0, later_base, None, salt).await?;
            if blank != Ending::Clean && !matches!(ending, Ending::Damaged { .. }) {
                // Nothing is written to a segment before the one before it is whole.
                ending = Ending::Damaged { reason: "a later segment holds batches" };
            }
            self.dropped.push(later_base);
        }
        let cut = match ending {
            Ending::Clean => return Ok(()),
            Ending::Torn { bytes } => bytes,
            // The page cache writes in any order, so a power loss may leave anything.
            Ending::Damaged { .. } if self.inventory.checkpoint.relaxed => {
                scanner.length().saturating_sub(position)
            }
            Ending::Damaged { reason } => {
                return Err(self.damaged(base, position, format!("{found}; {reason}")));
            }
        };
        self.report.cut_bytes = cut;
        self.report.cut_at_offset = Some(self.chain.next_offset);
        self.report.possibly_short = true;
        Ok(())
    }

    fn take_note(&mut self, header: &BatchHeader, position: u64, index: &mut SegmentIndex) {
        index.on_batch(IndexedBatch {
            last_offset: header.last_offset(),
            position: position as u32,
            size_bytes: header.size_in_bytes() as u32,
            max_timestamp: header.max_timestamp,
        });
        let epoch = header.partition_leader_epoch;
        if epoch >= 0 && self.epochs.latest().is_none_or(|latest| latest.epoch < epoch) {
            self.epochs.assign(EpochStart { epoch, start_offset: header.base_offset });
        }
        if header.base_offset < self.producers.end_offset() {
            return;
        }
        match producer_batch(header) {
            // The clock of the broker that appended it is not known any more.
            Some(producer) => {
                let seen_ms = header.max_timestamp.max(0).min(runtime::time::wall_ms());
                self.producers.apply(&producer, header.base_offset, seen_ms);
            }
            None => self.producers.advance_to(header.next_offset()),
        }
    }

    /// Entries in the index files of a segment: those before the recovery point, or none that
    /// could be trusted.
    fn flushed(&self, base: i64, loaded: bool) -> IndexFlushed {
        let point = self.inventory.checkpoint.recovery_point;
        if !loaded || base != point.segment_base {
            return IndexFlushed::default();
        }
        flushed_before(&point)
    }

    /// No space is left behind the log's end, as a cut leaves it: a killed process may have made
    /// it, and what went with it is gone for the kernel alone.
    fn may_have_been_cut(&self) -> bool {
        self.read.last().is_none_or(|last| last.file_length == last.size)
    }

    /// Nothing is served that another crash could take back, and what is gone stays away.
    async fn make_durable(&mut self) -> Result<(), OpenError> {
        let point = self.inventory.checkpoint.recovery_point;
        let mut accepted_more = false;
        for segment in &self.read {
            if (segment.base, segment.size) > (point.segment_base, point.position) {
                let file = self.log.file_for_writing(segment.base).await?;
                // What is strict now may have been relaxed when this was written.
                if self.inventory.checkpoint.relaxed || !file.mode().is_direct() {
                    let at_point = segment.base == point.segment_base;
                    let from = if at_point { point.position } else { 0 };
                    let cached = File::open(file.path(), Mode::Buffered).await?;
                    write_again(&cached, from, segment.size).await?;
                    cached.sync().await?;
                }
                file.sync().await?;
                accepted_more = true;
            }
        }
        let was_cut = self.may_have_been_cut();
        if let Some(last) = self.read.last().filter(|_| was_cut && !accepted_more) {
            self.log.file_for_writing(last.base).await?.sync().await?;
        }
        runtime::reached("recovery: batches synced");
        if self.inventory.checkpoint_lost {
            let path = self.inventory.dir.join(crate::checkpoint::CHECKPOINT_FILE_NAME);
            let blank = vec![0; crate::checkpoint::CHECKPOINT_BYTES as usize];
            runtime::fs::write_atomic(path, &blank).await?;
        }
        // A killed process may have left names that only the kernel knows, or taken some away. Up
        // to the recovery point they are durable; the others at the latest before the first append.
        let is_cut = was_cut || self.report.cut_bytes > 0;
        if accepted_more || is_cut || !self.dropped.is_empty() {
            self.log.sync_names().await?;
        }
        if !self.inventory.checkpoint_settled {
            self.log.sync_checkpoint().await?;
        }
        // A snapshot behind the recovery point may tell of batches that are not there.
        if self.inventory.snapshots.iter().any(|offset| *offset > point.offset) {
            self.log.remove_snapshots(|offset| offset > point.offset).await?;
        }
        // Before the segments go: they would be missed.
        if self.begins_anew {
            let log_start = self.inventory.checkpoint.log_start_offset;
            let anew = |checkpoint: &mut Checkpoint| {
                checkpoint.recovery_point = RecoveryPoint::at_start(log_start);
                checkpoint.producers_offset = -1;
            };
            self.log.change_checkpoint(anew).await;
        }
        for base in self.dropped.iter().rev() {
            let key = (self.log.number, crate::open_files::FileRole::Segment(*base));
            self.log.storage.open_files().forget(key);
            for file in SegmentFile::ALL {
                match runtime::fs::remove_file(self.log.segment_path(*base, file)).await {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(error.into());
                    }
                    _ => {}
                }
            }
            runtime::reached("recovery: segment taken away");
            runtime::fs::sync_dir(&self.inventory.dir).await?;
            runtime::reached("recovery: segment dropped");
        }
        // Only now: with another behind it, a segment without a byte would not be the log's end.
        self.cut_torn_write().await
    }

    /// Takes the rest of an unfinished write away. It must not meet another start, which would know
    /// of a later leader epoch and could take it for damage.
    async fn cut_torn_write(&mut self) -> Result<(), OpenError> {
        if self.report.cut_bytes == 0 {
            return Ok(());
        }
        if let Some(last) = self.read.last_mut() {
            self.log.file_for_writing(last.base).await?.truncate(last.size).await?;
            last.file_length = last.size;
        }
        runtime::reached("recovery: torn write removed");
        Ok(())
    }

    fn install_clean(&mut self) {
        let point = self.inventory.checkpoint.recovery_point;
        let state = &mut *self.log.state.borrow_mut();
        for (base, length) in self.inventory.segments.range(..point.segment_base) {
            state.sealed.push(SealedSegment::found(
                *base,
                *length,
                self.inventory.registered.get(base),
            ));
        }
        let length = self.inventory.segments.get(&point.segment_base);
        state.active.exists = length.is_some();
        state.active.allocated = length.copied().unwrap_or(0);
        state.active.size = point.position;
        state.active.index_flushed = flushed_before(&point);
        state.epochs = std::mem::take(&mut self.epochs);
        let limits = self.log.storage.producer_limits();
        let end = point.offset;
        state.producers = std::mem::replace(&mut self.producers, Producers::new(limits, end));
        state.assert_ends();
    }

    fn install(&mut self) {
        let state = &mut *self.log.state.borrow_mut();
        let read_from = self.read.first().map(|segment| segment.base);
        let first_read = read_from.unwrap_or(self.inventory.checkpoint.recovery_point.segment_base);
        let kept = self.inventory.segments.range(..first_read).filter(|_| !self.begins_anew);
        for (base, length) in kept {
            state.sealed.push(SealedSegment::found(
                *base,
                *length,
                self.inventory.registered.get(base),
            ));
        }
        if self.begins_anew {
            state.active.base_offset = self.chain.next_offset;
            state.active.index =
                Some(SegmentIndex::new(self.chain.next_offset, self.log.index_policy()));
        }
        let active = self.read.pop();
        for segment in self.read.drain(..) {
            let mut index = segment.index;
            index.seal();
            state.sealed.push(SealedSegment {
                base_offset: segment.base,
                size: segment.size,
                largest: Largest::of(&index),
                sums: None,
                index: Some(Rc::new(index)),
                finished: false,
            });
        }
        if let Some(active) = active {
            let scanned = active.size;
            state.active.base_offset = active.base;
            state.active.exists = true;
            state.active.allocated = active.file_length;
            state.active.size = active.size;
            state.active.index = Some(active.index);
            state.active.index_flushed = active.flushed;
            state.active.rolls_from = RollsFrom::Unread;
            state.unchecked_bytes = scanned;
        }
        state.stale_behind_end = true;
        let end = self.chain.next_offset;
        (state.end, state.committed, state.durable) = (end, end, end);
        self.producers.advance_to(end.max(self.producers.end_offset()));
        state.epochs = std::mem::take(&mut self.epochs);
        state.epochs.truncate_from_start(state.log_start);
        state.epochs_saved = false;
        let limits = self.log.storage.producer_limits();
        state.producers = std::mem::replace(&mut self.producers, Producers::new(limits, end));
        state.assert_ends();
    }

    fn damaged(&self, base: i64, position: u64, reason: String) -> OpenError {
        OpenError::Damaged {
            file: self.log.segment_path(base, SegmentFile::Log),
            offset: self.chain.next_offset,
            position,
            reason,
        }
    }
}

/// Entries in the index files of the recovery point's segment.
fn flushed_before(point: &RecoveryPoint) -> IndexFlushed {
    IndexFlushed {
        offset_entries: point.offset_entries as usize,
        time_entries: point.time_entries as usize,
        sums: point.index_sums,
    }
}

/// Writes what the page cache has to where it is. A sync that failed before the crash may have left
/// pages that look clean and are not on the disk: the next sync would say nothing of them.
async fn write_again(file: &File, from: u64, to: u64) -> Result<(), FsError> {
    let mut at = from - from % BLOCK as u64;
    while at < to {
        let block = file.read_at(at, CHUNK_BYTES_MAX.min((to - at) as usize)).await?;
        let bytes = block.len() as u64;
        if bytes == 0 {
            break;
        }
        file.write_at(at, block).await?;
        at += bytes;
    }
    Ok(())
}
