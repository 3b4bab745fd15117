//! Cutting the end of a log: what a follower does when its leader's history differs.
//!
//! Law: whole batches go, from the one that holds the given offset on. First the recovery point
//! and what it names move back, then later segments are removed, newest first, then the segment is
//! cut; a crash in between leaves a log that ends somewhere between the old and the new end, with
//! nothing missing in the middle, and is cut again.

use std::rc::Rc;

use runtime::file::FsError;

use super::disk::{DiskError, DiskReader};
use super::indexes::indexed;
use super::{Log, LogInner, parse_snapshot_name, producer_batch, snapshot_name};
use crate::checkpoint::RecoveryPoint;
use crate::compaction;
use crate::directory::SegmentFile;
use crate::epochs::{EPOCHS_FILE_NAME, LeaderEpochs};
use crate::errors::{ReadError, TruncateError};
use crate::index::SegmentIndex;
use crate::journal::EntryKind;
use crate::open_files::FileRole;
use crate::producer::{ProducerSnapshot, Producers};
use crate::segment::{ActiveSegment, IndexFlushed, IndexSums, RollsFrom};

/// The log as it will be.
struct Cut {
    base: i64,
    position: u64,
    end: i64,
    epochs: LeaderEpochs,
    producers: Producers,
    index: SegmentIndex,
    /// Nothing that is served stays: every segment goes.
    whole: bool,
}

impl Log {
    /// Removes the batch that holds `offset` and everything behind it. Returns the new log end,
    /// which is `offset` or, when it lies inside a batch, the first offset of that batch, but
    /// never before the log's start. At or behind the log's end nothing changes. Who waits for a
    /// removed offset is told.
    pub async fn truncate_to(&self, offset: i64) -> Result<i64, TruncateError> {
        let log = &self.inner;
        let _turn = log.turn.take().await;
        log.check_service()?;
        let log_start = self.log_start_offset();
        if offset < log_start {
            return Err(TruncateError::BeforeStart { offset, log_start });
        }
        if offset >= self.log_end_offset() {
            return Ok(self.log_end_offset());
        }
        let _uncleaned = log.clean_turn.keep_off().await;
        log.settle_in_segments().await;
        log.sync_relaxed().await;
        // Nothing that works in the background may hold on to what goes.
        log.finish_sealed().await;
        let _allocating = log.allocation_turn.take().await;
        let _sealing = log.seal_turn.take().await;
        let _saving = log.save_turn.take().await;
        let cut = log.plan_cut(offset).await?;
        let end = cut.end;
        log.fence_in_journal(EntryKind::Truncated).await;
        log.move_recovery_point_back(&cut).await?;
        log.cut_files(&cut).await?;
        log.install_cut(cut);
        Ok(end)
    }

    /// The log is known to have all it should: the mark of an unclean recovery goes.
    pub async fn clear_possibly_short(&self) {
        if self.is_possibly_short() {
            self.inner.change_checkpoint(|checkpoint| checkpoint.possibly_short = false).await;
        }
    }
}

impl LogInner {
    async fn plan_cut(self: &Rc<Self>, offset: i64) -> Result<Cut, TruncateError> {
        let base = self.segment_of(offset);
        let start = self.scan_start(base, offset).await?;
        let limit = self.written_size(base);
        let mut reader = DiskReader::new(self, base, limit);
        let mut position = u64::from(start.position);
        let mut end = base;
        while position < limit {
            let header = reader.header(position).await.map_err(DiskError::into_read)?;
            end = header.base_offset;
            if header.last_offset() >= offset {
                break;
            }
            end = header.next_offset();
            position += header.size_in_bytes() as u64;
        }
        let log_start = self.state.borrow().log_start;
        if end < log_start {
            return Ok(self.cut_of_everything(log_start));
        }
        let mut epochs = self.state.borrow().epochs.clone();
        epochs.truncate_from_end(end);
        let index = self.index_up_to(base, &mut reader, position, end).await?;
        let producers = self.producers_up_to(end).await?;
        Ok(Cut { base, position, end, epochs, producers, index, whole: false })
    }

