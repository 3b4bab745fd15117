//! What a journal had of a log and could not be put into its segment.
//!
//! Law: as long as this file is in a log's directory, the log stays offline: batches that were
//! acknowledged are missing in it. Each opening tries again; `log repair --accept-loss` removes
//! the file.

use std::path::{Path, PathBuf};

use runtime::file::{AlignedBuf, File, FsError, Mode};

use super::format::{ENTRY_HEAD_BYTES, EntryHead};
use crate::envelope::{self, EnvelopeError, PayloadReader, Purpose, Sealing};

/// Name of the file in the log's directory.
pub const LEFTOVER_FILE_NAME: &str = "undestaged";

/// An entry in memory.
#[derive(Clone, Debug)]
pub struct FoundEntry {
    pub head: EntryHead,
    pub batches: Vec<u8>,
}

/// The file's content.
#[derive(Clone, Debug)]
pub struct Leftover {
    /// Why the log is offline.
    pub reason: String,
    /// What is to be written into the segment; nothing when nobody knows.
    pub entries: Vec<FoundEntry>,
}

impl Leftover {
    pub fn to_file(&self) -> Vec<u8> {
        let mut payload = front(&self.reason, self.entries.len() as u32);
        for entry in &self.entries {
            payload.extend_from_slice(&entry.head.encode());
            payload.extend_from_slice(&entry.batches);
        }
        envelope::seal(PURPOSE, &payload)
    }

    pub fn from_file(file: &[u8]) -> Result<Leftover, EnvelopeError> {
        let (_, payload) = envelope::open(PURPOSE, file)?;
        let malformed = || EnvelopeError::Payload { reason: "an entry is cut short" };
        let mut reader = PayloadReader::new(payload);
        let reason_bytes = reader.u32()? as usize;
        let rest = &payload[4..];
        let (reason, mut rest) = rest.split_at_checked(reason_bytes).ok_or_else(malformed)?;
        let count = PayloadReader::new(rest).u32()?;
        rest = &rest[4..];
        let mut entries = Vec::new();
        for _ in 0..count {
            let head = EntryHead::decode(rest).ok_or_else(malformed)?;
            let batches = rest.get(ENTRY_HEAD_BYTES..).ok_or_else(malformed)?;
            let (batches, behind) =
                batches.split_at_checked(head.length as usize).ok_or_else(malformed)?;
            entries.push(FoundEntry { head, batches: batches.to_vec() });
            rest = behind;
        }
        let reason = String::from_utf8_lossy(reason).into_owned();
        Ok(Leftover { reason, entries })
    }

    /// Writes it into the log's directory, durably.
    pub async fn store(&self, dir: &Path) -> Result<(), FsError> {
        runtime::fs::write_atomic(dir.join(LEFTOVER_FILE_NAME), &self.to_file()).await
    }
}

/// The file while it is written, for a log with more entries than may be in memory.
pub struct LeftoverWriter {
    file: File,
    dir: PathBuf,
    written: u64,
    sealing: Sealing,
}

impl LeftoverWriter {
    /// `entries` are to come, with their heads so many bytes together.
    pub async fn create(
        dir: &Path,
        reason: &str,
        entries: u32,
        bytes: u64,
    ) -> Result<LeftoverWriter, FsError> {
        let temporary = temporary_in(dir);
        if runtime::fs::exists(&temporary).await? {
            runtime::fs::remove_file(&temporary).await?;
        }
        let file = File::create_new(&temporary, Mode::Buffered).await?;
        let front = front(reason, entries);
        let (sealing, head) = Sealing::begin(PURPOSE, front.len() as u64 + bytes);
        let mut writer = LeftoverWriter { file, dir: dir.to_owned(), written: 0, sealing };
        writer.append(&head).await?;
        writer.write(&front).await?;
        Ok(writer)
    }

    /// The next entries, each with its head.
    pub async fn write(&mut self, piece: &[u8]) -> Result<(), FsError> {
        self.sealing.add(piece);
        self.append(piece).await
    }

    async fn append(&mut self, piece: &[u8]) -> Result<(), FsError> {
        let mut buffer = AlignedBuf::zeroed(piece.len());
        buffer[..piece.len()].copy_from_slice(piece);
        self.file.write_at(self.written, buffer.freeze().slice(0..piece.len())).await?;
        self.written += piece.len() as u64;
        Ok(())
    }

    /// All is there: the file gets its name, durably.
    pub async fn finish(mut self) -> Result<(), FsError> {
        let checksum = self.sealing.end();
        self.append(&checksum).await?;
        self.file.sync().await?;
        self.file.close().await?;
        runtime::fs::rename(temporary_in(&self.dir), self.dir.join(LEFTOVER_FILE_NAME)).await?;
        runtime::fs::sync_dir(&self.dir).await
    }
}

/// What stands before the entries.
fn front(reason: &str, entries: u32) -> Vec<u8> {
    let mut front = Vec::new();
    front.extend_from_slice(&(reason.len() as u32).to_be_bytes());
    front.extend_from_slice(reason.as_bytes());
    front.extend_from_slice(&entries.to_be_bytes());
    front
}

fn temporary_in(dir: &Path) -> PathBuf {
    dir.join(format!("{LEFTOVER_FILE_NAME}.tmp"))
}

const PURPOSE: Purpose = Purpose { letters: *b"JRNL", version: 1 };
