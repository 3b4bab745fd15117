//! The indexes of a log's segments in memory, loaded when someone needs them.
//!
//! Law: an index is a hint. A lookup that leads to the wrong place makes the index again from the
//! batches, once; what is then still wrong is the segment.

use std::rc::Rc;

use protocol::batch::BatchHeader;

use super::LogInner;
use crate::directory::SegmentFile;
use crate::errors::ReadError;
use crate::index::{IndexedBatch, ScanStart, SegmentIndex};
use crate::recovery::{Entries, Scanner, load_index};
use crate::segment::{Chain, Largest};

impl LogInner {
    /// The active segment's index is in memory.
    pub async fn ensure_active_index(self: &Rc<Self>) -> Result<(), ReadError> {
        let (base, size, flushed) = {
            let state = self.state.borrow();
            let active = &state.active;
            if active.index.is_some() {
                return Ok(());
            }
            (active.base_offset, active.size, active.index_flushed)
        };
        let entries = Entries::First(flushed);
        let dir = self.dir.borrow().clone();
        let loaded = load_index(&dir, base, self.index_policy(), size, entries).await?;
        let (index, flushed) = match loaded {
            Some(index) => (index, flushed),
            // Its files are written anew from the first entry on.
            None => (self.index_from_batches(base, size).await?, Default::default()),
        };
        let active = &mut self.state.borrow_mut().active;
        if active.base_offset == base && active.index.is_none() {
            active.index = Some(index);
            active.index_flushed = flushed;
        }
        Ok(())
    }

    /// The index of a sealed segment.
    pub async fn sealed_index(self: &Rc<Self>, base: i64) -> Result<Rc<SegmentIndex>, ReadError> {
        let exchanges = self.exchanges();
        let (size, sums) = {
            let state = self.state.borrow();
            let Some(segment) = state.sealed.iter().find(|s| s.base_offset == base) else {
                let empty = SegmentIndex::new(base, self.index_policy());
                return Ok(Rc::new(empty));
            };
            if let Some(index) = &segment.index {
                return Ok(Rc::clone(index));
            }
            (segment.size, segment.sums)
        };
        if let Some(sums) = sums {
            let (dir, policy) = (self.dir.borrow().clone(), self.index_policy());
            let loaded = load_index(&dir, base, policy, size, Entries::All(sums)).await?;
            if self.exchanges() != exchanges {
                // Of another segment, perhaps: whoever asked finds out and asks again.
                let index = loaded.unwrap_or_else(|| SegmentIndex::new(base, policy));
                return Ok(Rc::new(index));
            }
            if let Some(index) = loaded {
                return Ok(self.keep_index(base, index));
            }
        }
        self.rebuild_sealed_index(base, false).await
    }

    /// Makes a segment's index again, in memory and on disk.
    pub async fn rebuild_index(self: &Rc<Self>, base: i64) -> Result<(), ReadError> {
        let (active, size) = {
            let state = self.state.borrow();
            (state.active.base_offset == base, state.active.size)
        };
        if !active {
            return self.rebuild_sealed_index(base, true).await.map(drop);
        }
        // Under the turn nothing is appended meanwhile. Who has it may be the one who reads.
        let Some(_turn) = self.turn.try_take() else { return Ok(()) };
        let written = self.tail_begin(base).unwrap_or(size);
        if self.state.borrow().active.base_offset != base || written != size {
            return Ok(());
        }
        let index = self.index_from_batches(base, size).await?;
        let active = &mut self.state.borrow_mut().active;
        active.index = Some(index);
        active.index_flushed = Default::default();
        Ok(())
    }

    async fn rebuild_sealed_index(
        self: &Rc<Self>,
        base: i64,
        again: bool,
    ) -> Result<Rc<SegmentIndex>, ReadError> {
        // Whoever comes second finds what the first has made.
        let _registering = self.register_turn.take().await;
        self.check_service()?;
        let size = {
            let state = self.state.borrow();
            let found = state.sealed.iter().find(|s| s.base_offset == base);
            if let Some(index) = found.and_then(|segment| segment.index.as_ref())
                && !again
            {
                return Ok(Rc::clone(index));
            }
            found.map_or(0, |segment| segment.size)
        };
        let mut index = self.index_from_batches(base, size).await?;
        index.seal();
        tracing::warn!(log = %self.name(), segment = base, "an index was made again");
        self.keep_on_disk(base, &index).await;
        Ok(self.keep_index(base, index))
    }

