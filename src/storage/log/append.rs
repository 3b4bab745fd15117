//! From a validated batch to its place in the append buffer.
//!
//! Law: what can fail or wait comes first (sequence, roll, space, memory), then the batch is
//! placed in one step that does neither. So an append that returns an error has left nothing
//! behind, and one that returns offsets will be committed unless the host dies.

use std::rc::Rc;

use bytes::Bytes;
use protocol::batch::header::crc_ok;
use protocol::batch::{BatchHeader, HEADER_BYTES, ValidBatch};
use runtime::local::Lease;

use super::indexes::indexed;
use super::tail::{OpenChunk, TailBatch, chunk_bytes};
use super::turned_away::TurnedAway;
use super::{Log, LogInner};
use crate::errors::AppendError;
use crate::producer::{ProducerBatch, RememberedBatch, Verdict};
use crate::segment::{BLOCK, SEGMENT_BYTES_MAX, blocks_with_trailer};

/// Where a batch is, or was already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: i64,
    pub last_offset: i64,
    /// Milliseconds; −1 when the records keep the producer's timestamps.
    pub log_append_time_ms: i64,
    pub log_start_offset: i64,
    /// The batch repeats one of the producer's last five: nothing was appended.
    pub duplicate: bool,
}

impl Log {
    /// Appends one validated batch at the log's end, under `leader_epoch`. Calls take effect in
    /// the order in which they are first polled; the common one never waits. The offsets may be
    /// acknowledged once `committed(last_offset + 1)` has resolved.
    pub async fn append(
        &self,
        batch: &ValidBatch,
        leader_epoch: i32,
        now_ms: i64,
    ) -> Result<Appended, AppendError> {
        let header = batch.header();
        let _turn = self.inner.turn.take().await;
        self.inner.check_service()?;
        if let Some(producer) = producer_batch(header) {
            let verdict = self.inner.state.borrow().producers.check(&producer)?;
            if let Verdict::Duplicate(remembered) = verdict {
                runtime::reached("duplicate answered");
                // It had been appended before it was turned away.
                self.inner.state.borrow_mut().turned_away.forget(&producer);
                return Ok(self.inner.repeated(remembered));
            }
        }
        let room = self.inner.make_room(header, now_ms).await;
        self.inner.note_producer(header, &room)?;
        room?;
        let mut placed = *header;
        placed.base_offset = self.log_end_offset();
        placed.partition_leader_epoch = leader_epoch;
        let mut appended = self.inner.place(&placed, batch.body(), now_ms);
        appended.log_append_time_ms = batch.log_append_time_ms().unwrap_or(-1);
        Ok(appended)
    }

    /// What was turned away while the log was not open counts as turned away by it.
    pub fn remember_turned_away(&self, earlier: TurnedAway) {
        self.inner.state.borrow_mut().turned_away = earlier;
    }

    /// Whom the log has turned away and not taken since, for the next one of this name.
    pub fn take_turned_away(&self) -> TurnedAway {
        std::mem::take(&mut self.inner.state.borrow_mut().turned_away)
    }

    /// Appends batches as a leader gave them: offsets and epochs are kept. All of them are
    /// checked before the first is appended; on lack of space the first ones may have been.
    pub async fn append_as_follower(
        &self,
        batches: &Bytes,
        now_ms: i64,
    ) -> Result<i64, AppendError> {
        let _turn = self.inner.turn.take().await;
        self.inner.check_service()?;
        self.inner.check_followed(batches)?;
        let mut rest = batches.clone();
        while !rest.is_empty() {
            let header = BatchHeader::parse(&rest)?;
            let batch = rest.split_to(header.size_in_bytes());
            self.inner.make_room(&header, now_ms).await?;
            self.inner.place(&header, &batch.slice(HEADER_BYTES..), now_ms);
        }
        Ok(self.log_end_offset())
    }
}

impl LogInner {
    /// The answer that the batch got the first time.
    fn repeated(&self, remembered: RememberedBatch) -> Appended {
        Appended {
            base_offset: remembered.base_offset,
            last_offset: remembered.last_offset,
            log_append_time_ms: remembered.timestamp,
            log_start_offset: self.state.borrow().log_start,
            duplicate: true,
        }
    }

    /// What becomes of this batch means something for those that its producer sent behind it.
    fn note_producer(
        &self,
        header: &BatchHeader,
        room: &Result<(), AppendError>,
    ) -> Result<(), AppendError> {
        let Some(producer) = producer_batch(header) else { return Ok(()) };
        let turned_away = &mut self.state.borrow_mut().turned_away;
        match room {
            Ok(()) => {
                turned_away.check(&producer)?;
                turned_away.forget(&producer);
            }
            // No later try would fare better.
            Err(AppendError::TooLarge { .. }) => {}
            Err(_) => turned_away.note(&producer),
        }
        Ok(())
    }

