//! What the journals of a host hold that counts.
//!
//! Law: records count from the low water on, in the order of their sequence numbers, without a
//! gap, over all files. The last one may be torn, and was acknowledged to nobody then. Anything
//! else that is missing or bad is damage: nobody can say any more of which logs it was. Files are
//! looked through a window at a time: however large they are, little of them is in memory.

use std::path::{Path, PathBuf};

use runtime::file::{File, FsError, Mode};

use super::files::{JOURNAL_DIR_NAME, STATE_FILE_NAME, journal_dir, journal_file_name};
use super::format::{
    BadFormat, EntryHead, HEAD_BYTES, JournalState, Place, RECORD_BYTES_MAX, RecordView, file_head,
};
use crate::segment::BLOCK;

/// An entry, as it is met.
pub struct Seen<'a> {
    pub head: EntryHead,
    pub batches: &'a [u8],
    pub order: Order,
}

/// In this order the entries of a log count, whichever journals they are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    pub ownership: u64,
    pub slot: u32,
    pub sequence: u64,
    /// Within the record.
    pub number: u32,
}

/// Who is shown the entries.
pub type Each<'a> = dyn FnMut(&Seen<'_>) + 'a;

/// One slot's journal as a crash left it.
#[derive(Debug, Default)]
pub struct Scanned {
    /// Greater than that of any record that was ever begun.
    pub next_sequence: u64,
    /// What is wrong with it: entries may be missing.
    pub damage: Option<String>,
    state: Option<JournalState>,
    /// Files with records that count, in the order in which they were written.
    files: Vec<FileRecords>,
}

/// The records of one file that count.
#[derive(Debug)]
pub struct FileRecords {
    number: u32,
    /// Sequence numbers of the first and the last one.
    span: Option<(u64, u64)>,
    damage: Option<String>,
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

/// Looks through a slot's journal, its files in any order. Changes nothing.
pub async fn scan(data_dir: &Path, slot: u32, each: &mut Each<'_>) -> Result<Scanned, ScanError> {
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
        let found = scan_file(&path, &state, number, each).await?;
        let damage = found.damage.map(|damage| format!("{} {damage}", path.display()));
        files.push(FileRecords { damage, ..found });
    }
    Ok(joined(state, files))
}

async fn scan_file(
    path: &Path,
    state: &JournalState,
    number: u32,
    each: &mut Each<'_>,
) -> Result<FileRecords, FsError> {
    let file = match File::open(path, Mode::Buffered).await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(FileRecords { number, span: None, damage: Some("is missing".to_owned()) });
        }
        opened => opened?,
    };
    let mut scan = FileScan::new(state, number, file.size().await?);
    while let Some((at, bytes)) = scan.window() {
        scan.look_at(&file.read_at(at, bytes).await?, each);
    }
    file.close().await?;
    Ok(scan.found)
}

/// Why a journal could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error(transparent)]
    Io(#[from] FsError),
    #[error("{path} has format {format}, which this program does not know")]
    Newer { path: String, format: u8 },
    #[error("{} is not what it was a moment ago", .0.display())]
    Changed(PathBuf),
}

/// Shows the entries of a file's bytes.
pub fn look_through(file: &[u8], state: &JournalState, number: u32, each: &mut Each<'_>) {
    let mut scan = FileScan::new(state, number, file.len() as u64);
    while let Some((at, bytes)) = scan.window() {
        scan.look_at(&file[at as usize..][..bytes], each);
    }
}

/// All files of a journal together.
fn joined(state: JournalState, mut files: Vec<FileRecords>) -> Scanned {
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
    // One more may have been begun, and some of it may be in its place.
    Scanned { next_sequence: expected + 1, damage, state: Some(state), files }
}

/// Looks through one file from front to back.
struct FileScan {
    state: JournalState,
    found: FileRecords,
    /// Where the next window begins.
    position: u64,
    /// Where the records that count end, once that is known.
    end: Option<u64>,
}

impl FileScan {
    fn new(state: &JournalState, number: u32, length: u64) -> FileScan {
        let damage = (length != state.file_bytes)
            .then(|| format!("is {length} bytes long, not {}", state.file_bytes));
        let found = FileRecords { number, span: None, damage };
        FileScan { state: *state, found, position: 0, end: None }
    }

    /// Position and bytes of what is to be looked at next; none when there is nothing more to be
    /// found out.
    fn window(&self) -> Option<(u64, usize)> {
        let rest = self.state.file_bytes.saturating_sub(self.position);
        let bytes = rest.min(WINDOW_BYTES as u64) as usize;
        (bytes > 0 && self.found.damage.is_none()).then_some((self.position, bytes))
    }

