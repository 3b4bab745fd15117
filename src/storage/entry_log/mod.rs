//! A durable log of opaque entries, for the metadata quorum: little, precious, read once.
//!
//! Law: when `append` has returned, its entries survive everything short of damage, and damage is
//! told apart from a torn write for certain. For that an append is two writes: the entries, and
//! then a short frame that says they are durable. Recovery drops only what no such frame covers;
//! what one covers and cannot be read is refused, naming file and position, and nothing is changed.
//! Files are written front to back, never in place, and are allocated in full before they get
//! their name; old ones go, oldest first, when a snapshot covers them. Spare ones are allocated
//! ahead, so that the log goes on for a while on a full disk.
//!
//! Entries have consecutive indexes. `cut` and an `append` that goes back replace a tail, as Raft
//! needs it. Absent: reading single entries; whoever opens the log keeps them in memory.

mod ballast;
mod frame;
mod open;
mod scan;
mod sealed_file;
mod spare;

pub use ballast::Ballast;
pub use open::{EntryLogOpenError, Loaded, TornWrite};
pub use scan::{EntryLogDamage, EntryLogDamageKind};
pub use sealed_file::{SealedFileError, SnapshotFile, StateFile};

pub(crate) use scan::{ScanError, ScannedFile, scan};
pub(crate) use sealed_file::check_sealed;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use runtime::file::{AlignedBuf, File, FsError, Mode};
use runtime::{fs, time};

use spare::Spares;

use frame::{FRAME_BYTES_MIN, Frame, HEAD_BYTES, Head, Kind};

/// One entry: its index and what the caller wants to find again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub index: u64,
    pub payload: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryLogOptions {
    /// Size of a file, allocated when it is made. An entry that is larger gets a larger file.
    pub file_bytes: u64,
    /// So many files are allocated ahead where there is room.
    pub spare_files: usize,
}

impl Default for EntryLogOptions {
    fn default() -> Self {
        EntryLogOptions { file_bytes: 4 << 20, spare_files: 2 }
    }
}

/// The log, open for appending by its only user. After an error drop it: what the failed write
/// left behind is sorted out by the next `open`.
pub struct EntryLog {
    dir: PathBuf,
    options: EntryLogOptions,
    /// Full files, oldest first.
    full: VecDeque<Head>,
    head: Head,
    file: File,
    spares: Spares,
    /// Where the next frame goes.
    end: u64,
    last_index: u64,
}

impl EntryLog {
    /// A new log in an empty directory, which must exist. The first entry will be `next_index`.
    pub async fn create(
        dir: &Path,
        options: EntryLogOptions,
        next_index: u64,
    ) -> Result<EntryLog, FsError> {
        let head = new_head(&options, 1, next_index, 0);
        let file = create_file(dir, &head, None).await?;
        Ok(EntryLog {
            dir: dir.to_owned(),
            options,
            full: VecDeque::new(),
            head,
            file,
            spares: Spares::find(dir, options.file_bytes).await?,
            end: HEAD_BYTES as u64,
            last_index: next_index - 1,
        })
    }

    pub fn last_index(&self) -> u64 {
        self.last_index
    }

    /// What the log takes on disk.
    pub fn size_bytes(&self) -> u64 {
        self.full.iter().map(|head| head.allocated).sum::<u64>() + self.head.allocated
    }

    /// Bytes of the entries written to the file that is appended to now, and all of the full
    /// ones: what a snapshot could free.
    pub fn used_bytes(&self) -> u64 {
        self.full.iter().map(|head| head.allocated).sum::<u64>() + self.end
    }

    /// Appends entries that follow each other; the first may replace one that is there, and then
    /// everything from it on. Durable when this returns.
    pub async fn append(&mut self, entries: &[Entry]) -> Result<(), FsError> {
        let Some(first) = entries.first() else { return Ok(()) };
        assert!(first.index <= self.last_index + 1, "entry {} leaves a gap", first.index);
        let mut pending = Vec::new();
        if first.index <= self.last_index {
            self.stage(&mut pending, Kind::Cut, first.index, &[]).await?;
            self.last_index = first.index - 1;
        }
        for entry in entries {
            assert!(entry.index == self.last_index + 1, "entry {} leaves a gap", entry.index);
            self.stage(&mut pending, Kind::Entry, entry.index, &entry.payload).await?;
            self.last_index = entry.index;
        }
        self.write(&mut pending).await?;
        self.write_mark().await
    }

    /// Removes the entries from index `from` on. Durable when this returns.
    pub async fn cut(&mut self, from: u64) -> Result<(), FsError> {
        if from > self.last_index {
            return Ok(());
        }
        assert!(from > 0, "there is no entry 0");
        let mut pending = Vec::new();
        self.stage(&mut pending, Kind::Cut, from, &[]).await?;
        self.last_index = from - 1;
        self.write(&mut pending).await?;
        self.write_mark().await
    }

    /// Entries up to `index` are covered by a stored snapshot: files with nothing else go.
    pub async fn compact(&mut self, index: u64) -> Result<(), FsError> {
        while let Some(oldest) = self.full.front() {
            let next = self.full.get(1).unwrap_or(&self.head);
            if next.next_index > index + 1 {
                return Ok(());
            }
            fs::remove_file(path_of(&self.dir, oldest.sequence)).await?;
            // A younger file must not go before an older one, whatever a crash leaves.
            fs::sync_dir(&self.dir).await?;
            self.full.pop_front();
        }
        Ok(())
    }