    /// The log start lies inside the first batch that goes.
    fn cut_of_everything(&self, log_start: i64) -> Cut {
        let mut epochs = self.state.borrow().epochs.clone();
        epochs.truncate_from_end(log_start);
        Cut {
            base: log_start,
            position: 0,
            end: log_start,
            epochs,
            producers: Producers::new(self.storage.producer_limits(), log_start),
            index: SegmentIndex::new(log_start, self.index_policy()),
            whole: true,
        }
    }

    fn written_size(&self, base: i64) -> u64 {
        let state = self.state.borrow();
        let sealed = state.sealed.iter().find(|segment| segment.base_offset == base);
        sealed.map_or(state.active.size, |segment| segment.size)
    }

    async fn index_up_to(
        self: &Rc<Self>,
        base: i64,
        reader: &mut DiskReader,
        size: u64,
        end: i64,
    ) -> Result<SegmentIndex, ReadError> {
        let mut index = if self.state.borrow().active.base_offset == base {
            self.ensure_active_index().await?;
            let state = self.state.borrow();
            let Some(index) = &state.active.index else { unreachable!("just loaded") };
            index.clone()
        } else {
            SegmentIndex::clone(&*self.sealed_index(base).await?)
        };
        let mut position = u64::from(index.truncate_to(end));
        while position < size {
            let header = reader.header(position).await.map_err(DiskError::into_read)?;
            index.on_batch(indexed(&header, position));
            position += header.size_in_bytes() as u64;
        }
        index.seal();
        Ok(index)
    }

    /// The producers before `end`: a snapshot and the batches since.
    async fn producers_up_to(self: &Rc<Self>, end: i64) -> Result<Producers, TruncateError> {
        let limits = self.storage.producer_limits();
        let dir = self.dir.borrow().clone();
        let entries = runtime::fs::list(&dir).await?;
        let mut offsets: Vec<i64> =
            entries.iter().filter_map(|entry| parse_snapshot_name(&entry.name)).collect();
        offsets.retain(|offset| *offset <= end);
        offsets.sort_unstable();
        let log_start = self.state.borrow().log_start;
        let mut producers = Producers::new(limits, log_start);
        for offset in offsets.into_iter().rev().filter(|offset| *offset >= log_start) {
            let file = runtime::fs::read(dir.join(snapshot_name(offset))).await?;
            if let Ok(snapshot) = ProducerSnapshot::from_file(&file)
                && snapshot.end_offset == offset
            {
                producers = snapshot.into_producers(limits);
                break;
            }
        }
        let log = Log { inner: Rc::clone(self) };
        let mut offset = producers.end_offset();
        while offset < end {
            let chunk = log.read(offset, REPLAY_BYTES, end, true).await?;
            if chunk.bytes == 0 {
                break;
            }
            let joined = super::lookup::contiguous(&chunk.slices);
            for batch in protocol::batch::Batches::of(joined) {
                let Ok((header, _)) = batch else { break };
                if header.base_offset < producers.end_offset() {
                    continue;
                }
                match producer_batch(&header) {
                    Some(producer) => {
                        let seen_ms = header.max_timestamp.clamp(0, runtime::time::wall_ms());
                        producers.apply(&producer, header.base_offset, seen_ms);
                    }
                    None => producers.advance_to(header.next_offset()),
                }
            }
            offset = chunk.next_offset;
        }
        producers.advance_to(end);
        Ok(producers)
    }

