//! What has to be on disk before the first byte of an append.
//!
//! Law: before a log that was opened changes, its checkpoint stops saying that it was closed in
//! order, and what lies behind its end is durably gone. Space is allocated, and the new length
//! durable, before a batch is placed in it: running out of space is an answer to an append, never
//! a failed write.

use std::rc::Rc;

use protocol::batch::BatchHeader;
use runtime::file::{File, FsError};

use super::{LogInner, State};
use crate::background;
use crate::checkpoint::Checkpoint;
use crate::directory::SegmentFile;
use crate::errors::AppendError;
use crate::open_files::FileRole;
use crate::segment::{BLOCK, RollsFrom, SEGMENT_BYTES_MAX, allocation_margin, allocation_target};

impl LogInner {
    /// Makes the files ready for the first append since the log was opened or truncated. The
    /// caller holds the turn.
    pub async fn maybe_prepare(self: &Rc<Self>, now_ms: i64) -> Result<(), AppendError> {
        if self.state.borrow().prepared {
            return Ok(());
        }
        let (clean, exists, stale, base, size) = {
            let state = self.state.borrow();
            let active = &state.active;
            let stale = state.stale_behind_end;
            (state.checkpoint.clean, active.exists, stale, active.base_offset, active.size)
        };
        // A killed process may have left names here that only the kernel knows: of a log that
        // looks created, of a segment without batches.
        if let Err(error) = self.sync_names().await {
            self.abort(&error.path.clone(), &error);
        }
        let journal = self.journal_to_name();
        if clean || self.state.borrow().checkpoint.journal != journal {
            let change = |checkpoint: &mut Checkpoint| {
                (checkpoint.clean, checkpoint.journal) = (false, journal);
            };
            self.change_checkpoint(change).await;
        } else if let Err(error) = self.sync_checkpoint().await {
            // That it was not closed in order may be known to the kernel alone as well.
            self.abort(&error.path.clone(), &error);
        }
        if exists && stale {
            let file = self.file_for_writing(base).await?;
            // Durable when it returns; what is allocated behind it later reads as zeros.
            if let Err(error) = file.truncate(size).await {
                self.abort(file.path(), &error);
            }
            let state = &mut *self.state.borrow_mut();
            state.active.allocated = size;
            state.stale_behind_end = false;
        }
        self.ensure_active_index().await?;
        if !exists {
            let allocated = self.create_segment_file(base).await?;
            let state = &mut *self.state.borrow_mut();
            state.active.exists = true;
            state.active.allocated = allocated;
        }
        let rolls_from = self.read_rolls_from(now_ms).await?;
        let state = &mut *self.state.borrow_mut();
        state.active.rolls_from = rolls_from;
        state.prepared = true;
        Ok(())
    }

    /// Makes the log's directory and the names in it durable.
    pub async fn sync_names(&self) -> Result<(), FsError> {
        let dir = self.dir.borrow().clone();
        runtime::fs::sync_dir(dir).await?;
        runtime::fs::sync_dir(self.storage.data_dir()).await
    }

    /// What the age of the active segment counts from; after a start its first batch says.
    async fn read_rolls_from(&self, now_ms: i64) -> Result<RollsFrom, FsError> {
        let (base, size) = {
            let state = self.state.borrow();
            match state.active.rolls_from {
                RollsFrom::Unread if state.active.size > 0 => {
                    (state.active.base_offset, state.active.size)
                }
                RollsFrom::Unread => return Ok(RollsFrom::Created(now_ms)),
                known => return Ok(known),
            }
        };
        let file = self.file_for_reading(base).await?;
        let head = file.read_at(0, (size as usize).min(BLOCK)).await?;
        Ok(match BatchHeader::parse_prefix(&head) {
            Ok(header) if header.max_timestamp >= 0 => RollsFrom::FirstBatch(header.max_timestamp),
            _ => RollsFrom::Created(now_ms),
        })
    }

