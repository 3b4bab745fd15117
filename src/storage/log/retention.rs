//! What leaves a log at its start: by age, by size, on request.
//!
//! Law: the log start never falls, and it is durable before anything below it disappears. Whole
//! segments go, oldest first, and only those that lie below the committed end. The age of a
//! segment is that of its largest timestamp, so one record from the future keeps it, and without
//! any timestamp that of its file (Kafka's rules). Files are renamed at once and removed after
//! `file.delete.delay.ms`.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use runtime::time::sleep;

use super::{Log, LogInner};
use crate::background;
use crate::directory::SegmentFile;
use crate::errors::{DeleteRecordsError, ReadError};
use crate::open_files::FileRole;
use crate::removals::{Going, set_aside};
use crate::segment::Largest;

/// What a retention pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    pub deleted_segments: usize,
    pub deleted_bytes: u64,
    pub log_start_offset: i64,
}

/// What is expired: the segments that end at or before an offset.
#[derive(Clone, Copy)]
struct Expired {
    /// Base offset of the oldest segment that is kept.
    below: i64,
    /// All sealed ones are, and the active one with them.
    active: bool,
}

impl Log {
    /// Deletes what the topic's retention no longer keeps. `now_ms` is the broker's clock.
    pub async fn apply_retention(&self, now_ms: i64) -> Result<Retained, ReadError> {
        let log = &self.inner;
        log.check_service()?;
        let clock_jumped = log.storage.clock_has_jumped(now_ms);
        let exchanges = log.exchanges();
        let by_age =
            if clock_jumped { Ok(Expired::NONE) } else { log.expired_by_age(now_ms).await };
        let by_age = match log.exchanges() == exchanges {
            true => by_age?,
            // Segments went from under it: the next pass sees what there is then.
            false => Expired::NONE,
        };
        let by_size = log.expired_by_size();
        let _turn = log.turn.take().await;
        log.check_service()?;
        let rolls = by_age.active || by_size.active;
        let mut below = by_age.below.max(by_size.below).max(log.state.borrow().log_start);
        if rolls && log.roll_expired(now_ms).await {
            below = log.state.borrow().active.base_offset;
        }
        Ok(log.delete_below(below).await)
    }

    /// Raises the log start to `offset`, which may lie inside a batch, and deletes the segments
    /// below it. At or below the present start nothing changes. Returns the log start.
    pub async fn delete_records(&self, offset: i64) -> Result<i64, DeleteRecordsError> {
        let log = &self.inner;
        let _turn = log.turn.take().await;
        log.check_service()?;
        let (log_start, committed_end) = {
            let state = log.state.borrow();
            (state.log_start, state.committed)
        };
        if offset < 0 || offset > committed_end {
            return Err(DeleteRecordsError::OutOfRange { offset, log_start, committed_end });
        }
        if offset > log_start {
            log.raise_log_start(offset).await;
            log.delete_below(offset).await;
        }
        Ok(self.log_start_offset())
    }
}

impl Expired {
    const NONE: Expired = Expired { below: -1, active: false };
}

impl LogInner {
    async fn expired_by_age(self: &Rc<Self>, now_ms: i64) -> Result<Expired, ReadError> {
        let options = self.options();
        if !options.cleanup_delete || options.retention_ms < 0 {
            return Ok(Expired::NONE);
        }
        let oldest_kept = now_ms.saturating_sub(options.retention_ms);
        let bases: Vec<i64> =
            self.state.borrow().sealed.iter().map(|segment| segment.base_offset).collect();
        for base in bases {
            if self.newest_ms(base).await? >= oldest_kept {
                return Ok(Expired { below: base, active: false });
            }
        }
        let (active, size) = {
            let state = self.state.borrow();
            (state.active.base_offset, state.active.size)
        };
        let below = active;
        let active = size > 0 && self.newest_ms(active).await? < oldest_kept;
        Ok(Expired { below, active })
    }

    /// How new a segment is.
    pub async fn newest_ms(self: &Rc<Self>, base: i64) -> Result<i64, ReadError> {
        if let Largest::Known(largest) = self.largest(base).await? {
            return Ok(largest.timestamp);
        }
        let path = self.segment_path(base, SegmentFile::Log);
        Ok(runtime::fs::modified_ms(path).await?)
    }

    fn expired_by_size(&self) -> Expired {
        let options = self.options.borrow();
        if !options.cleanup_delete || options.retention_bytes < 0 {
            return Expired::NONE;
        }
        let state = self.state.borrow();
        let mut surplus = state.size_bytes().saturating_sub(options.retention_bytes as u64);
        for segment in &state.sealed {
            if surplus < segment.size {
                return Expired { below: segment.base_offset, active: false };
            }
            surplus -= segment.size;
        }
        let active = state.active.size > 0 && surplus >= state.active.size;
        Expired { below: state.active.base_offset, active }
    }