    async fn move_recovery_point_back(&self, cut: &Cut) -> Result<(), TruncateError> {
        if self.state.borrow().cleaned_to > cut.end {
            // What will stand there is not clean.
            let dir = self.dir.borrow().clone();
            compaction::forget(&dir).await?;
            self.state.borrow_mut().cleaned_to = compaction::NOWHERE;
        }
        // All of them as long as nothing is cut; from the recovery point on they are read again.
        self.save_epochs().await?;
        let offsets = cut.index.offsets().to_file(0);
        let times = cut.index.times().to_file(0);
        let path = self.segment_path(cut.base, SegmentFile::OffsetIndex);
        runtime::fs::write_atomic(path, &offsets).await?;
        let path = self.segment_path(cut.base, SegmentFile::TimeIndex);
        runtime::fs::write_atomic(path, &times).await?;
        let mut producers_offset = -1;
        if !cut.producers.is_empty() {
            producers_offset = cut.end;
            let path = self.path(&snapshot_name(cut.end));
            runtime::fs::write_atomic(path, &cut.producers.to_file()).await?;
        }
        let recovery_point = RecoveryPoint {
            segment_base: cut.base,
            position: cut.position,
            offset: cut.end,
            epoch: cut.epochs.latest().map_or(-1, |latest| latest.epoch),
            offset_entries: cut.index.offsets().len() as u32,
            time_entries: cut.index.times().len() as u32,
            index_sums: IndexSums::of(&offsets, &times),
        };
        self.change_checkpoint(|checkpoint| {
            checkpoint.clean = false;
            checkpoint.recovery_point = recovery_point;
            checkpoint.producers_offset = producers_offset;
        })
        .await;
        let epochs = cut.epochs.to_file();
        runtime::fs::write_atomic(self.path(EPOCHS_FILE_NAME), &epochs).await?;
        // Later ones tell of batches that will not have been.
        self.remove_snapshots(|offset| offset > cut.end).await?;
        Ok(())
    }

    /// Leader epochs that only memory knows are in their file when this returns.
    async fn save_epochs(&self) -> Result<(), FsError> {
        let unsaved = {
            let state = self.state.borrow();
            (!state.epochs_saved).then(|| state.epochs.to_file())
        };
        match unsaved {
            Some(epochs) => runtime::fs::write_atomic(self.path(EPOCHS_FILE_NAME), &epochs).await,
            None => Ok(()),
        }
    }

    async fn cut_files(&self, cut: &Cut) -> Result<(), TruncateError> {
        let dir = self.dir.borrow().clone();
        let later: Vec<i64> = {
            let state = self.state.borrow();
            let sealed = state.sealed.iter().map(|segment| segment.base_offset);
            let active = state.active.exists.then_some(state.active.base_offset);
            sealed.chain(active).filter(|base| *base > cut.base || cut.whole).collect()
        };
        for base in later.into_iter().rev() {
            self.storage.open_files().forget((self.number, FileRole::Segment(base)));
            self.storage.memory().windows.forget(self.number, base, 0);
            for file in SegmentFile::ALL {
                match runtime::fs::remove_file(self.segment_path(base, file)).await {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        self.abort(&error.path.clone(), &error);
                    }
                    _ => {}
                }
            }
            if let Err(error) = runtime::fs::sync_dir(&dir).await {
                self.abort(&dir, &error);
            }
        }
        if cut.whole {
            return Ok(());
        }
        let file = self.file_for_writing(cut.base).await?;
        if let Err(error) = file.truncate(cut.position).await {
            self.abort(file.path(), &error);
        }
        Ok(())
    }

    fn install_cut(self: &Rc<Self>, cut: Cut) {
        {
            let state = &mut *self.state.borrow_mut();
            self.storage.memory().on_tail_cleared(state.tail.clear());
            state.sealed.retain(|segment| segment.base_offset < cut.base && !cut.whole);
            let index_flushed = IndexFlushed {
                offset_entries: cut.index.offsets().len(),
                time_entries: cut.index.times().len(),
                sums: state.checkpoint.recovery_point.index_sums,
            };
            state.active = ActiveSegment {
                base_offset: cut.base,
                size: cut.position,
                allocated: cut.position,
                exists: !cut.whole,
                index: Some(cut.index),
                index_flushed,
                rolls_from: RollsFrom::Unread,
                jitter_ms: state.active.jitter_ms,
            };
            (state.end, state.committed, state.durable) = (cut.end, cut.end, cut.end);
            state.epochs = cut.epochs;
            state.epochs_saved = true;
            state.producers = cut.producers;
            state.unsynced_records = 0;
            state.unchecked_bytes = 0;
            state.prepared = false;
            state.stale_behind_end = false;
            state.assert_ends();
        }
        self.storage.memory().windows.forget(self.number, cut.base, cut.position);
        self.waiters.wake_all();
        self.advanced.notify_all();
    }
}

/// Bytes of batches looked at at a time.
const REPLAY_BYTES: usize = 1 << 20;