    fn check_followed(&self, batches: &Bytes) -> Result<(), AppendError> {
        let state = self.state.borrow();
        let (mut end, mut epoch) = (state.end, state.epochs.latest().map_or(-1, |e| e.epoch));
        let mut rest = batches.clone();
        while !rest.is_empty() {
            let header = BatchHeader::parse(&rest)?;
            let batch = rest.split_to(header.size_in_bytes());
            let found = header.base_offset;
            if found < end {
                return Err(AppendError::OutOfOrder { found, log_end: end });
            }
            if header.partition_leader_epoch < epoch {
                let found = header.partition_leader_epoch;
                return Err(AppendError::StaleEpoch { found, known: epoch });
            }
            if !crc_ok(&batch) {
                return Err(AppendError::Checksum { offset: found });
            }
            (end, epoch) = (header.next_offset(), header.partition_leader_epoch);
        }
        Ok(())
    }

    /// Makes sure that the batch can be placed without waiting: files ready, segment not full,
    /// space allocated, buffer leased. The caller holds the turn.
    async fn make_room(
        self: &Rc<Self>,
        header: &BatchHeader,
        now_ms: i64,
    ) -> Result<(), AppendError> {
        let bytes = header.size_in_bytes();
        let segment_bytes = self.options.borrow().segment_bytes.min(SEGMENT_BYTES_MAX);
        if bytes as u64 > SEGMENT_BYTES_MAX {
            return Err(AppendError::TooLarge { bytes, segment_bytes });
        }
        self.maybe_prepare(now_ms).await?;
        self.maybe_roll_for(header, now_ms).await?;
        let needed = {
            let size = self.state.borrow().active.size as usize;
            // One block more: where a mark does not fit behind the batch.
            (blocks_with_trailer(size + bytes) + BLOCK) as u64
        };
        self.ensure_allocated(needed).await?;
        self.ensure_chunk(bytes).await
    }

    /// An open chunk that takes `bytes` more.
    async fn ensure_chunk(self: &Rc<Self>, bytes: usize) -> Result<(), AppendError> {
        let (segment, position, end, expected) = {
            let state = &mut *self.state.borrow_mut();
            if state.tail.has_room(state.active.base_offset, bytes) {
                return Ok(());
            }
            let expected = state.tail.expected_bytes();
            self.freeze_open(state);
            (state.active.base_offset, state.active.size, state.end, expected)
        };
        let carried = (position % BLOCK as u64) as usize;
        let most = self.storage.config().commit_bytes_max;
        let wanted = chunk_bytes(carried, bytes, expected, most);
        let lease = self.lease_for_chunk(wanted).await;
        loop {
            {
                let state = &mut *self.state.borrow_mut();
                if let Some(known) = state.tail.carried(segment, position) {
                    let chunk = OpenChunk::new(segment, position, end, known, lease);
                    state.tail.begin(chunk);
                    return Ok(());
                }
            }
            let file = self.file_for_reading(segment).await?;
            let block = file.read_at(position - carried as u64, carried).await?;
            assert_eq!(block.len(), carried, "{} is shorter than its log", self.name());
            self.state.borrow_mut().tail.restore_carried(segment, position, block);
        }
    }

    /// Where memory is short, what only the journal has is written out to free its own.
    async fn lease_for_chunk(&self, bytes: usize) -> Lease {
        if let Some(lease) = self.storage.memory().try_lease(bytes) {
            return lease;
        }
        if let Some(journal) = self.storage.journal() {
            journal.relieve();
        }
        self.storage.memory().lease(bytes).await
    }

    /// Copies the batch behind the log's end, under the offset and epoch of its header.
    fn place(self: &Rc<Self>, header: &BatchHeader, body: &Bytes, now_ms: i64) -> Appended {
        let state = &mut *self.state.borrow_mut();
        let (base_offset, last_offset) = (header.base_offset, header.last_offset());
        assert!(base_offset >= state.end && last_offset >= base_offset);
        assert_eq!(header.size_in_bytes(), HEADER_BYTES + body.len());
        let position = state.active.size;
        let size = header.size_in_bytes() as u32;
        let tail_batch = TailBatch { base_offset, last_offset, position, size };
        state.tail.place(tail_batch, header.count.max(0) as u64, &header.encode(), body);
        state.active.size += u64::from(size);
        state.end = last_offset + 1;
        let epoch = header.partition_leader_epoch;
        if epoch >= 0 && state.epochs.latest().is_none_or(|latest| latest.epoch < epoch) {
            state.begin_epoch(epoch, base_offset);
        }
        let Some(index) = state.active.index.as_mut() else {
            unreachable!("prepared with an index")
        };
        index.on_batch(indexed(header, position));
        state.active.note_first(position, header.max_timestamp);
        match producer_batch(header) {
            Some(producer) => state.producers.apply(&producer, base_offset, now_ms),
            None => state.producers.advance_to(state.end),
        }
        state.last_append = Some(runtime::time::now());
        let log_start_offset = state.log_start;
        self.maybe_commit(state);
        self.maybe_allocate_ahead(state);
        let (log_append_time_ms, duplicate) = (-1, false);
        Appended { base_offset, last_offset, log_append_time_ms, log_start_offset, duplicate }
    }
}

/// What the producer state wants to know, of a batch that has a producer.
pub(crate) fn producer_batch(header: &BatchHeader) -> Option<ProducerBatch> {
    header.has_producer().then_some(ProducerBatch {
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        last_offset_delta: header.last_offset_delta,
        max_timestamp: header.max_timestamp,
        control: header.is_control(),
    })
}
