//! `log verify`: names every fault of a log, of the quorum's log, or of a whole data directory.

use std::fmt;
use std::fs;
use std::path::Path;

use super::access::Access;
use super::fault::{Fault, FaultKind};
use super::journals::Journals;
use super::log_check::{LogCheck, names_in};
use super::{OfflineError, VerifyOptions};
use crate::checkpoint::CHECKPOINT_FILE_NAME;
use crate::directory::{IDENTITY_FILE_NAME, SegmentFile, parse_log_dir_name};
use crate::entry_log::{ENTRIES_EXTENSION, ScanError, ScannedFile, check_sealed, scan};

/// What was looked at and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    pub logs: u64,
    pub segments: u64,
    pub batches: u64,
    pub records: u64,
    /// Bytes of batches.
    pub bytes: u64,
    pub faults: Vec<Fault>,
}

impl VerifyReport {
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// True when records are damaged or missing, or a start would refuse something.
    pub fn needs_repair(&self) -> bool {
        self.faults.iter().any(|fault| fault.kind.stops_start())
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.faults {
            writeln!(f, "{fault}")?;
        }
        let VerifyReport { logs, segments, batches, records, bytes, faults } = self;
        let faults = faults.len();
        write!(
            f,
            "logs: {logs} segments: {segments} batches: {batches} records: {records} \
             bytes: {bytes} faults: {faults}"
        )
    }
}

/// Looks at a log's directory, at a segment's file (then at its whole log), or at all that is in
/// a data directory.
pub fn verify(path: &Path, options: VerifyOptions) -> Result<VerifyReport, OfflineError> {
    let path = path.canonicalize().map_err(OfflineError::io("find", path))?;
    let access = Access::to(&path)?;
    let journals = Journals::of(access.data_dir.as_deref())?;
    let mut report = VerifyReport::default();
    if path.is_file() {
        let of_segment = path.file_name().and_then(|name| SegmentFile::parse(name.to_str()?));
        let (Some(_), Some(dir)) = (of_segment, path.parent()) else {
            return Err(OfflineError::NotALog(path));
        };
        report.add(LogCheck::of(dir, options)?, &journals);
        return Ok(report);
    }
    let names = names_in(&path)?;
    if is_log(&names) {
        report.add(LogCheck::of(&path, options)?, &journals);
        return Ok(report);
    }
    if is_entry_log(&names) {
        report.faults.extend(check_entry_log(&path, &names)?);
        report.logs += 1;
        return Ok(report);
    }
    for name in names {
        let dir = path.join(&name);
        if !dir.is_dir() {
            continue;
        }
        let inside = names_in(&dir)?;
        if parse_log_dir_name(&name).is_some() && is_log(&inside) {
            report.add(LogCheck::of(&dir, options)?, &journals);
        } else if is_entry_log(&inside) {
            report.faults.extend(check_entry_log(&dir, &inside)?);
            report.logs += 1;
        }
    }
    match report.logs {
        0 => Err(OfflineError::NotALog(path)),
        _ => Ok(report),
    }
}

impl VerifyReport {
    fn add(&mut self, log: LogCheck, journals: &Journals) {
        self.faults.extend(journals.fault_of(&log));
        self.logs += 1;
        self.segments += log.segments.len() as u64;
        self.batches += log.batches;
        self.records += log.records;
        self.bytes += log.bytes;
        self.faults.extend(log.faults);
    }
}

/// Whether these are names of the files of a log.
pub(super) fn is_log(names: &[String]) -> bool {
    names.iter().any(|name| {
        name == CHECKPOINT_FILE_NAME
            || name == IDENTITY_FILE_NAME
            || SegmentFile::parse(name).is_some()
    })
}

fn is_entry_log(names: &[String]) -> bool {
    names.iter().any(|name| sequence_of(name).is_some())
}

/// The number of an entry file.
fn sequence_of(name: &str) -> Option<u64> {
    let (digits, extension) = name.split_once('.')?;
    (extension == ENTRIES_EXTENSION).then(|| digits.parse().ok()).flatten()
}

/// The quorum's files: its entries, its vote and its snapshot.
fn check_entry_log(dir: &Path, names: &[String]) -> Result<Vec<Fault>, OfflineError> {
    let mut faults = Vec::new();
    let mut files = Vec::new();
    for name in names {
        let path = dir.join(name);
        if path.is_dir() || name.ends_with(".tmp") {
            continue;
        }
        let bytes = fs::read(&path).map_err(OfflineError::io("read", &path))?;
        match sequence_of(name) {
            Some(sequence) => files.push(ScannedFile { path, sequence, bytes }),
            None => {
                let kind = check_sealed(&bytes).err().map(FaultKind::Sealed);
                faults.extend(kind.map(|kind| Fault {
                    file: path,
                    position: 0,
                    offset: None,
                    kind,
                }));
            }
        }
    }
    files.sort_by_key(|file| file.sequence);
    // Which entries the snapshot covers is its owner's secret: missing ones are not looked for.
    match scan(&files, i64::MAX as u64) {
        Ok(found) if found.dirty_end > found.end => {
            let kind = FaultKind::Unfinished { bytes: found.dirty_end - found.end };
            let file = files.last().map_or_else(|| dir.to_owned(), |file| file.path.clone());
            faults.push(Fault { file, position: found.end, offset: None, kind });
        }
        Ok(_) => {}
        Err(ScanError::Damaged(damage)) => faults.push(Fault {
            file: damage.path,
            position: damage.position,
            offset: None,
            kind: FaultKind::Entries(damage.kind),
        }),
        Err(ScanError::Newer { path, format }) => {
            return Err(OfflineError::Newer { path, reason: format!("format {format}") });
        }
    }
    Ok(faults)
}