    /// Writes what is as good in memory: without room it stays there alone.
    async fn keep_on_disk(self: &Rc<Self>, base: i64, index: &SegmentIndex) {
        match self.write_sealed_index(base, index).await {
            Ok(()) => {}
            Err(error) if error.is_full() => {
                tracing::warn!(log = %self.name(), %error, "an index stays in memory alone");
            }
            // The log may have moved out of the way meanwhile, with all that is in it.
            Err(_) if self.state.borrow().service.is_err() => {}
            Err(error) => self.abort(&error.path.clone(), &error),
        }
    }

    fn keep_index(self: &Rc<Self>, base: i64, index: SegmentIndex) -> Rc<SegmentIndex> {
        let index = Rc::new(index);
        let bytes = index.bytes();
        {
            let state = &mut *self.state.borrow_mut();
            let found = state.sealed.iter_mut().find(|segment| segment.base_offset == base);
            let Some(segment) = found else { return index };
            segment.largest = Largest::of(&index);
            segment.index = Some(Rc::clone(&index));
        }
        self.storage.memory().on_index_loaded(self, base, bytes);
        index
    }

    /// For the slot's memory: the index will be loaded again when it is needed.
    pub fn forget_index(&self, base: i64) {
        let Ok(mut state) = self.state.try_borrow_mut() else { return };
        let found = state.sealed.iter_mut().find(|segment| segment.base_offset == base);
        if let Some(segment) = found.filter(|segment| segment.finished) {
            segment.index = None;
        }
    }

    async fn index_from_batches(
        self: &Rc<Self>,
        base: i64,
        size: u64,
    ) -> Result<SegmentIndex, ReadError> {
        let mut index = SegmentIndex::new(base, self.index_policy());
        let gaps = self.has_gaps();
        let mut chain = Chain { next_offset: base, epoch: -1, gaps };
        let file = self.file_for_reading(base).await?;
        let mut scanner = Scanner::new(file, size);
        let mut position = 0;
        while position < size {
            let header = match scanner.header_at(position, &chain).await? {
                Ok(header) => header,
                Err(reason) => return Err(self.corrupt(base, position, reason.to_string())),
            };
            chain.advance(&header);
            index.on_batch(indexed(&header, position));
            position += header.size_in_bytes() as u64;
        }
        Ok(index)
    }

    /// Where to begin looking for `offset` in a segment.
    pub async fn scan_start(
        self: &Rc<Self>,
        base: i64,
        offset: i64,
    ) -> Result<ScanStart, ReadError> {
        if self.state.borrow().active.base_offset != base {
            return Ok(self.sealed_index(base).await?.scan_start_for_offset(offset));
        }
        self.ensure_active_index().await?;
        let state = self.state.borrow();
        let index = state.active.index.as_ref().filter(|_| state.active.base_offset == base);
        Ok(index.map_or(ScanStart { position: 0, offset }, |i| i.scan_start_for_offset(offset)))
    }

    /// Position in a segment from which on its batches are in the tail.
    pub fn tail_begin(&self, base: i64) -> Option<u64> {
        let state = self.state.borrow();
        let (segment, position) = state.tail.begins_at()?;
        (segment == base).then_some(position)
    }

    pub fn corrupt(&self, base: i64, position: u64, reason: String) -> ReadError {
        self.storage.stats().corrupt_batches.increment();
        let file = self.segment_path(base, SegmentFile::Log);
        let topic = self.topic.clone();
        let error = ReadError::Corrupt { topic, partition: self.partition, file, position, reason };
        tracing::error!(%error, "a damaged batch is not served");
        error
    }
}

pub fn indexed(header: &BatchHeader, position: u64) -> IndexedBatch {
    IndexedBatch {
        last_offset: header.last_offset(),
        position: position as u32,
        size_bytes: header.size_in_bytes() as u32,
        max_timestamp: header.max_timestamp,
    }
}
