//! Moving the recovery point and writing what a restart needs to begin there.
//!
//! Law: the state is captured between two appends, and its checkpoint is written only when
//! everything before the captured end is on stable storage and the derived files (index entries,
//! leader epochs, producer snapshot) say so durably. So a checkpoint never speaks of what a crash
//! could take back, and the derived files that it names are at least as new as it is.

use std::rc::Rc;
use std::time::Duration;

use runtime::file::{AlignedBuf, File, FsError, Mode};
use runtime::time::Instant;

use super::{LogInner, State};
use crate::background;
use crate::checkpoint::{CHECKPOINT_FILE_NAME, Checkpoint, RecoveryPoint};
use crate::directory::SegmentFile;
use crate::epochs::EPOCHS_FILE_NAME;
use crate::errors::{CommitError, Unavailable};
use crate::open_files::FileRole;
use crate::producer::PRODUCERS_FILE_EXTENSION;
use crate::segment::IndexFlushed;

/// Bytes written to a log after which its recovery point moves: what a restart has to scan.
const UNCHECKED_BYTES_MAX: u64 = 16 << 20;

/// A log between two appends.
struct Capture {
    point: RecoveryPoint,
    flushed: IndexFlushed,
    /// What will be in the index files.
    now_flushed: IndexFlushed,
    offset_entries: Vec<u8>,
    time_entries: Vec<u8>,
    epochs: Option<Vec<u8>>,
    producers: Option<Vec<u8>>,
}

impl LogInner {
    /// Moves the recovery point in the background when enough was written since.
    pub fn maybe_advance_recovery_point(self: &Rc<Self>) {
        let state = &mut *self.state.borrow_mut();
        if state.unchecked_bytes < UNCHECKED_BYTES_MAX || state.checkpointing {
            return;
        }
        state.checkpointing = true;
        let log = Rc::clone(self);
        background::start(async move {
            log.advance_recovery_point(false).await;
            log.state.borrow_mut().checkpointing = false;
        });
    }

    /// The recovery point becomes the log's present end, once that is durable. With `clean` the
    /// checkpoint says that the log ends there; nothing may be appended meanwhile then.
    pub async fn advance_recovery_point(self: &Rc<Self>, clean: bool) {
        let _saving = self.save_turn.take().await;
        let capture = {
            let state = &mut *self.state.borrow_mut();
            // A segment that is being finished moves the recovery point when it is.
            let unfinished = state.sealed.iter().any(|segment| !segment.finished);
            if unfinished || (!clean && state.service.is_err()) {
                return;
            }
            self.capture(state)
        };
        if self.wait_until_written_to(capture.point.offset).await.is_err() && !clean {
            return;
        }
        self.destage().await;
        self.sync_relaxed().await;
        if self.state.borrow().durable < capture.point.offset {
            return;
        }
        if let Err(error) = self.save(&capture).await {
            self.on_unsaved(&capture, &error);
            return;
        }
        self.on_saved(&capture);
        runtime::reached("recovery point: derived files saved");
        let incarnation = self.storage.incarnation();
        let unsynced = self.state.borrow().unsynced_records > 0;
        let relaxed = unsynced || !self.options.borrow().is_strict();
        let journal = self.journal_to_name();
        let producers_offset = match capture.producers {
            Some(_) => capture.point.offset,
            None => -1,
        };
        self.change_checkpoint(|checkpoint| {
            checkpoint.clean = clean;
            checkpoint.incarnation = incarnation;
            checkpoint.relaxed = relaxed;
            checkpoint.journal = journal.filter(|_| !clean);
            checkpoint.recovery_point = capture.point;
            checkpoint.producers_offset = producers_offset;
        })
        .await;
        runtime::reached("recovery point: moved");
        self.remove_old_snapshots(capture.point.offset).await;
    }

