//! Group commit: one write in flight, everything that arrived meanwhile goes into the next.
//!
//! Law: chunks are written in the order of their offsets, each behind the one before it, and an
//! offset counts as committed only when the write that holds it has returned. The loop runs as
//! long as something is pending and then ends. A small commit may go to the slot's journal instead,
//! which takes it along in its own next write; a log has one commit in flight over both, and one
//! that goes to the segment writes what only the journal has as well.

use std::rc::Rc;
use std::time::Duration;

use runtime::file::{FsError, Mode};
use runtime::task::yield_now;
use runtime::time::{now, sleep};

use super::tail::{CHUNK_BYTES_MAX, Chunk};
use super::{LogInner, State};
use crate::background;
use crate::directory::SegmentFile;
use crate::journal::Journal;
use crate::open_files::UsedFile;

/// How the next commit goes.
enum Step {
    /// Nothing is to be done.
    Rest,
    Journal(Rc<Journal>),
    Write(Vec<Rc<Chunk>>),
}

impl LogInner {
    /// Starts a commit unless one is under way.
    pub fn maybe_commit(self: &Rc<Self>, state: &mut State) {
        if state.committing {
            return;
        }
        state.committing = true;
        if let Some(journal) = self.journal_for(state) {
            state.journaling.in_flight = true;
            return journal.enqueue(Rc::clone(self));
        }
        let log = Rc::clone(self);
        background::start(async move {
            log.linger().await;
            log.commit_pending().await;
        });
    }

    /// The commit that went to the journal is done: the next one, if there is more.
    pub fn go_on_committing(self: &Rc<Self>) {
        let state = &mut *self.state.borrow_mut();
        state.committing = false;
        if state.committed < state.end || state.journaling.destage {
            self.maybe_commit(state);
        }
    }

    pub fn freeze_open(&self, state: &mut State) {
        let strict = self.options.borrow().is_strict();
        state.tail.freeze_open(|segment| strict.then(|| self.salt(segment)));
    }

    pub async fn commit_pending(self: Rc<Self>) {
        self.state.borrow_mut().journaling.in_flight = false;
        loop {
            let chunks = match self.next_step() {
                Step::Rest => return,
                Step::Journal(journal) => return journal.enqueue(Rc::clone(&self)),
                Step::Write(chunks) => chunks,
            };
            let started = now();
            self.storage.disk_turns().on_commit(started);
            let strict = self.options.borrow().is_strict();
            match strict {
                true => self.sync_relaxed().await,
                false => self.note_relaxed().await,
            }
            runtime::reached("commit: begun");
            if let Err(error) = self.write_chunks(&chunks, strict).await {
                self.abort(&self.segment_path(chunks[0].segment, SegmentFile::Log), &error);
            }
            runtime::reached("commit: written");
            self.count_commit(&chunks, now().since(started));
            self.on_written(&chunks, strict).await;
            // Who was waiting for this write has its next batch in the next one.
            yield_now().await;
            self.linger().await;
        }
    }

    fn count_commit(&self, chunks: &[Rc<Chunk>], took: Duration) {
        let stats = self.storage.stats();
        let committed = self.state.borrow().committed;
        let bytes: u64 = chunks.iter().map(|chunk| chunk.to - chunk.from).sum();
        if chunks.last().is_none_or(|last| last.end_offset <= committed) {
            stats.destage_writes.increment();
            stats.destaged_bytes.add(bytes);
            return;
        }
        stats.commits.increment();
        stats.committed_bytes.add(bytes);
        stats.commit_latency.record_nanos(took.as_nanos() as u64);
    }

    /// Gives batches that are on their way the time to go into the next write, if so configured.
    /// What goes to the journal waits there.
    async fn linger(&self) {
        let config = self.storage.config();
        if config.commit_linger == Duration::ZERO {
            return;
        }
        let is_worth_it = {
            let state = self.state.borrow();
            let pending = state.tail.pending_bytes();
            (1..config.commit_bytes_max).contains(&pending) && self.journal_for(&state).is_none()
        };
        if is_worth_it {
            sleep(config.commit_linger).await;
        }
    }

    fn next_step(&self) -> Step {
        let state = &mut *self.state.borrow_mut();
        let pending = state.committed < state.end;
        state.committing = pending || state.journaling.destage;
        if !state.committing {
            return Step::Rest;
        }
        if let Some(journal) = self.journal_for(state) {
            state.journaling.in_flight = true;
            return Step::Journal(journal);
        }
        // What only the journal has goes along with what is pending.
        if !state.tail.has_frozen_unwritten() || state.journaling.since.is_some() {
            self.freeze_open(state);
        }
        let chunks = state.tail.next_to_write(self.storage.config().commit_bytes_max);
        assert!(!chunks.is_empty(), "what is pending or to be destaged is in a chunk");
        Step::Write(chunks)
    }

