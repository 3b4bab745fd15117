//! Finishing sealed segments: cut to their batches, indexes complete.
//!
//! Law: oldest first, each only after its last write has returned; a crash in between leaves a
//! file with zeros behind its batches, which recovery cuts.

use std::rc::Rc;

use runtime::file::FsError;

use super::LogInner;
use crate::background;
use crate::directory::SegmentFile;
use crate::index::SegmentIndex;
use crate::open_files::FileRole;
use crate::segment::{
    IndexSums, Largest, REGISTER_FILE_NAME, RegisteredSegment, SealedSegment, register,
};

struct Unfinished {
    base_offset: i64,
    next_base: i64,
    size: u64,
    index: Rc<SegmentIndex>,
}

impl LogInner {
    pub fn finish_sealed_in_background(self: &Rc<Self>) {
        let log = Rc::clone(self);
        background::start(async move { log.finish_sealed().await });
    }

    /// Returns when every sealed segment is finished, or the log has stopped to serve.
    pub async fn finish_sealed(self: &Rc<Self>) {
        let _sealing = self.seal_turn.take().await;
        let mut finished_any = false;
        while self.check_service().is_ok()
            && let Some(segment) = self.next_unfinished()
        {
            let log = super::Log { inner: Rc::clone(self) };
            if log.committed(segment.next_base).await.is_err() {
                return;
            }
            // What a save wrote of the same index must not come after.
            let saving = self.save_turn.take().await;
            let finished = self.finish(&segment).await;
            drop(saving);
            if let Err(error) = finished {
                if error.is_full() {
                    // Tried again when the next one is sealed or the log is closed.
                    tracing::warn!(log = %self.name(), %error, "a sealed segment stays unfinished");
                    return;
                }
                if self.state.borrow().service.is_err() {
                    return;
                }
                self.abort(&error.path.clone(), &error);
            }
            finished_any = true;
        }
        if finished_any {
            self.advance_recovery_point(false).await;
        }
    }

    fn next_unfinished(&self) -> Option<Unfinished> {
        let state = self.state.borrow();
        let number = state.sealed.iter().position(|segment| !segment.finished)?;
        let segment = &state.sealed[number];
        let next = state.sealed.get(number + 1);
        let next_base = next.map_or(state.active.base_offset, |next| next.base_offset);
        let Some(index) = segment.index.clone() else { unreachable!("kept until it is written") };
        let (base_offset, size) = (segment.base_offset, segment.size);
        Some(Unfinished { base_offset, next_base, size, index })
    }

    async fn finish(self: &Rc<Self>, segment: &Unfinished) -> Result<(), FsError> {
        let base = segment.base_offset;
        let file = self.file_for_writing(base).await?;
        file.truncate(segment.size).await?;
        runtime::reached("seal: cut");
        // It is written no more: readers open it for reading.
        drop(file);
        self.storage.open_files().forget((self.number, FileRole::Segment(base)));
        let _registering = self.register_turn.take().await;
        self.write_sealed_index(base, &segment.index).await?;
        self.storage.memory().on_index_loaded(self, base, segment.index.bytes());
        Ok(())
    }

    /// Writes a sealed segment's index files and then says in the register what they are. The
    /// caller holds the register's turn.
    pub async fn write_sealed_index(
        self: &Rc<Self>,
        base: i64,
        index: &SegmentIndex,
    ) -> Result<(), FsError> {
        let offsets = index.offsets().to_file(0);
        let path = self.segment_path(base, SegmentFile::OffsetIndex);
        runtime::fs::write_atomic(path, &offsets).await?;
        runtime::reached("seal: one index written");
        let times = index.times().to_file(0);
        let path = self.segment_path(base, SegmentFile::TimeIndex);
        runtime::fs::write_atomic(path, &times).await?;
        runtime::reached("seal: both indexes written");
        let register: Vec<RegisteredSegment> = {
            let state = &mut *self.state.borrow_mut();
            let found = state.sealed.iter_mut().find(|segment| segment.base_offset == base);
            let Some(segment) = found else { return Ok(()) };
            segment.finished = true;
            segment.largest = Largest::of(index);
            segment.sums = Some(IndexSums::of(&offsets, &times));
            state.sealed.iter().filter_map(SealedSegment::registered).collect()
        };
        let path = self.path(REGISTER_FILE_NAME);
        runtime::fs::write_atomic(path, &register::to_file(&register)).await
    }
}
