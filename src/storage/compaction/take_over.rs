//! A cleaned segment takes the place of the old ones under a log that is read and written.
//!
//! Law: while the files change hands, from before the first rename until the log knows the new
//! segment, readers of old segments wait; what a reader got from the disk counts only if no
//! exchange began meanwhile (`LogInner::exchanges`). Nothing seals, saves an index or deletes at
//! the same time, and no one cuts or closes the log, because the round has the clean turn.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use runtime::file::{File, FsError, Mode};

use super::exchange::{Exchange, close_order, order, write_register};
use super::new_segment::MadeSegment;
use super::plan::Candidate;
use super::round::CleanError;
use crate::directory::{Identity, SegmentFile};
use crate::log::LogInner;
use crate::open_files::FileRole;
use crate::removals::Going;
use crate::segment::{RegisteredSegment, SealedSegment};

impl LogInner {
    /// Puts `made` in the place of `group`, durably. False when the group is not there any more
    /// as it was.
    pub(super) async fn take_over(
        self: &Rc<Self>,
        group: &[Candidate],
        made: MadeSegment,
    ) -> Result<bool, CleanError> {
        self.mark_thinned().await;
        let _sealing = self.seal_turn.take().await;
        let _registering = self.register_turn.take().await;
        self.check_service()?;
        if !self.is_unchanged(group) {
            return Ok(false);
        }
        let dir = self.dir.borrow().clone();
        let exchange = Exchange {
            identity: Identity { topic_id: self.topic_id, partition: self.partition },
            segment: made.registered,
            replaced: group.iter().map(|segment| segment.base_offset).collect(),
        };
        match order(&dir, &exchange).await {
            Err(error) if error.is_full() => return Err(CleanError::NoSpace),
            ordered => self.or_abort(ordered),
        }
        runtime::reached("exchange: ordered");
        // Its last name goes with the exchange, and its blocks would go at once.
        let first = self.segment_path(exchange.segment.base_offset, SegmentFile::Log);
        let first = File::open(first, Mode::Buffered).await.ok();
        self.begin_exchange(&exchange);
        let renamed = exchange.rename_batches(&dir).await;
        self.or_abort(renamed);
        self.install_exchanged(&exchange, made);
        runtime::reached("exchange: batches renamed");
        let finished = self.finish_exchange(&exchange, &dir).await;
        let old = self.or_abort(finished);
        runtime::reached("exchange: done");
        let unnamed = first.map(Going::Unnamed);
        self.storage.removals().add(unnamed.into_iter().chain(old.into_iter().map(Going::File)));
        Ok(true)
    }

    /// From now on offsets may be missing between batches, and the log knows it for ever. In both
    /// copies of the checkpoint, as one of them may be damaged.
    async fn mark_thinned(&self) {
        if self.state.borrow().checkpoint.thinned {
            return;
        }
        for _copy in 0..2 {
            self.change_checkpoint(|checkpoint| checkpoint.thinned = true).await;
        }
    }

    fn is_unchanged(&self, group: &[Candidate]) -> bool {
        let state = self.state.borrow();
        let first = group[0].base_offset;
        let at = state.sealed.partition_point(|segment| segment.base_offset < first);
        let there = state.sealed.get(at..at + group.len()).unwrap_or_default();
        let same = |(it, wanted): (&SealedSegment, &Candidate)| {
            (it.base_offset, it.size, it.finished) == (wanted.base_offset, wanted.size, true)
        };
        there.len() == group.len() && there.iter().zip(group).all(same)
    }

    fn begin_exchange(&self, exchange: &Exchange) {
        self.exchanges.set(self.exchanges.get() + 1);
        self.exchanging.set(true);
        self.forget_read(exchange);
    }

    /// Nothing that was read from the old files is given out any more.
    fn forget_read(&self, exchange: &Exchange) {
        for base in &exchange.replaced {
            self.storage.memory().windows.forget(self.number, *base, 0);
            self.storage.open_files().forget((self.number, FileRole::Segment(*base)));
        }
    }

    fn install_exchanged(self: &Rc<Self>, exchange: &Exchange, made: MadeSegment) {
        self.forget_read(exchange);
        let RegisteredSegment { base_offset, size, largest, sums } = made.registered;
        let index = Rc::new(made.index);
        let bytes = index.bytes();
        {
            let state = &mut *self.state.borrow_mut();
            let last = exchange.replaced.last().copied().unwrap_or(base_offset);
            self.storage.memory().on_tail_cleared(state.tail.forget_segments_to(last));
            let at = state.sealed.partition_point(|segment| segment.base_offset < base_offset);
            let replaced = at..at + exchange.replaced.len();
            let segment = SealedSegment {
                base_offset,
                size,
                index: Some(index),
                largest,
                sums: Some(sums),
                finished: true,
            };
            state.sealed.splice(replaced, [segment]);
            state.assert_ends();
        }
        self.exchanging.set(false);
        self.exchanged.notify_all();
        self.storage.memory().on_index_loaded(self, base_offset, bytes);
    }

    /// Gives the old segments' files, to be removed.
    async fn finish_exchange(
        &self,
        exchange: &Exchange,
        dir: &Path,
    ) -> Result<Vec<PathBuf>, FsError> {
        let old = exchange.finish_files(dir).await?;
        let register: Vec<RegisteredSegment> = {
            let state = self.state.borrow();
            state.sealed.iter().filter_map(SealedSegment::registered).collect()
        };
        write_register(dir, &register).await?;
        runtime::reached("exchange: register written");
        close_order(dir).await?;
        Ok(old)
    }

    /// Between the order and its end nobody can go back, and a start can go on.
    fn or_abort<T>(&self, done: Result<T, FsError>) -> T {
        done.unwrap_or_else(|error| self.abort(&error.path.clone(), &error))
    }
}
