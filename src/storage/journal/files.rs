//! The files of a slot's journal: made once, written in full, and then used over and over.
//!
//! Law: the state file is there, durably, from before the first log says that the journal may hold
//! something of it, and never goes: a journal whose state is missing is lost, not new. Files are
//! made and thrown away only while the state says that there are none.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use runtime::file::{AlignedBuf, Block, File, FsError, Mode};

use super::format::{BadFormat, JournalState, file_head};
use crate::segment::BLOCK;

/// Folder of the data directory in which each slot has its journal's folder.
pub const JOURNAL_DIR_NAME: &str = "journal";
/// Name of the state file in there.
pub const STATE_FILE_NAME: &str = "state";

/// `<data>/journal/<slot>`
pub fn journal_dir(data_dir: &Path, slot: u32) -> PathBuf {
    data_dir.join(JOURNAL_DIR_NAME).join(slot.to_string())
}

/// `<number, 2 digits>.journal`
pub fn journal_file_name(number: u32) -> String {
    format!("{number:02}.journal")
}

/// The state file, and what it says now.
pub struct StateFile {
    file: File,
    pub state: JournalState,
}

/// Why there is no state to go on from.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(transparent)]
    Io(#[from] FsError),
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    #[error("{} has format {format}, which this program does not know", path.display())]
    Newer { path: PathBuf, format: u8 },
}

impl StateFile {
    /// The state as it was left; none when there never was one.
    pub async fn open(dir: &Path) -> Result<Option<StateFile>, StateError> {
        let path = dir.join(STATE_FILE_NAME);
        let file = match File::open(&path, Mode::DirectSync).await {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let bytes = file.read_at(0, 2 * BLOCK).await?;
        match JournalState::newest(&bytes) {
            Ok(state) => Ok(Some(StateFile { file, state })),
            Err(BadFormat::Damaged) => Err(StateError::Damaged(path)),
            Err(BadFormat::Newer { format }) => Err(StateError::Newer { path, format }),
        }
    }

    /// A new journal without files, durable with its name. What is left of a state that nobody
    /// could read is overwritten.
    pub async fn create(dir: &Path, slot: u32) -> Result<StateFile, FsError> {
        runtime::fs::create_dir_all(dir).await?;
        let path = dir.join(STATE_FILE_NAME);
        let file = match File::create_new(&path, Mode::DirectSync).await {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                File::open(&path, Mode::DirectSync).await?
            }
            created => created?,
        };
        file.preallocate(2 * BLOCK as u64).await?;
        let state = JournalState {
            write: 0,
            salt: runtime::time::random_u64(),
            slot,
            files: 0,
            file_bytes: 0,
            low_water: 1,
            prewritten: false,
        };
        let mut state = StateFile { file, state };
        state.change(|_| {}).await?;
        sync_names(dir).await?;
        runtime::reached("journal: state made");
        Ok(state)
    }

    /// Writes both copies, one after the other; what is new holds when this returns.
    pub async fn change(&mut self, change: impl FnOnce(&mut JournalState)) -> Result<(), FsError> {
        change(&mut self.state);
        for at in [0, BLOCK as u64] {
            self.state.write += 1;
            let encoded = self.state.encode();
            let mut block = AlignedBuf::with_room(BLOCK);
            block.put(&encoded);
            block.zero_to(BLOCK);
            self.file.write_at(at, block.freeze()).await?;
            runtime::reached("journal: one copy of the state written");
        }
        Ok(())
    }
}

/// Makes the name of the journal's folder durable, and what is in it.
pub async fn sync_names(dir: &Path) -> Result<(), FsError> {
    for named in dir.ancestors().take(3) {
        runtime::fs::sync_dir(named).await?;
    }
    Ok(())
}

/// How many files of which length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub files: u32,
    pub file_bytes: u64,
}

impl Shape {
    /// Of a journal that takes `bytes` of disk in all.
    pub fn of(bytes: u64) -> Shape {
        let file_bytes = bytes / u64::from(FILES) / BLOCK as u64 * BLOCK as u64;
        Shape { files: FILES, file_bytes: file_bytes.max(FILE_BYTES_MIN) }
    }

