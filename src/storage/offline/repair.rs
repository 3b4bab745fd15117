//! `log repair --accept-loss`: makes a damaged log usable again and says what that cost.
//!
//! Law: the log is cut before its first fault that costs records; everything before it stays byte
//! for byte. First the new checkpoint is made durable, which makes the next start read the whole
//! log again; only then does anything go, from the end backwards. A crash in between leaves a log
//! that is still damaged and can be repaired again. The mark of a clean stop goes too: so the next
//! start begins new leader epochs, and no offset is given to another record under an old one.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use protocol::Uuid;

use super::access::{Access, CLEAN_STOP_FILE_NAME};
use super::fault::{Fault, FaultKind};
use super::journals::Journals;
use super::log_check::{LogCheck, names_in};
use super::verify::is_log;
use super::{OfflineError, VerifyOptions};
use crate::checkpoint::{CHECKPOINT_FILE_NAME, Checkpoint, FIELD_BYTES, RecoveryPoint, SLOT_BYTES};
use crate::compaction::CLEANED_TO_FILE_NAME;
use crate::compaction::exchange::EXCHANGE_FILE_NAME;
use crate::directory::{IDENTITY_FILE_NAME, Identity, SegmentFile};
use crate::epochs::EPOCHS_FILE_NAME;
use crate::journal::LEFTOVER_FILE_NAME;
use crate::log::parse_snapshot_name;
use crate::segment::REGISTER_FILE_NAME;

/// What was wrong and what was done about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    pub faults: Vec<Fault>,
    pub cut: Option<CutLog>,
    /// Files that the next start makes again.
    pub removed: Vec<PathBuf>,
    /// The identity was written anew from the checkpoint.
    pub identity_restored: bool,
}

/// Which records are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutLog {
    /// The segment in which the log now ends, and where.
    pub file: PathBuf,
    pub position: u64,
    /// The first offset that is gone; the log ends here.
    pub from: i64,
    /// The last offset that is known to have been there; there may have been more.
    pub to: Option<i64>,
    /// Bytes of segments that went.
    pub bytes: u64,
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "{fault}")?;
        }
        if self.identity_restored {
            writeln!(f, "the identity was written again from the checkpoint")?;
        }
        for path in &self.removed {
            writeln!(f, "removed {}: the next start makes it again", path.display())?;
        }
        let Some(cut) = &self.cut else { return write!(f, "no records were lost") };
        let (file, position) = (cut.file.display(), cut.position);
        writeln!(f, "cut {file} at position {position}, {} bytes went", cut.bytes)?;
        match cut.to {
            Some(to) => {
                write!(f, "lost: offsets {} to {to}, and what followed if anything", cut.from)
            }
            None => write!(f, "lost: what stood at offset {} and behind, if anything", cut.from),
        }
    }
}

/// Repairs the log in `dir`. The caller has asked whether losing records is accepted.
pub fn repair(dir: &Path, options: VerifyOptions) -> Result<RepairReport, OfflineError> {
    let dir = dir.canonicalize().map_err(OfflineError::io("find", dir))?;
    let access = Access::to(&dir)?;
    if !dir.is_dir() || !is_log(&names_in(&dir)?) {
        return Err(OfflineError::NotALog(dir));
    }
    let log = LogCheck::of(&dir, options)?;
    if let Some(fault) = Journals::of(access.data_dir.as_deref())?.fault_of(&log) {
        return Err(OfflineError::Journaled(Box::new(fault)));
    }
    let mut report = RepairReport { faults: log.faults.clone(), ..RepairReport::default() };
    let mends_itself = |fault: &Fault| {
        matches!(fault.kind, FaultKind::Unfinished { .. } | FaultKind::ExchangeUnfinished)
    };
    if report.faults.iter().all(mends_itself) {
        return Ok(report);
    }
    if report.faults.iter().any(|fault| fault.kind == FaultKind::ExchangeUnfinished) {
        return Err(OfflineError::ExchangeUnfinished(dir));
    }
    let identity = identity_of(&log)?;
    if let Some(data_dir) = &access.data_dir {
        remove_if_there(&data_dir.join(CLEAN_STOP_FILE_NAME))?;
        sync_dir(data_dir)?;
    }
    if log.identity != Some(identity) {
        replace(&dir.join(IDENTITY_FILE_NAME), identity.to_file().as_bytes())?;
        report.identity_restored = true;
    }
    let cut = first_loss(&log);
    let end = cut.as_ref().map_or(log.end_offset, |cut| cut.from);
    let incomplete = log.faults.iter().any(|it| matches!(it.kind, FaultKind::Undestaged { .. }));
    write_checkpoint(&log, identity, end, cut.is_some() || incomplete)?;
    remove_derived(&log, &mut report)?;
    if let Some(cut) = &cut {
        remove_from(&log, cut, end)?;
    }
    // Last: until here a start refuses the log.
    remove_if_there(&dir.join(LEFTOVER_FILE_NAME))?;
    sync_dir(&dir)?;
    report.cut = cut;
    Ok(report)
}

/// The checkpoint names topic and partition as well.
fn identity_of(log: &LogCheck) -> Result<Identity, OfflineError> {
    let from_checkpoint = log.checkpoint.map(|(_, checkpoint)| Identity {
        topic_id: Uuid(checkpoint.topic_id),
        partition: checkpoint.partition,
    });
    log.identity.or(from_checkpoint).ok_or_else(|| OfflineError::Nameless(log.dir.clone()))
}

