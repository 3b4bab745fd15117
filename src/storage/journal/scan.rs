//! What the journals of a host hold that counts.
//!
//! Law: records count from the low water on, in the order of their sequence numbers, without a
//! gap, over all files. The last one may be torn, and was acknowledged to nobody then. Anything
//! else that is missing or bad is damage: nobody can say any more of which logs it was.

use std::path::Path;

use runtime::file::FsError;

use super::files::{JOURNAL_DIR_NAME, STATE_FILE_NAME, journal_dir, journal_file_name};
use super::format::{BadFormat, EntryHead, HEAD_BYTES, JournalState, Place, RecordView, file_head};
use crate::segment::BLOCK;

/// An entry that counts.
#[derive(Clone, Debug)]
pub struct FoundEntry {
    pub head: EntryHead,
    pub batches: Vec<u8>,
    pub slot: u32,
    pub sequence: u64,
}

/// One slot's journal as a crash left it.
#[derive(Debug, Default)]
pub struct Scanned {
    /// Greater than that of any record that was ever begun.
    pub next_sequence: u64,
    /// In the order in which they were written.
    pub entries: Vec<FoundEntry>,
    /// What is wrong with it: entries may be missing.
    pub damage: Option<String>,
}

/// The records of one file that count.
#[derive(Debug, Default)]
pub struct FileRecords {
    /// Sequence numbers of the first and the last one.
    pub span: Option<(u64, u64)>,
    pub entries: Vec<FoundEntry>,
    pub damage: Option<String>,
}

/// The slots that have a folder for their journal.
pub async fn slots(data_dir: &Path) -> Result<Vec<u32>, FsError> {
    let entries = match runtime::fs::list(data_dir.join(JOURNAL_DIR_NAME)).await {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut slots: Vec<u32> =
        entries.iter().filter_map(|entry| entry.name.parse::<u32>().ok()).collect();
    slots.sort_unstable();
    Ok(slots)
}

/// Reads a slot's journal. Changes nothing. None when a creation was cut short before the journal
/// was used.
pub async fn scan(data_dir: &Path, slot: u32) -> Result<Scanned, ScanError> {
    let dir = journal_dir(data_dir, slot);
    let path = dir.join(STATE_FILE_NAME);
    let lost = |damage: String| Scanned { damage: Some(damage), ..Scanned::default() };
    let state = match runtime::fs::read(&path).await {
        Ok(bytes) => match JournalState::newest(&bytes) {
            Ok(state) => state,
            Err(BadFormat::Damaged) => return Ok(lost(format!("{} is damaged", path.display()))),
            Err(BadFormat::Newer { format }) => {
                return Err(ScanError::Newer { path: path.display().to_string(), format });
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(lost(format!("{} is missing", path.display())));
        }
        Err(error) => return Err(error.into()),
    };
    let mut files = Vec::new();
    for number in 0..if state.prewritten { state.files } else { 0 } {
        let path = dir.join(journal_file_name(number));
        let records = match runtime::fs::read(&path).await {
            Ok(bytes) => records_of(&bytes, &state, number),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                FileRecords { damage: Some("is missing".to_owned()), ..FileRecords::default() }
            }
            Err(error) => return Err(error.into()),
        };
        files.push(FileRecords {
            damage: records.damage.map(|damage| format!("{} {damage}", path.display())),
            ..records
        });
    }
    Ok(joined(&state, files))
}

/// Why a journal could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error(transparent)]
    Io(#[from] FsError),
    #[error("{path} has format {format}, which this program does not know")]
    Newer { path: String, format: u8 },
}

/// The records of a file's bytes.
pub fn records_of(file: &[u8], state: &JournalState, number: u32) -> FileRecords {
    let mut found = FileRecords::default();
    if file.len() as u64 != state.file_bytes {
        found.damage = Some(format!("is {} bytes long, not {}", file.len(), state.file_bytes));
        return found;
    }
    if file[..HEAD_BYTES] != file_head(state.salt, number) {
        found.damage = Some("does not begin as a file of this journal".to_owned());
        return found;
    }
    let record_at = |position: usize| {
        let place = Place { salt: state.salt, file: number, position: position as u64 };
        RecordView::at(&file[position..], place)
    };
    let mut position = BLOCK;
    while position < file.len()
        && let Some(record) = record_at(position)
        && match found.span {
            None => record.sequence >= state.low_water,
            Some((_, last)) => record.sequence == last + 1,
        }
    {
        let Some(entries) = record.entries() else { break };
        let first = found.span.map_or(record.sequence, |(first, _)| first);
        found.span = Some((first, record.sequence));
        let (slot, sequence) = (state.slot, record.sequence);
        found.entries.extend(entries.into_iter().map(|(head, batches)| FoundEntry {
            head,
            batches: batches.to_vec(),
            slot,
            sequence,
        }));
        position += record.blocks();
    }
    let expected = found.span.map_or(state.low_water, |(_, last)| last + 1);
    let later = (position..file.len())
        .step_by(BLOCK)
        .find(|at| record_at(*at).is_some_and(|record| record.sequence >= expected));
    if let Some(later) = later {
        found.damage = Some(format!(
            "is damaged at position {position}: position {later} holds a later record"
        ));
    }
    found
}

/// All files of a journal together.
pub fn joined(state: &JournalState, mut files: Vec<FileRecords>) -> Scanned {
    let mut damage = files.iter().find_map(|file| file.damage.clone());
    files.retain(|file| file.span.is_some());
    files.sort_by_key(|file| file.span);
    let mut expected = state.low_water;
    for (first, last) in files.iter().filter_map(|file| file.span) {
        if first != expected && damage.is_none() {
            damage = Some(format!("records {expected} to {} are missing", first - 1));
        }
        expected = last + 1;
    }
    Scanned {
        // One more may have been begun, and some of it may be in its place.
        next_sequence: expected + 1,
        entries: files.into_iter().flat_map(|file| file.entries).collect(),
        damage,
    }
}