    /// Moves the recovery point of a log to which nothing was appended for a while. False when
    /// there is nothing (more) to be done for it.
    pub async fn maybe_settle(self: &Rc<Self>, idle: Duration) -> bool {
        {
            let state = self.state.borrow();
            if state.unchecked_bytes == 0 || state.service.is_err() {
                return false;
            }
            let since = |last: Instant| runtime::time::now().since(last);
            if state.last_append.is_some_and(|last| since(last) < idle) {
                return true;
            }
        }
        self.advance_recovery_point(false).await;
        false
    }

    fn capture(&self, state: &mut State) -> Capture {
        state.unchecked_bytes = 0;
        let active = &mut state.active;
        let flushed = active.index_flushed;
        let (mut offset_entries, mut time_entries) = (Vec::new(), Vec::new());
        let mut entries = flushed;
        if let Some(index) = active.index.as_mut() {
            index.seal();
            offset_entries = index.offsets().to_file(flushed.offset_entries);
            time_entries = index.times().to_file(flushed.time_entries);
            entries.offset_entries = index.offsets().len();
            entries.time_entries = index.times().len();
            entries.sums = flushed.sums.and(&offset_entries, &time_entries);
        }
        let point = RecoveryPoint {
            segment_base: active.base_offset,
            position: active.size,
            offset: state.end,
            epoch: state.epochs.latest().map_or(-1, |latest| latest.epoch),
            offset_entries: entries.offset_entries as u32,
            time_entries: entries.time_entries as u32,
            index_sums: entries.sums,
        };
        let epochs = (!state.epochs_saved).then(|| state.epochs.to_file());
        state.epochs_saved = true;
        let producers = (!state.producers.is_empty()).then(|| state.producers.to_file());
        Capture {
            point,
            flushed,
            now_flushed: entries,
            offset_entries,
            time_entries,
            epochs,
            producers,
        }
    }

    fn on_saved(&self, capture: &Capture) {
        let active = &mut self.state.borrow_mut().active;
        if active.base_offset == capture.point.segment_base {
            active.index_flushed = capture.now_flushed;
        }
    }

    /// Without room the recovery point stays where it is: a start reads more then.
    fn on_unsaved(&self, capture: &Capture, error: &FsError) {
        let state = &mut *self.state.borrow_mut();
        state.epochs_saved &= capture.epochs.is_none();
        if error.is_full() {
            tracing::warn!(log = %self.name(), %error, "the recovery point stays where it is");
        } else if state.service != Err(Unavailable::Deleted) {
            self.abort(&error.path, error);
        }
    }

    /// Writes the derived files, durably.
    async fn save(&self, capture: &Capture) -> Result<(), FsError> {
        let base = capture.point.segment_base;
        let IndexFlushed { offset_entries, time_entries, .. } = capture.flushed;
        let index = self.segment_path(base, SegmentFile::OffsetIndex);
        let mut is_new =
            append_entries(&index, offset_entries * 8, &capture.offset_entries).await?;
        let times = self.segment_path(base, SegmentFile::TimeIndex);
        is_new |= append_entries(&times, time_entries * 12, &capture.time_entries).await?;
        if is_new {
            let dir = self.dir.borrow().clone();
            runtime::fs::sync_dir(dir).await?;
        }
        runtime::reached("recovery point: indexes saved");
        if let Some(epochs) = &capture.epochs {
            runtime::fs::write_atomic(self.path(EPOCHS_FILE_NAME), epochs).await?;
        }
        if let Some(producers) = &capture.producers {
            let path = self.path(&snapshot_name(capture.point.offset));
            runtime::fs::write_atomic(path, producers).await?;
        }
        Ok(())
    }

    /// Changes the checkpoint and writes it durably.
    pub async fn change_checkpoint(&self, change: impl FnOnce(&mut Checkpoint)) {
        let _turn = self.checkpoint_turn.take().await;
        let (mut checkpoint, sequence) = {
            let state = self.state.borrow();
            (state.checkpoint, state.checkpoint_sequence + 1)
        };
        change(&mut checkpoint);
        let write = checkpoint.slot_write(sequence);
        let path = self.path(CHECKPOINT_FILE_NAME);
        let mode = self.storage.sync_mode();
        let key = (self.number, FileRole::Checkpoint);
        let written = match self.storage.open_files().get(key, &path, mode).await {
            Ok(file) => file.write_at(write.position, write.block).await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            self.abort(&path, &error);
        }
        runtime::reached("checkpoint written");
        self.storage.stats().checkpoints.increment();
        let state = &mut *self.state.borrow_mut();
        state.checkpoint = checkpoint;
        state.checkpoint_sequence = sequence;
    }