    pub fn bytes(&self) -> u64 {
        u64::from(self.files) * self.file_bytes
    }
}

/// Takes the disk space of a journal of this shape, or none of it. Nothing is said in the state
/// before all of it is there; nothing that counts may be in the journal.
pub async fn allocate(dir: &Path, state: &mut StateFile, shape: Shape) -> Result<(), FsError> {
    let JournalState { files, file_bytes, .. } = state.state;
    if (Shape { files, file_bytes }) == shape {
        return Ok(());
    }
    remove(dir, state).await?;
    // Who else needs room shall not find that a journal has just tried how much there is.
    if runtime::fs::info(dir).await?.free < shape.bytes() {
        return Err(FsError::new("allocate", dir, std::io::ErrorKind::StorageFull.into()));
    }
    let allocated = make_files(dir, shape).await;
    if allocated.as_ref().is_err_and(FsError::is_full) {
        remove(dir, state).await?;
    }
    allocated?;
    runtime::reached("journal: files allocated");
    let change = |state: &mut JournalState| {
        (state.files, state.file_bytes) = (shape.files, shape.file_bytes);
    };
    state.change(change).await
}

async fn make_files(dir: &Path, shape: Shape) -> Result<(), FsError> {
    for number in 0..shape.files {
        let path = dir.join(journal_file_name(number));
        let file = match File::create_new(&path, Mode::Direct).await {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                File::open(&path, Mode::Direct).await?
            }
            created => created?,
        };
        file.preallocate(shape.file_bytes).await?;
        file.close().await?;
    }
    runtime::fs::sync_dir(dir).await
}

/// Gives the disk space of the files back. Nothing that counts may be in them.
pub async fn remove(dir: &Path, state: &mut StateFile) -> Result<(), FsError> {
    let nothing = |state: &mut JournalState| {
        (state.files, state.file_bytes, state.prewritten) = (0, 0, false);
    };
    if state.state.files > 0 {
        state.change(nothing).await?;
    }
    for entry in runtime::fs::list(dir).await? {
        if entry.name.ends_with(".journal") {
            runtime::fs::remove_file(dir.join(&entry.name)).await?;
        }
    }
    Ok(())
}

/// Writes every byte of the files, durably: from then on an overwrite changes nothing in the file
/// system. The state has still to be told.
pub async fn prewrite(dir: &Path, state: &JournalState) -> Result<(), FsError> {
    let zeros = AlignedBuf::zeroed(PREWRITE_BYTES).freeze();
    for number in 0..state.files {
        let file = File::open(dir.join(journal_file_name(number)), Mode::Direct).await?;
        let mut at = BLOCK as u64;
        while at < state.file_bytes {
            let bytes = (state.file_bytes - at).min(PREWRITE_BYTES as u64);
            let block = match bytes as usize {
                PREWRITE_BYTES => zeros.clone(),
                less => AlignedBuf::zeroed(less).freeze(),
            };
            file.write_at(at, block).await?;
            at += bytes;
        }
        file.write_at(0, head_block(state.salt, number)).await?;
        file.sync().await?;
        file.close().await?;
        runtime::reached("journal: one file written in full");
    }
    Ok(())
}

/// The files, ready to be written to.
pub async fn open(dir: &Path, state: &JournalState) -> Result<Vec<Rc<File>>, FsError> {
    let mut files = Vec::with_capacity(state.files as usize);
    for number in 0..state.files {
        let path = dir.join(journal_file_name(number));
        files.push(Rc::new(File::open(path, Mode::DirectSync).await?));
    }
    Ok(files)
}

fn head_block(salt: u64, number: u32) -> Block {
    let mut block = AlignedBuf::with_room(BLOCK);
    block.put(&file_head(salt, number));
    block.zero_to(BLOCK);
    block.freeze()
}

/// Enough that recycling one leaves most of the journal to write to.
const FILES: u32 = 8;
const FILE_BYTES_MIN: u64 = 8 * BLOCK as u64;
/// The rest of the slot gets its turn between two such writes.
const PREWRITE_BYTES: usize = 256 << 10;
