//! The log's side of the slot's journal.
//!
//! Law: only a strict log journals, and only what belongs into its active segment, whose space is
//! allocated. Its checkpoint names the journal, durably, before the first entry. Whoever leaves
//! the segment, cuts the log or closes it has everything destaged first.

use std::rc::Rc;

use runtime::file::AlignedBuf;
use runtime::time::now;

use super::{LogInner, State};
use crate::background;
use crate::journal::{Counted, EntryHead, EntryKind, Journal};

/// What a record of the journal holds of a log.
pub struct Journaled {
    log: Rc<LogInner>,
    segment: i64,
    to: u64,
    end_offset: i64,
    bytes: usize,
}

impl LogInner {
    /// The journal that a commit of this log may go to now.
    pub fn usable_journal(&self, state: &State) -> Option<&Rc<Journal>> {
        let journal = self.storage.journal()?;
        let named = state.checkpoint.journal == Some(journal.slot());
        let free = !state.journaling.barred && !state.journaling.destage;
        (named && free && self.options.borrow().is_strict()).then_some(journal)
    }

    /// What the checkpoint says of the journal before anything of the log is in it.
    pub fn journal_to_name(&self) -> Option<u32> {
        let journal = self.storage.journal().map(|journal| journal.slot());
        journal.filter(|_| self.options.borrow().is_strict())
    }

    /// The journal, if what is pending had better go there.
    pub fn journal_for(&self, state: &State) -> Option<Rc<Journal>> {
        let journal = self.usable_journal(state)?;
        let goes = journal.takes(state.tail.pending_bytes());
        let whole = goes && state.tail.pending_in(state.active.base_offset).is_some();
        whole.then(|| Rc::clone(journal))
    }

    /// Bytes that wait to be committed.
    pub fn pending_bytes(&self) -> usize {
        self.state.borrow().tail.pending_bytes()
    }

    /// Adds what is pending to a record; none when it has to be committed straight to the segment.
    pub fn journal_into(
        self: &Rc<Self>,
        record: &mut AlignedBuf,
        bytes_max: usize,
    ) -> Option<Journaled> {
        let state = self.state.borrow();
        self.usable_journal(&state)?;
        let bytes = state.tail.pending_bytes();
        let segment = state.active.base_offset;
        let to = state.active.size;
        let head = EntryHead {
            kind: EntryKind::Batches,
            segment_base: segment,
            position: to - bytes as u64,
            base_offset: state.committed,
            end_offset: state.end,
            length: bytes as u32,
            ..self.entry_head()
        };
        let head = head.encode();
        let fits = head.len() + bytes <= record.room() - record.len();
        if bytes == 0 || bytes > bytes_max || !fits {
            return None;
        }
        let pieces = state.tail.pending_in(segment)?;
        record.put(&head);
        let before = record.len();
        pieces.for_each(|piece| record.put(piece));
        self.storage.disk_turns().on_commit(now());
        assert_eq!(record.len() - before, bytes, "the pieces are what is pending");
        Some(Journaled { log: Rc::clone(self), segment, to, end_offset: state.end, bytes })
    }

    fn entry_head(&self) -> EntryHead {
        EntryHead {
            topic_id: self.topic_id,
            partition: self.partition,
            kind: EntryKind::HandedOver,
            ownership: self.ownership,
            segment_base: 0,
            position: 0,
            base_offset: 0,
            end_offset: 0,
            length: 0,
        }
    }

    /// The journal has no place for the log's commit, which has waited there long enough.
    pub fn commit_directly(self: Rc<Self>) {
        background::start(async move { self.commit_pending().await });
    }

    /// Sequence number of the oldest record whose batches are not in the segment.
    pub fn undestaged_since(&self) -> Option<u64> {
        self.state.borrow().journaling.since
    }

    /// For the journal: writes out what only the journal has, in the background.
    pub fn destage_for_journal(self: &Rc<Self>) {
        let state = &mut *self.state.borrow_mut();
        state.journaling.destage = true;
        self.maybe_commit(state);
    }

