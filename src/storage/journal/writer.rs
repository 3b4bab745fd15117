//! The journal's one write at a time.

use std::rc::Rc;

use runtime::file::AlignedBuf;
use runtime::task::yield_now;
use runtime::time::{now, sleep};

use super::format::{ENTRY_HEAD_BYTES, Place, RECORD_HEAD_BYTES, seal_record};
use super::{Fence, Journal, Span};
use crate::background;
use crate::log::Journaled;
use crate::segment::BLOCK;

/// A record that is about to be written.
struct Record {
    buffer: AlignedBuf,
    entries: u32,
    logs: Vec<Journaled>,
    fences: Vec<Fence>,
}

impl Journal {
    /// Starts the writer unless it runs.
    pub(super) fn maybe_write(self: &Rc<Self>) {
        if std::mem::replace(&mut self.queue.borrow_mut().writing, true) {
            return;
        }
        let journal = Rc::clone(self);
        background::start(async move { journal.write_pending().await });
    }

    async fn write_pending(self: Rc<Self>) {
        loop {
            self.linger().await;
            self.wait_for_room().await;
            if let Some(record) = self.gather() {
                self.write(record).await;
            }
            // Who waited for this write has its next batch in the next one.
            yield_now().await;
            let queue = &mut *self.queue.borrow_mut();
            if queue.logs.is_empty() && queue.fences.is_empty() {
                queue.writing = false;
                break;
            }
        }
        self.changed.notify_all();
    }

    /// Gives batches that are on their way the time to go into the next write, if so configured.
    async fn linger(&self) {
        if self.linger.is_zero() {
            return;
        }
        let is_worth_it = {
            let queue = self.queue.borrow();
            let pending: usize = queue.logs.iter().map(|log| log.pending_bytes()).sum();
            let room = self.ring.borrow().record_bytes_max();
            queue.fences.is_empty() && (1..room).contains(&pending)
        };
        if is_worth_it {
            sleep(self.linger).await;
        }
    }

    /// Without room the logs go straight to their segments, which makes some; fences wait for it.
    async fn wait_for_room(self: &Rc<Self>) {
        loop {
            let changed = self.changed.listen();
            if self.ring.borrow().has_room() {
                return;
            }
            while let Some(log) = self.pop_log() {
                log.commit_directly();
            }
            self.maybe_destage();
            self.maybe_recycle();
            if self.queue.borrow().fences.is_empty() {
                return;
            }
            runtime::reached("journal: a fence waits for room");
            changed.await;
        }
    }

    fn pop_log(&self) -> Option<Rc<crate::log::LogInner>> {
        self.queue.borrow_mut().logs.pop_front()
    }

    /// Puts what is pending into a record.
    fn gather(self: &Rc<Self>) -> Option<Record> {
        let most = self.ring.borrow().record_bytes_max();
        let wanted = {
            let queue = self.queue.borrow();
            let mut wanted = RECORD_HEAD_BYTES + queue.fences.len() * ENTRY_HEAD_BYTES;
            for log in &queue.logs {
                // The rest is for the records after this one.
                if wanted >= most {
                    break;
                }
                wanted += log.pending_bytes() + ENTRY_HEAD_BYTES;
            }
            wanted
        };
        let mut buffer = AlignedBuf::with_room(wanted.min(most));
        buffer.zero_to(RECORD_HEAD_BYTES);
        let mut record = Record { buffer, entries: 0, logs: Vec::new(), fences: Vec::new() };
        while record.room() >= ENTRY_HEAD_BYTES
            && let Some(fence) = self.pop_fence()
        {
            record.buffer.put(&fence.head.encode());
            record.entries += 1;
            record.fences.push(fence);
        }
        while let Some(log) = self.pop_log() {
            if log.pending_bytes() + ENTRY_HEAD_BYTES > record.room() && record.entries > 0 {
                self.queue.borrow_mut().logs.push_front(log);
                break;
            }
            match log.journal_into(&mut record.buffer, self.config.commit_bytes_max) {
                Some(journaled) => {
                    record.entries += 1;
                    record.logs.push(journaled);
                }
                None => log.commit_directly(),
            }
        }
        (record.entries > 0).then_some(record)
    }

    fn pop_fence(&self) -> Option<Fence> {
        self.queue.borrow_mut().fences.pop_front()
    }

    async fn write(self: &Rc<Self>, mut record: Record) {
        let length = record.buffer.len();
        let blocks = length.next_multiple_of(BLOCK);
        record.buffer.zero_to(blocks);
        let (file, place, sequence) = self.place_of(blocks as u64);
        seal_record(&mut record.buffer, place, sequence, length, record.entries);
        let started = now();
        runtime::reached("journal: write begun");
        let block = record.buffer.freeze_prefix(blocks);
        if let Err(error) = file.write_at(place.position, block).await {
            self.abort(&error);
        }
        runtime::reached("journal: written");
        {
            let ring = &mut *self.ring.borrow_mut();
            ring.next_sequence = sequence + 1;
            ring.position = place.position + blocks as u64;
            if let Some(span) = ring.spans.back_mut() {
                span.last = sequence;
            }
        }
        self.stats.journal_writes.increment();
        self.stats.journal_bytes.add(blocks as u64);
        let nanos = now().since(started).as_nanos() as u64;
        for journaled in record.logs {
            self.stats.commit_latency.record_nanos(nanos);
            journaled.on_durable(sequence);
        }
        let fences = !record.fences.is_empty();
        record.fences.iter().for_each(|fence| fence.done.set(Some(sequence)));
        if fences {
            self.changed.notify_all();
        }
        self.maybe_recycle();
    }

    /// Where a record of so many bytes goes. There is room.
    fn place_of(&self, bytes: u64) -> (Rc<runtime::file::File>, Place, u64) {
        let ring = &mut *self.ring.borrow_mut();
        let sequence = ring.next_sequence;
        let fits = !ring.spans.is_empty() && ring.position + bytes <= ring.file_bytes;
        if !fits {
            let count = ring.files.len() as u32;
            let next = ring.spans.back().map_or(0, |span| (span.file + 1) % count);
            assert!(ring.spans.iter().all(|span| span.file != next), "file {next} still counts");
            ring.spans.push_back(Span { file: next, last: sequence });
            ring.position = BLOCK as u64;
        }
        let Some(span) = ring.spans.back() else { unreachable!("a file was begun") };
        let place = Place { salt: ring.salt, file: span.file, position: ring.position };
        (Rc::clone(&ring.files[span.file as usize]), place, sequence)
    }
}

impl Record {
    fn room(&self) -> usize {
        self.buffer.room() - self.buffer.len()
    }
}