    /// A stored snapshot is ahead of the whole log: the next entry will be `next_index`.
    pub async fn restart_at(&mut self, next_index: u64) -> Result<(), FsError> {
        assert!(next_index > self.last_index, "a snapshot behind the log needs no restart");
        self.last_index = next_index - 1;
        self.roll(0).await?;
        self.compact(next_index - 1).await
    }

    /// Makes the spare files that are missing, as far as there is room.
    pub async fn keep_spares(&mut self) -> Result<(), FsError> {
        self.spares.make(self.options.spare_files).await
    }

    pub async fn close(self) -> Result<(), FsError> {
        self.file.close().await
    }

    /// Adds a frame to `pending`, which will be written at `end`; begins another file when this
    /// one has no room for it and for the frames that may have to follow it.
    async fn stage(
        &mut self,
        pending: &mut Vec<u8>,
        kind: Kind,
        number: u64,
        payload: &[u8],
    ) -> Result<(), FsError> {
        let frame = Frame { kind, number, payload };
        let used = self.end + pending.len() as u64;
        if used + frame.bytes() as u64 + RESERVED_BYTES > self.head.allocated {
            self.write(pending).await?;
            self.roll(frame.bytes() as u64).await?;
        }
        frame.encode(self.head.salt, self.end, pending);
        Ok(())
    }

    async fn write(&mut self, pending: &mut Vec<u8>) -> Result<(), FsError> {
        if pending.is_empty() {
            return Ok(());
        }
        let end = self.end + pending.len() as u64;
        assert!(end <= self.head.allocated, "a write beyond the allocated end");
        write_at(&self.file, self.end, pending).await?;
        self.end = end;
        pending.clear();
        Ok(())
    }

    /// Says that everything so far is durable.
    async fn write_mark(&mut self) -> Result<(), FsError> {
        let mut pending = Vec::with_capacity(FRAME_BYTES_MIN);
        let mark = Frame { kind: Kind::Durable, number: self.last_index, payload: &[] };
        mark.encode(self.head.salt, self.end, &mut pending);
        self.write(&mut pending).await
    }

    /// Begins the next file and says so in this one, which is then full.
    async fn roll(&mut self, frame_bytes: u64) -> Result<(), FsError> {
        let sequence = self.head.sequence + 1;
        // Entries of an unfinished append are not in the new file: they count as before it.
        let next_index = self.last_index + 1;
        let head = new_head(&self.options, sequence, next_index, frame_bytes);
        let spare = self.spares.take(head.allocated);
        let file = create_file(&self.dir, &head, spare).await?;
        self.write_continuation(sequence).await?;
        let full = std::mem::replace(&mut self.head, head);
        self.full.push_back(full);
        let old = std::mem::replace(&mut self.file, file);
        self.end = HEAD_BYTES as u64;
        old.close().await
    }

    async fn write_continuation(&mut self, sequence: u64) -> Result<(), FsError> {
        let mut pending = Vec::with_capacity(FRAME_BYTES_MIN);
        let frame = Frame { kind: Kind::Continued, number: sequence, payload: &[] };
        frame.encode(self.head.salt, self.end, &mut pending);
        self.write(&mut pending).await
    }
}

fn new_head(options: &EntryLogOptions, sequence: u64, next_index: u64, frame_bytes: u64) -> Head {
    let least = HEAD_BYTES as u64 + frame_bytes + RESERVED_BYTES;
    let allocated = options.file_bytes.max(least);
    Head { sequence, next_index, allocated, salt: time::random_u64() }
}

/// A file that can be appended to, under its name and durable.
async fn create_file(dir: &Path, head: &Head, spare: Option<PathBuf>) -> Result<File, FsError> {
    let path = path_of(dir, head.sequence);
    let unnamed = match spare {
        Some(spare) => spare,
        None => {
            let unfinished = path.with_extension(UNFINISHED_EXTENSION);
            allocate_file(&unfinished, head.allocated).await?;
            unfinished
        }
    };
    let file = File::open(&unnamed, Mode::BufferedSync).await?;
    write_at(&file, 0, &head.encode()).await?;
    file.close().await?;
    fs::rename(&unnamed, &path).await?;
    fs::sync_dir(dir).await?;
    File::open(&path, Mode::BufferedSync).await
}

/// A new file of so many zeros, allocated and durable but for its name. Without room there is none.
async fn allocate_file(path: &Path, bytes: u64) -> Result<(), FsError> {
    if fs::exists(path).await? {
        fs::remove_file(path).await?;
    }
    let file = File::create_new(path, Mode::BufferedSync).await?;
    let allocated = file.preallocate(bytes).await;
    file.close().await?;
    if allocated.is_err() {
        // What it got of the last space is worth more than what was to be learnt from it.
        fs::remove_file(path).await?;
    }
    allocated
}

async fn write_at(file: &File, position: u64, bytes: &[u8]) -> Result<(), FsError> {
    let mut buffer = AlignedBuf::zeroed(bytes.len());
    buffer[..bytes.len()].copy_from_slice(bytes);
    file.write_at(position, buffer.freeze().slice(0..bytes.len())).await
}

fn path_of(dir: &Path, sequence: u64) -> PathBuf {
    dir.join(format!("{sequence:020}.{ENTRIES_EXTENSION}"))
}

/// Extension of the files that hold entries.
pub(crate) const ENTRIES_EXTENSION: &str = "entries";
const UNFINISHED_EXTENSION: &str = "tmp";
/// Room for a durable mark and for a continuation behind every other frame.
const RESERVED_BYTES: u64 = 2 * FRAME_BYTES_MIN as u64;