    /// Creates the file of the segment that begins at `base`, with its first space, durably.
    pub async fn create_segment_file(self: &Rc<Self>, base: i64) -> Result<u64, AppendError> {
        let path = self.segment_path(base, SegmentFile::Log);
        let mode = self.write_mode();
        let created = match File::create_new(&path, mode).await {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                // Left by a creation that got no further.
                let file = File::open(&path, mode).await;
                match file {
                    Ok(file) => file.truncate(0).await.map(|()| file),
                    Err(error) => Err(error),
                }
            }
            created => created,
        };
        let file = created.map_err(|error| self.no_space_or(error))?;
        runtime::reached("segment file: named");
        let options = self.options();
        let segment_bytes = options.segment_bytes.min(SEGMENT_BYTES_MAX);
        let first = allocation_target(0, 0, segment_bytes);
        let wanted = if options.preallocate { segment_bytes } else { first };
        let wanted = wanted.next_multiple_of(BLOCK as u64);
        let allocated = match self.allocate(&file, wanted, first.min(wanted)).await {
            Ok(allocated) => allocated,
            Err(error) => {
                // The log may go on in the segment before: this one must not stand in its middle.
                drop(file);
                if let Err(error) = runtime::fs::remove_file(&path).await {
                    self.abort(&path, &error);
                }
                return Err(error);
            }
        };
        runtime::reached("segment file: allocated");
        let dir = self.dir.borrow().clone();
        if let Err(error) = runtime::fs::sync_dir(&dir).await {
            self.abort(&dir, &error);
        }
        runtime::reached("segment file: durable");
        let key = (self.number, FileRole::Segment(base));
        self.storage.open_files().insert(key, Rc::new(file), mode);
        Ok(allocated)
    }

    /// The active segment's file is at least `needed` bytes long.
    pub async fn ensure_allocated(self: &Rc<Self>, needed: u64) -> Result<(), AppendError> {
        loop {
            let (base, allocated) = {
                let state = self.state.borrow();
                (state.active.base_offset, state.active.allocated)
            };
            if needed <= allocated {
                return Ok(());
            }
            let _allocating = self.allocation_turn.take().await;
            if self.state.borrow().active.allocated != allocated {
                continue;
            }
            let file = self.file_for_writing(base).await?;
            self.grow(&file, base, allocated, needed).await?;
        }
    }

    /// Allocates the next step in the background when most of the last one is used.
    pub fn maybe_allocate_ahead(self: &Rc<Self>, state: &mut State) {
        let active = &state.active;
        let margin = allocation_margin(active.allocated);
        let room = active.allocated.saturating_sub(active.size);
        let segment_bytes = self.options.borrow().segment_bytes;
        if state.allocating || room >= margin || active.allocated >= segment_bytes {
            return;
        }
        state.allocating = true;
        let (log, base) = (Rc::clone(self), active.base_offset);
        background::start(async move {
            log.allocate_ahead(base).await;
            log.state.borrow_mut().allocating = false;
        });
    }

    async fn allocate_ahead(self: &Rc<Self>, base: i64) {
        let _allocating = self.allocation_turn.take().await;
        let (current, allocated, serves) = {
            let state = self.state.borrow();
            (state.active.base_offset, state.active.allocated, state.service.is_ok())
        };
        if current != base || !serves {
            return;
        }
        // Without space the append that needs it gets the error.
        if let Ok(file) = self.file_for_writing(base).await {
            let _ = self.grow(&file, base, allocated, allocated).await;
        }
    }

    async fn grow(
        self: &Rc<Self>,
        file: &File,
        base: i64,
        allocated: u64,
        needed: u64,
    ) -> Result<(), AppendError> {
        let segment_bytes = self.options.borrow().segment_bytes;
        let target = allocation_target(allocated, needed, segment_bytes);
        let got = self.allocate(file, target, needed.next_multiple_of(BLOCK as u64)).await?;
        let state = &mut *self.state.borrow_mut();
        if state.active.base_offset == base {
            state.active.allocated = state.active.allocated.max(got);
        }
        Ok(())
    }

    /// Allocates `wanted` bytes or, when that is too much, `needed`. Returns how many there are.
    async fn allocate(&self, file: &File, wanted: u64, needed: u64) -> Result<u64, AppendError> {
        match file.preallocate(wanted).await {
            Ok(()) => return Ok(wanted),
            Err(error) if error.is_full() => {}
            Err(error) => self.abort(file.path(), &error),
        }
        match file.preallocate(needed).await {
            Ok(()) => Ok(needed),
            Err(error) if error.is_full() => Err(self.no_space_or(error)),
            Err(error) => self.abort(file.path(), &error),
        }
    }

    fn no_space_or(&self, error: FsError) -> AppendError {
        if !error.is_full() {
            return AppendError::Io(error);
        }
        self.storage.stats().no_space.increment();
        AppendError::NoSpace { topic: self.topic.clone(), partition: self.partition }
    }
}
