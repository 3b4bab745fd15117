//! What the journals of a data directory have of logs that were not closed in order.
//!
//! Law: after a crash a log's last batches may be in a journal alone, until the next start brings
//! them into the segment. Whoever looks at the files before is told; whoever would change them is
//! refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::OfflineError;
use super::access::Access;
use super::fault::{Fault, FaultKind};
use super::log_check::{LogCheck, names_in};
use crate::directory::SegmentFile;
use crate::journal::{
    BadFormat, JOURNAL_DIR_NAME, JournalState, LogKey, Order, Pending, STATE_FILE_NAME, Seen,
    journal_dir, journal_file_name, look_through,
};

/// Batches that only journals have, by log.
#[derive(Debug, Default)]
pub(super) struct Journals {
    logs: BTreeMap<LogKey, Share>,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    /// The first of its entries, and its offset.
    first: Order,
    offset: i64,
    bytes: u64,
}

impl Journals {
    pub fn of(data_dir: Option<&Path>) -> Result<Journals, OfflineError> {
        let mut journals = Journals::default();
        let Some(data_dir) = data_dir.filter(|dir| dir.join(JOURNAL_DIR_NAME).is_dir()) else {
            return Ok(journals);
        };
        let mut pending = Pending::default();
        for_each_entry(data_dir, &mut |entry| pending.note(entry))?;
        for_each_entry(data_dir, &mut |entry| {
            if pending.turn_of(entry).is_some() {
                let (first, offset) = (entry.order, entry.head.base_offset);
                let new = Share { first, offset, bytes: 0 };
                let share = journals.logs.entry(entry.key()).or_insert(new);
                if first < share.first {
                    (share.first, share.offset) = (first, offset);
                }
                share.bytes += u64::from(entry.head.length);
            }
        })?;
        Ok(journals)
    }

    /// What is to be said of a log that was not closed in order.
    pub fn fault_of(&self, log: &LogCheck) -> Option<Fault> {
        let identity = log.identity?;
        let share = *self.logs.get(&(identity.topic_id, identity.partition))?;
        if log.checkpoint.is_some_and(|(_, checkpoint)| checkpoint.clean) {
            return None;
        }
        let (base, position) =
            log.segments.last_key_value().map_or((0, 0), |(base, size)| (*base, *size));
        let Share { first, offset, bytes } = share;
        let file = log.dir.join(SegmentFile::Log.name(base));
        Some(Fault {
            file,
            position,
            offset: Some(offset),
            kind: FaultKind::Journaled { slot: first.slot, bytes },
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

/// Shows what all journals of the directory hold, a file at a time.
fn for_each_entry(data_dir: &Path, each: &mut dyn FnMut(&Seen<'_>)) -> Result<(), OfflineError> {
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
        for number in 0..if state.prewritten { state.files } else { 0 } {
            let path = dir.join(journal_file_name(number));
            look_through(&read_if_there(&path)?, &state, number, each);
        }
    }
    Ok(())
}

fn read_if_there(path: &PathBuf) -> Result<Vec<u8>, OfflineError> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(OfflineError::io("read", path)),
    }
}
