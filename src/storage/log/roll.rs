//! Sealing the active segment and beginning the next.
//!
//! Law: a roll happens between two batches, and the new segment's file exists durably before the
//! old one stops being the active one. The old file is cut and its indexes written in the
//! background, once its last write has returned; until then it only has zeros too many.

use std::rc::Rc;

use protocol::batch::BatchHeader;

use super::{Log, LogInner};
use crate::errors::AppendError;
use crate::index::SegmentIndex;
use crate::segment::{ActiveSegment, Largest, SEGMENT_BYTES_MAX, SealedSegment};

impl Log {
    /// Bytes of the batches in the active segment, which nothing is taken out of.
    pub fn active_bytes(&self) -> u64 {
        self.inner.state.borrow().active.size
    }

    /// Seals the active segment before its time, so that it can be cleaned. False when it has no
    /// batch, or cannot be sealed now.
    pub async fn seal(&self, now_ms: i64) -> bool {
        let _turn = self.inner.turn.take().await;
        self.inner.check_service().is_ok() && self.inner.try_roll(now_ms).await
    }
}

impl LogInner {
    /// Rolls unless there is nothing to be sealed, or no room. The caller holds the turn.
    pub async fn try_roll(self: &Rc<Self>, now_ms: i64) -> bool {
        let is_empty = self.state.borrow().active.size == 0;
        if is_empty || self.maybe_prepare(now_ms).await.is_err() {
            return false;
        }
        match self.roll(now_ms).await {
            Ok(()) => true,
            Err(AppendError::NoSpace { .. }) => false,
            Err(error) => {
                tracing::warn!(log = %self.name(), %error, "cannot seal a segment");
                false
            }
        }
    }

    /// Rolls when the batch must not or should not go into the active segment.
    pub async fn maybe_roll_for(
        self: &Rc<Self>,
        header: &BatchHeader,
        now_ms: i64,
    ) -> Result<(), AppendError> {
        if self.must_roll_for(header, now_ms) { self.roll(now_ms).await } else { Ok(()) }
    }

    fn must_roll_for(&self, header: &BatchHeader, now_ms: i64) -> bool {
        let options = self.options.borrow();
        let state = self.state.borrow();
        let active = &state.active;
        if active.size == 0 {
            return false;
        }
        let size = active.size + header.size_in_bytes() as u64;
        let last_offset = state.end.max(header.base_offset) + i64::from(header.last_offset_delta);
        let age_ms = active.age_ms(now_ms, header.max_timestamp);
        size > options.segment_bytes.min(SEGMENT_BYTES_MAX)
            || age_ms > options.segment_ms.saturating_sub(active.jitter_ms)
            || active.index.as_ref().is_some_and(SegmentIndex::is_full)
            || last_offset - active.base_offset > i64::from(i32::MAX)
    }

    /// Begins a new segment at the log's end. The active one must have a batch; the caller holds
    /// the turn.
    pub async fn roll(self: &Rc<Self>, now_ms: i64) -> Result<(), AppendError> {
        self.drain_relaxed().await;
        // A start looks for what only the journal has in the newest segment alone.
        self.bar_journal().await;
        let rolled = self.roll_settled(now_ms).await;
        self.unbar_journal();
        rolled
    }

    async fn roll_settled(self: &Rc<Self>, now_ms: i64) -> Result<(), AppendError> {
        let base = self.state.borrow().end;
        assert!(self.state.borrow().active.size > 0, "an empty segment is not rolled");
        let jitter_ms = self.draw_jitter();
        let index = SegmentIndex::new(base, self.index_policy());
        let next = ActiveSegment::empty(base, index, now_ms, jitter_ms);
        let allocated = self.create_segment_file(base).await?;
        runtime::reached("roll: next segment made");
        {
            let state = &mut *self.state.borrow_mut();
            self.freeze_open(state);
            let old = std::mem::replace(&mut state.active, next);
            state.active.exists = true;
            state.active.allocated = allocated;
            let Some(mut index) = old.index else { unreachable!("prepared with an index") };
            index.seal();
            state.sealed.push(SealedSegment {
                base_offset: old.base_offset,
                size: old.size,
                largest: Largest::of(&index),
                sums: None,
                index: Some(Rc::new(index)),
                finished: false,
            });
        }
        self.storage.stats().rolls.increment();
        runtime::reached("segment rolled");
        self.finish_sealed_in_background();
        Ok(())
    }

    /// In a relaxed log nothing of the old segment may be left to the page cache.
    async fn drain_relaxed(self: &Rc<Self>) {
        if self.options.borrow().is_strict() && self.state.borrow().unsynced_records == 0 {
            return;
        }
        self.wait_until_written().await;
        self.sync_relaxed().await;
    }

    /// Up to `segment.jitter.ms`, by chance.
    pub fn draw_jitter(&self) -> i64 {
        match self.options.borrow().segment_jitter_ms {
            none if none <= 0 => 0,
            most => (runtime::time::random_u64() % (most as u64 + 1)) as i64,
        }
    }
}