    /// Returns when everything that was appended is in the segments, on stable storage in a strict
    /// log. The caller holds the turn, or something else that keeps appends away, or does not mind
    /// those that come meanwhile.
    pub async fn settle_in_segments(self: &Rc<Self>) {
        self.wait_until_written().await;
        self.destage().await;
    }

    /// Returns when nothing that is committed now is in the journal alone.
    pub async fn destage(self: &Rc<Self>) {
        let since = self.undestaged_since();
        while since.is_some() && self.undestaged_since() == since {
            let destaged = self.destaged.listen();
            {
                let state = &mut *self.state.borrow_mut();
                state.journaling.destage = true;
                self.maybe_commit(state);
            }
            destaged.await;
        }
    }

    /// Leaves the journal out until `unbar` and has everything destaged.
    pub async fn bar_journal(self: &Rc<Self>) {
        self.state.borrow_mut().journaling.barred = true;
        let has_some = {
            let state = self.state.borrow();
            state.journaling.since.is_some() || state.journaling.in_flight
        };
        if has_some {
            self.settle_in_segments().await;
        }
    }

    pub fn unbar_journal(&self) {
        self.state.borrow_mut().journaling.barred = false;
    }

    /// Makes an entry durable that settles all earlier ones, if the journal still has any.
    pub async fn fence_in_journal(self: &Rc<Self>, kind: EntryKind) {
        let Some(journal) = self.storage.journal() else { return };
        let last = self.state.borrow().journaling.last;
        if last == 0 || !journal.holds(last) {
            return;
        }
        let (end, segment, size) = {
            let state = self.state.borrow();
            (state.end, state.active.base_offset, state.active.size)
        };
        let head = EntryHead {
            kind,
            segment_base: segment,
            position: size,
            base_offset: end,
            end_offset: end,
            ..self.entry_head()
        };
        let sequence = journal.fence(head).await;
        self.state.borrow_mut().journaling.last = sequence;
        runtime::reached("journal: fenced");
    }

    /// Tells the journal what the log holds now, after a write of either kind.
    pub fn count_for_journal(self: &Rc<Self>, journaled: Option<u64>) {
        let Some(journal) = self.storage.journal() else { return };
        let counted = {
            let state = &mut *self.state.borrow_mut();
            let journaling = &mut state.journaling;
            let bytes = state.tail.journaled_bytes();
            let (before_held_bytes, before_bytes) = (journaling.held_bytes, journaling.bytes);
            let mut counted =
                Counted { before_held_bytes, before_bytes, bytes, ..Counted::default() };
            if let Some(sequence) = journaled {
                journaling.last = sequence;
            }
            if bytes > 0 {
                counted.held_bytes = state.tail.unwritten_cost();
                if journaling.since.is_none() {
                    counted.begins = journaled;
                    journaling.since = journaled;
                }
            } else {
                counted.ends = journaling.since.take();
                if counted.ends.is_none() {
                    return;
                }
                journaling.destage = false;
            }
            (journaling.held_bytes, journaling.bytes) = (counted.held_bytes, bytes);
            counted
        };
        if counted.bytes == 0 {
            self.destaged.notify_all();
        }
        journal.on_changed(self, counted);
    }
}

impl Journaled {
    /// The record that holds it is on stable storage.
    pub fn on_durable(self, sequence: u64) {
        let log = &self.log;
        {
            let state = &mut *log.state.borrow_mut();
            state.tail.on_journaled(self.segment, self.to);
            state.journaling.in_flight = false;
            assert!(state.committed < self.end_offset && self.end_offset <= state.end);
            (state.committed, state.durable) = (self.end_offset, self.end_offset);
            if state.unchecked_bytes == 0 {
                log.storage.note_written(log);
            }
            state.unchecked_bytes += self.bytes as u64;
            state.assert_ends();
        }
        let stats = log.storage.stats();
        stats.commits.increment();
        stats.committed_bytes.add(self.bytes as u64);
        stats.journaled_commits.increment();
        log.count_for_journal(Some(sequence));
        log.waiters.wake_up_to(self.end_offset);
        log.advanced.notify_all();
        log.maybe_advance_recovery_point();
        log.go_on_committing();
    }
}
