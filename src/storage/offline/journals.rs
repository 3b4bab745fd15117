//! What the journals of a data directory have of logs that were not closed in order.
//!
//! Law: after a crash a log's last batches may be in a journal alone, until the next start brings
//! them into the segment. Whoever looks at the files before is told; whoever would change them is
//! refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use protocol::Uuid;

use super::OfflineError;
use super::access::Access;
use super::fault::{Fault, FaultKind};
use super::log_check::{LogCheck, names_in};
use crate::directory::SegmentFile;
use crate::journal::{
    BadFormat, JOURNAL_DIR_NAME, JournalState, STATE_FILE_NAME, joined, journal_dir,
    journal_file_name, records_of, unsettled,
};

/// Batches that only journals have, by log.
#[derive(Debug, Default)]
pub(super) struct Journals {
    logs: BTreeMap<(Uuid, i32), Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    slot: u32,
    offset: i64,
    bytes: u64,
}

impl Journals {
    pub fn of(data_dir: Option<&Path>) -> Result<Journals, OfflineError> {
        let mut journals = Journals::default();
        let Some(data_dir) = data_dir.filter(|dir| dir.join(JOURNAL_DIR_NAME).is_dir()) else {
            return Ok(journals);
        };
        let mut entries = Vec::new();
        for name in names_in(&data_dir.join(JOURNAL_DIR_NAME))? {
            let Ok(slot) = name.parse() else { continue };
            let dir = journal_dir(data_dir, slot);
            let path = dir.join(STATE_FILE_NAME);
            let state = match JournalState::newest(&read_if_there(&path)?) {
                Ok(state) => state,
                // The next start says which logs that concerns.
                Err(BadFormat::Damaged) => continue,
                Err(BadFormat::Newer { format }) => {
                    return Err(OfflineError::Newer { path, reason: format!("format {format}") });
                }
            };
            let numbers = 0..if state.prewritten { state.files } else { 0 };
            let files = numbers.map(|number| {
                let path = dir.join(journal_file_name(number));
                Ok(records_of(&read_if_there(&path)?, &state, number))
            });
            let files: Result<Vec<_>, OfflineError> = files.collect();
            entries.append(&mut joined(&state, files?).entries);
        }
        for (key, entries) in unsettled(entries) {
            let Some(first) = entries.first() else { continue };
            let bytes = entries.iter().map(|entry| u64::from(entry.head.length)).sum();
            let offset = first.head.base_offset;
            journals.logs.insert(key, Pending { slot: first.slot, offset, bytes });
        }
        Ok(journals)
    }

    /// What is to be said of a log that was not closed in order.
    pub fn fault_of(&self, log: &LogCheck) -> Option<Fault> {
        let identity = log.identity?;
        let pending = *self.logs.get(&(identity.topic_id, identity.partition))?;
        if log.checkpoint.is_some_and(|(_, checkpoint)| checkpoint.clean) {
            return None;
        }
        let (base, position) =
            log.segments.last_key_value().map_or((0, 0), |(base, size)| (*base, *size));
        let Pending { slot, offset, bytes } = pending;
        let file = log.dir.join(SegmentFile::Log.name(base));
        Some(Fault {
            file,
            position,
            offset: Some(offset),
            kind: FaultKind::Journaled { slot, bytes },
        })
    }
}

/// What is to be said before a file of a log is believed to be all there is of it.
pub fn journaled(path: &Path) -> Result<Option<Fault>, OfflineError> {
    let path = path.canonicalize().map_err(OfflineError::io("find", path))?;
    let access = Access::to(&path)?;
    let journals = Journals::of(access.data_dir.as_deref())?;
    let Some(dir) = path.parent().filter(|_| !journals.logs.is_empty()) else { return Ok(None) };
    let log = LogCheck::of(dir, super::VerifyOptions::default())?;
    Ok(journals.fault_of(&log))
}

fn read_if_there(path: &PathBuf) -> Result<Vec<u8>, OfflineError> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(OfflineError::io("read", path)),
    }
}