/// Where the log must be cut: before the first fault that costs records. Faults are listed in the
/// order of the log.
fn first_loss(log: &LogCheck) -> Option<CutLog> {
    let first = log.faults.iter().find(|fault| fault.kind.costs_records())?;
    let (file, position, from) = match first.kind {
        // Whatever the file at the gap holds does not follow what is before it.
        FaultKind::OffsetsMissing { from, .. } => (first.file.clone(), 0, from),
        FaultKind::SegmentMissing => {
            let base = log.segments.keys().next().copied().unwrap_or(0);
            (log.dir.join(SegmentFile::Log.name(base)), 0, first.offset.unwrap_or(base))
        }
        _ => (first.file.clone(), first.position, first.offset.unwrap_or(0)),
    };
    let base = base_of(&file);
    let kept: u64 = log.segments.range(..base).map(|(_, size)| *size).sum();
    let known_end = log.checkpoint.map_or(0, |(_, checkpoint)| checkpoint.recovery_point.offset);
    let last = known_end.max(log.end_offset) - 1;
    Some(CutLog {
        file,
        position,
        from,
        to: Some(last).filter(|last| *last >= from),
        bytes: log.bytes.saturating_sub(kept + position),
    })
}

fn base_of(file: &Path) -> i64 {
    let name = file.file_name().and_then(|name| name.to_str());
    name.and_then(SegmentFile::parse).map_or(0, |(base, _)| base)
}

/// A checkpoint that promises nothing, in both slots: the next start reads the whole log.
fn write_checkpoint(
    log: &LogCheck,
    identity: Identity,
    end: i64,
    cut: bool,
) -> Result<(), OfflineError> {
    let known = log.checkpoint.map(|(_, checkpoint)| checkpoint);
    let first = log.segments.keys().next().copied().unwrap_or(end);
    let log_start = known.map_or(first, |known| known.log_start_offset);
    let checkpoint = Checkpoint {
        topic_id: identity.topic_id.0,
        partition: identity.partition,
        clean: false,
        possibly_short: cut || known.is_some_and(|known| known.possibly_short),
        relaxed: known.is_some_and(|known| known.relaxed),
        thinned: known.is_some_and(|known| known.thinned),
        incarnation: known.map_or(0, |known| known.incarnation),
        log_start_offset: log_start.min(end).max(first.min(end)),
        recovery_point: RecoveryPoint::at_start(first.min(end)),
        producers_offset: -1,
        journal: None,
    };
    let sequence = log.checkpoint.map_or(0, |(sequence, _)| sequence);
    let mut file = vec![0; 2 * SLOT_BYTES];
    for sequence in [sequence + 1, sequence + 2] {
        let at = (sequence % 2) as usize * SLOT_BYTES;
        file[at..at + FIELD_BYTES].copy_from_slice(&checkpoint.encode(sequence));
    }
    replace(&log.dir.join(CHECKPOINT_FILE_NAME), &file)
}

/// Everything that batches give back goes: what is left is read again.
fn remove_derived(log: &LogCheck, report: &mut RepairReport) -> Result<(), OfflineError> {
    for name in names_in(&log.dir)? {
        let is_index = matches!(
            SegmentFile::parse(&name),
            Some((_, SegmentFile::OffsetIndex | SegmentFile::TimeIndex))
        );
        // An order that cannot be read goes too, and what it was about.
        let is_list =
            [EPOCHS_FILE_NAME, REGISTER_FILE_NAME, CLEANED_TO_FILE_NAME, EXCHANGE_FILE_NAME]
                .contains(&name.as_str());
        if is_index || is_list || parse_snapshot_name(&name).is_some() {
            let path = log.dir.join(&name);
            remove_if_there(&path)?;
            report.removed.push(path);
        }
    }
    sync_dir(&log.dir)
}

/// Removes the segments behind the cut, newest first, and shortens the one it is in.
fn remove_from(log: &LogCheck, cut: &CutLog, end: i64) -> Result<(), OfflineError> {
    let base = base_of(&cut.file);
    for (later, _) in log.segments.range(base..).rev() {
        if *later == base && cut.position > 0 {
            break;
        }
        remove_if_there(&log.dir.join(SegmentFile::Log.name(*later)))?;
        sync_dir(&log.dir)?;
    }
    if cut.position == 0 {
        return Ok(());
    }
    assert!(end >= base, "a segment is cut behind its base offset");
    let file = OpenOptions::new().write(true).open(&cut.file);
    let file = file.map_err(OfflineError::io("open", &cut.file))?;
    file.set_len(cut.position).map_err(OfflineError::io("cut", &cut.file))?;
    file.sync_all().map_err(OfflineError::io("sync", &cut.file))
}

/// Durably replaces a file.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), OfflineError> {
    let unfinished = path.with_extension("repair.tmp");
    let write = || -> io::Result<()> {
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    write().map_err(OfflineError::io("write", path))?;
    path.parent().map_or(Ok(()), sync_dir)
}

fn remove_if_there(path: &Path) -> Result<(), OfflineError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(OfflineError::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

fn sync_dir(dir: &Path) -> Result<(), OfflineError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(OfflineError::io("sync", dir))
}