    /// Writes the chunks, and what of them is in the journal alone, durably.
    async fn write_chunks(&self, chunks: &[Rc<Chunk>], strict: bool) -> Result<(), FsError> {
        let segment = chunks[0].segment;
        let file = self.file_for_writing(segment).await?;
        let journaled_to = self.state.borrow().tail.journaled_to(segment);
        match chunks {
            [chunk] if journaled_to.is_none() || chunk.block.len() > CHUNK_BYTES_MAX => {
                self.write_chunk(&file, chunk).await?;
            }
            _ => {
                let block = Chunk::joined(chunks, self.salt(segment), journaled_to);
                file.write_at(chunks[0].start, block).await?;
            }
        }
        // The topic may have been made relaxed since they were acknowledged.
        if !strict && self.undestaged_since().is_some() {
            file.sync().await?;
        }
        Ok(())
    }

    async fn write_chunk(&self, file: &UsedFile, chunk: &Chunk) -> Result<(), FsError> {
        if chunk.block.len() <= CHUNK_BYTES_MAX {
            return file.write_at(chunk.start, chunk.block.clone()).await;
        }
        // A batch larger than a write: its mark goes out last.
        let mut at = 0;
        while at < chunk.block.len() {
            let next = (at + CHUNK_BYTES_MAX).min(chunk.block.len());
            file.write_at(chunk.start + at as u64, chunk.block.slice(at..next)).await?;
            runtime::reached("commit: one part written");
            at = next;
        }
        Ok(())
    }

    async fn on_written(self: &Rc<Self>, chunks: &[Rc<Chunk>], strict: bool) {
        let sync_now = {
            let state = &mut *self.state.borrow_mut();
            let journaled = state.tail.journaled_bytes();
            chunks.iter().for_each(|_| state.tail.on_written());
            let committed = state.committed;
            for chunk in chunks.iter().filter(|chunk| chunk.end_offset > committed) {
                assert!(chunk.end_offset <= state.end);
                state.committed = chunk.end_offset;
                if strict {
                    state.durable = chunk.end_offset;
                } else {
                    state.unsynced_records += chunk.records;
                }
            }
            let bytes: u64 = chunks.iter().map(|chunk| chunk.to - chunk.from).sum();
            if state.unchecked_bytes == 0 {
                self.storage.note_written(self);
            }
            // What was journaled has been counted.
            state.unchecked_bytes += bytes.saturating_sub(journaled);
            state.assert_ends();
            !strict && self.is_sync_due(state)
        };
        for chunk in chunks {
            self.storage.memory().on_chunk_written(self, chunk.cost());
        }
        self.count_for_journal(None);
        if let Some(last) = chunks.last() {
            self.waiters.wake_up_to(last.end_offset);
            self.advanced.notify_all();
        }
        if sync_now {
            self.sync_relaxed().await;
        } else if !strict {
            self.maybe_schedule_sync();
        }
        self.maybe_advance_recovery_point();
    }

    /// The checkpoint says, durably and before the first such write, that the log may have bytes
    /// in the page cache alone: a start writes those again and does not take what a power loss left
    /// of them for damage.
    async fn note_relaxed(&self) {
        if !self.state.borrow().checkpoint.relaxed {
            self.change_checkpoint(|checkpoint| checkpoint.relaxed = true).await;
        }
    }

    fn is_sync_due(&self, state: &State) -> bool {
        let flush_messages = self.options.borrow().flush_messages;
        state.unsynced_records >= u64::try_from(flush_messages).unwrap_or(1)
    }

    /// Makes durable what only the page cache has. Returns when everything that was committed
    /// when it was called is durable.
    pub async fn sync_relaxed(&self) {
        let (segment, committed, records) = {
            let state = self.state.borrow();
            if state.unsynced_records == 0 {
                return;
            }
            (state.active.base_offset, state.committed, state.unsynced_records)
        };
        // Older segments were synced when they were sealed.
        let synced = match self.file_for_writing_as_is(segment).await {
            Ok(file) => file.sync().await,
            Err(error) => Err(error),
        };
        if self.check_service().is_err() {
            // Closed, and so durable, or deleted, and perhaps gone.
            return;
        }
        if let Err(error) = synced {
            self.abort(&self.segment_path(segment, SegmentFile::Log), &error);
        }
        let state = &mut *self.state.borrow_mut();
        state.unsynced_records = state.unsynced_records.saturating_sub(records);
        state.durable = state.durable.max(committed);
        state.assert_ends();
        runtime::reached("relaxed log synced");
    }

    /// The file through which unsynced writes went: whatever mode it is open in.
    async fn file_for_writing_as_is(&self, segment: i64) -> Result<UsedFile, FsError> {
        self.segment_file(segment, Mode::Buffered).await
    }

    /// `flush.ms`: a sync that long after the first record that is not synced.
    fn maybe_schedule_sync(self: &Rc<Self>) {
        let flush_ms = self.options.borrow().flush_ms;
        let state = &mut *self.state.borrow_mut();
        if flush_ms == i64::MAX || state.sync_scheduled {
            return;
        }
        state.sync_scheduled = true;
        let log = Rc::clone(self);
        background::start(async move {
            sleep(Duration::from_millis(flush_ms.max(1) as u64)).await;
            log.state.borrow_mut().sync_scheduled = false;
            log.sync_relaxed().await;
        });
    }
}
