//! Group commit: one write in flight, everything that arrived meanwhile goes into the next.
//!
//! Law: chunks are written in the order of their offsets, each behind the one before it, and an
//! offset counts as committed only when the write that holds it has returned. The loop runs as
//! long as something is pending and then ends.

use std::rc::Rc;
use std::time::Duration;

use runtime::file::{FsError, Mode};
use runtime::task::yield_now;
use runtime::time::{now, sleep};

use super::tail::{CHUNK_BYTES_MAX, Chunk};
use super::{LogInner, State};
use crate::background;
use crate::directory::SegmentFile;
use crate::open_files::UsedFile;

impl LogInner {
    /// Starts the commit loop unless it runs.
    pub fn maybe_commit(self: &Rc<Self>, state: &mut State) {
        if state.committing {
            return;
        }
        state.committing = true;
        let log = Rc::clone(self);
        background::start(async move { log.commit_pending().await });
    }

    pub fn freeze_open(&self, state: &mut State) {
        let strict = self.options.borrow().is_strict();
        state.tail.freeze_open(|segment| strict.then(|| self.salt(segment)));
    }

    async fn commit_pending(self: Rc<Self>) {
        self.linger().await;
        while let Some(chunk) = self.next_chunk() {
            let started = now();
            self.storage.disk_turns().on_commit(started);
            let strict = self.options.borrow().is_strict();
            if strict {
                self.sync_relaxed().await;
            }
            runtime::reached("commit: begun");
            let written = self.write_chunk(&chunk).await;
            if let Err(error) = written {
                self.abort(&self.segment_path(chunk.segment, SegmentFile::Log), &error);
            }
            runtime::reached("commit: written");
            let stats = self.storage.stats();
            stats.commits.increment();
            stats.committed_bytes.add(chunk.to - chunk.from);
            stats.commit_latency.record_nanos(now().since(started).as_nanos() as u64);
            self.on_written(&chunk, strict).await;
            // Who was waiting for this write has its next batch in the next one.
            yield_now().await;
            self.linger().await;
        }
    }

    /// Gives batches that are on their way the time to go into the next write, if so configured.
    async fn linger(&self) {
        let config = self.storage.config();
        if config.commit_linger == Duration::ZERO {
            return;
        }
        let pending = self.state.borrow().tail.pending_bytes();
        if (1..config.commit_bytes_max).contains(&pending) {
            sleep(config.commit_linger).await;
        }
    }

    /// The next chunk to write; none ends the loop.
    fn next_chunk(&self) -> Option<Rc<Chunk>> {
        let state = &mut *self.state.borrow_mut();
        if state.tail.next_to_write().is_none() {
            self.freeze_open(state);
        }
        let next = state.tail.next_to_write();
        state.committing = next.is_some();
        next
    }

    async fn write_chunk(&self, chunk: &Chunk) -> Result<(), FsError> {
        let file = self.file_for_writing(chunk.segment).await?;
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

    async fn on_written(self: &Rc<Self>, chunk: &Rc<Chunk>, strict: bool) {
        let sync_now = {
            let state = &mut *self.state.borrow_mut();
            state.tail.on_written();
            assert!(state.committed <= chunk.base_offset && chunk.end_offset <= state.end);
            state.committed = chunk.end_offset;
            if state.unchecked_bytes == 0 {
                self.storage.note_written(self);
            }
            state.unchecked_bytes += chunk.to - chunk.from;
            if strict {
                state.durable = chunk.end_offset;
            } else {
                state.unsynced_records += chunk.records;
            }
            state.assert_ends();
            !strict && self.is_sync_due(state)
        };
        self.storage.memory().on_chunk_written(self, chunk.cost());
        self.waiters.wake_up_to(chunk.end_offset);
        self.advanced.notify_all();
        if sync_now {
            self.sync_relaxed().await;
        } else if !strict {
            self.maybe_schedule_sync();
        }
        self.maybe_advance_recovery_point();
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