    fn look_at(&mut self, window: &[u8], each: &mut Each<'_>) {
        let start = self.position;
        let mut at = 0;
        if start == 0 {
            let head = file_head(self.state.salt, self.found.number);
            if window.get(..HEAD_BYTES) != Some(&head[..]) {
                self.found.damage = Some("does not begin as a file of this journal".to_owned());
                return;
            }
            at = BLOCK;
        }
        let ends_here = start + window.len() as u64 == self.state.file_bytes;
        let whole = if ends_here { 1 } else { RECORD_BYTES_MAX };
        while at + whole <= window.len() && self.found.damage.is_none() {
            at += self.step(start + at as u64, &window[at..], each);
        }
        if at < BLOCK || window.is_empty() {
            self.found.damage = Some(format!("ends at position {start} while it is read"));
        }
        self.position = start + at as u64;
    }

    /// Looks at one place where a record may begin. Returns how far it is to the next one.
    fn step(&mut self, position: u64, bytes: &[u8], each: &mut Each<'_>) -> usize {
        let place = Place { salt: self.state.salt, file: self.found.number, position };
        let record = RecordView::at(bytes, place);
        if self.end.is_none() {
            if let Some(record) = record.filter(|record| self.continues(record.sequence))
                && let Some(entries) = record.entries()
            {
                let first = self.found.span.map_or(record.sequence, |(first, _)| first);
                self.found.span = Some((first, record.sequence));
                let (slot, sequence) = (self.state.slot, record.sequence);
                for (number, (head, batches)) in (0..).zip(entries) {
                    let order = Order { ownership: head.ownership, slot, sequence, number };
                    each(&Seen { head, batches, order });
                }
                return record.blocks();
            }
            self.end = Some(position);
        }
        let expected = self.found.span.map_or(self.state.low_water, |(_, last)| last + 1);
        if record.is_some_and(|record| record.sequence >= expected) {
            let end = self.end.unwrap_or(position);
            self.found.damage = Some(format!(
                "is damaged at position {end}: position {position} holds a later record"
            ));
        }
        BLOCK
    }

    fn continues(&self, sequence: u64) -> bool {
        match self.found.span {
            None => sequence >= self.state.low_water,
            Some((_, last)) => sequence == last + 1,
        }
    }
}

impl Scanned {
    /// Begins to read what counts once more, in the order in which it was written.
    pub fn read<'a>(&'a self, data_dir: &Path, slot: u32) -> Reading<'a> {
        Reading { dir: journal_dir(data_dir, slot), journal: self, next: 0, current: None }
    }
}

/// A journal that is read once more.
pub struct Reading<'a> {
    dir: PathBuf,
    journal: &'a Scanned,
    /// Which of its files is next.
    next: usize,
    current: Option<(File, FileScan)>,
}

impl Reading<'_> {
    /// Reads on; false when there is nothing more.
    pub async fn more(&mut self, each: &mut Each<'_>) -> Result<bool, ScanError> {
        loop {
            if let Some((file, scan)) = &mut self.current {
                if scan.end.is_none()
                    && let Some((at, bytes)) = scan.window()
                {
                    scan.look_at(&file.read_at(at, bytes).await?, each);
                    return Ok(true);
                }
                self.finish_file().await?;
            }
            let files = self.journal.files.get(self.next);
            let (Some(state), Some(records)) = (self.journal.state, files) else {
                return Ok(false);
            };
            self.next += 1;
            let path = self.dir.join(journal_file_name(records.number));
            let file = File::open(&path, Mode::Buffered).await?;
            let scan = FileScan::new(&state, records.number, file.size().await?);
            self.current = Some((file, scan));
        }
    }

    /// What was found the first time was found again: nothing of it may be left out.
    async fn finish_file(&mut self) -> Result<(), ScanError> {
        let Some((file, scan)) = self.current.take() else { return Ok(()) };
        let before = &self.journal.files[self.next - 1];
        if scan.found.span != before.span {
            return Err(ScanError::Changed(file.path().to_path_buf()));
        }
        Ok(file.close().await?)
    }
}

/// Enough for several records of the largest size.
const WINDOW_BYTES: usize = 4 << 20;
const _: () = assert!(WINDOW_BYTES >= 2 * RECORD_BYTES_MAX && RECORD_BYTES_MAX > BLOCK);