    /// How many sealed segments end at or before `offset`, and where the last of them ends.
    fn ending_by(&self, offset: i64) -> (usize, Option<i64>) {
        let state = self.state.borrow();
        let nexts = state.sealed.iter().skip(1).map(|segment| segment.base_offset);
        let nexts = nexts.chain([state.active.base_offset]).take(state.sealed.len());
        let ending = nexts.take_while(|next| *next <= offset);
        ending.fold((0, None), |(count, _), next| (count + 1, Some(next)))
    }

    /// Everything is expired: the active segment is sealed, so that it can go as well.
    async fn roll_expired(self: &Rc<Self>, now_ms: i64) -> bool {
        let settled = {
            let state = self.state.borrow();
            state.committed == state.end
        };
        settled && self.try_roll(now_ms).await
    }

    /// Deletes the segments that end at or before `below`. The caller holds the turn.
    async fn delete_below(self: &Rc<Self>, below: i64) -> Retained {
        let committed = self.state.borrow().committed;
        let Some(new_start) = self.ending_by(below.min(committed)).1 else {
            return Retained {
                log_start_offset: self.state.borrow().log_start,
                ..Default::default()
            };
        };
        self.raise_log_start(new_start).await;
        self.move_recovery_point_to(new_start).await;
        // A segment is not deleted while it is being finished.
        let _sealing = self.seal_turn.take().await;
        let mut retained = Retained::default();
        // Cleaning may have made one of several meanwhile, which then stays as a whole.
        let (count, _) = self.ending_by(new_start);
        let mut bases = Vec::with_capacity(count);
        {
            let state = &mut *self.state.borrow_mut();
            for segment in state.sealed.drain(..count) {
                retained.deleted_bytes += segment.size;
                bases.push(segment.base_offset);
            }
            state.assert_ends();
            retained.deleted_segments = count;
            retained.log_start_offset = state.log_start;
        }
        for base in &bases {
            self.storage.open_files().forget((self.number, FileRole::Segment(*base)));
            self.storage.memory().windows.forget(self.number, *base, 0);
        }
        self.storage.stats().deleted_segments.add(count as u64);
        self.remove_files_later(bases).await;
        retained
    }

    /// A start replays what producers wrote from the recovery point on, so that has to lie behind
    /// what is deleted. On a full disk it may stay: producers are forgotten at the next start then.
    async fn move_recovery_point_to(self: &Rc<Self>, offset: i64) {
        let lies_before = || self.state.borrow().checkpoint.recovery_point.offset < offset;
        if lies_before() {
            self.finish_sealed().await;
        }
        if lies_before() {
            self.advance_recovery_point(false).await;
        }
    }

    /// The new log start is durable, in both copies of the checkpoint, when this returns.
    async fn raise_log_start(&self, offset: i64) {
        if offset <= self.state.borrow().log_start {
            return;
        }
        for _copy in 0..2 {
            self.change_checkpoint(|checkpoint| checkpoint.log_start_offset = offset).await;
            runtime::reached("log start: one copy raised");
        }
        {
            let state = &mut *self.state.borrow_mut();
            assert!(offset <= state.committed && offset > state.log_start);
            state.log_start = offset;
            if state.epochs.truncate_from_start(offset) {
                state.epochs_saved = false;
            }
        }
        self.advanced.notify_all();
    }

    async fn remove_files_later(self: &Rc<Self>, bases: Vec<i64>) {
        let dir = self.dir.borrow().clone();
        let mut renamed: Vec<PathBuf> = Vec::new();
        for &base in &bases {
            for file in SegmentFile::ALL {
                match set_aside(&dir, &file.name(base)).await {
                    Ok(aside) => renamed.extend(aside),
                    Err(error) => tracing::warn!(%error, "a deleted segment stays for now"),
                }
            }
        }
        // Whoever began to open them before, and has only now, closes them when done.
        for base in &bases {
            self.storage.open_files().forget((self.number, FileRole::Segment(*base)));
        }
        runtime::reached("deleted segments: renamed");
        let delay = self.options.borrow().file_delete_delay_ms.max(0) as u64;
        let log = self.clone();
        background::start(async move {
            sleep(Duration::from_millis(delay)).await;
            // Under its first name, which a power loss could bring back, a file stays whole.
            match runtime::fs::sync_dir(&dir).await {
                Err(error) if error.kind() != ErrorKind::NotFound => log.abort(&dir, &error),
                _ => {}
            }
            log.storage.removals().add(renamed.into_iter().map(Going::File));
        });
    }
}