    /// What a killed process was writing is there to be read, but perhaps not durable.
    pub async fn sync_checkpoint(&self) -> Result<(), FsError> {
        let path = self.path(CHECKPOINT_FILE_NAME);
        let mode = self.storage.sync_mode();
        let key = (self.number, FileRole::Checkpoint);
        self.storage.open_files().get(key, &path, mode).await?.sync().await
    }

    /// Everything appended so far is written, or the log has stopped to serve.
    pub async fn wait_until_written(self: &Rc<Self>) {
        let end = self.state.borrow().end;
        let _ = self.wait_until_written_to(end).await;
    }

    async fn wait_until_written_to(self: &Rc<Self>, end: i64) -> Result<(), CommitError> {
        super::Log { inner: Rc::clone(self) }.committed(end).await
    }

    /// Keeps the newest two snapshots: one may be damaged.
    async fn remove_old_snapshots(&self, newest: i64) {
        let dir = self.dir.borrow().clone();
        let Ok(entries) = runtime::fs::list(&dir).await else { return };
        let mut offsets: Vec<i64> =
            entries.iter().filter_map(|entry| parse_snapshot_name(&entry.name)).collect();
        offsets.retain(|offset| *offset < newest);
        offsets.sort_unstable();
        let Some(kept) = offsets.pop() else { return };
        if !offsets.is_empty()
            && let Err(error) = self.remove_snapshots(|offset| offset < kept).await
        {
            if !error.is_full() && !error.was_reading() && self.state.borrow().service.is_ok() {
                self.abort(&error.path.clone(), &error);
            }
            tracing::warn!(%error, "an old producer snapshot stays");
        }
    }

    /// Removes the snapshots at these offsets, durably.
    pub async fn remove_snapshots(&self, goes: impl Fn(i64) -> bool) -> Result<(), FsError> {
        let dir = self.dir.borrow().clone();
        let entries = runtime::fs::list(&dir).await?;
        let mut removed = false;
        for offset in entries.iter().filter_map(|entry| parse_snapshot_name(&entry.name)) {
            if goes(offset) {
                runtime::fs::remove_file(dir.join(snapshot_name(offset))).await?;
                removed = true;
            }
        }
        if removed { runtime::fs::sync_dir(&dir).await } else { Ok(()) }
    }
}

/// `<offset, 20 digits>.producers`
pub fn snapshot_name(offset: i64) -> String {
    format!("{offset:020}.{PRODUCERS_FILE_EXTENSION}")
}

/// The offset of a producer snapshot with this name.
pub fn parse_snapshot_name(name: &str) -> Option<i64> {
    let (digits, extension) = name.split_once('.')?;
    let digits_only = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    (digits_only && extension == PRODUCERS_FILE_EXTENSION).then(|| digits.parse().ok()).flatten()
}

/// Makes `entries` durable at `offset` of an index file. The checkpoint says how many entries
/// count and what their checksum is, so the file itself may be in any state meanwhile. True when
/// the file is new, and so its name not durable.
async fn append_entries(
    path: &std::path::Path,
    offset: usize,
    entries: &[u8],
) -> Result<bool, FsError> {
    if entries.is_empty() {
        return Ok(false);
    }
    let (file, is_new) = match File::open(path, Mode::BufferedSync).await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            (File::create_new(path, Mode::BufferedSync).await?, true)
        }
        opened => (opened?, false),
    };
    let mut buffer = AlignedBuf::zeroed(entries.len());
    buffer[..entries.len()].copy_from_slice(entries);
    file.write_at(offset as u64, buffer.freeze().slice(0..entries.len())).await?;
    file.close().await?;
    Ok(is_new)
}
