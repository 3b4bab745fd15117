//! What a journal had of a log and could not be put into its segment.
//!
//! Law: as long as this file is in a log's directory, the log stays offline: batches that were
//! acknowledged are missing in it. Each opening tries again; `log repair --accept-loss` removes
//! the file.

use std::path::Path;

use runtime::file::FsError;

use super::format::{ENTRY_HEAD_BYTES, EntryHead};
use crate::envelope::{self, EnvelopeError, PayloadReader, Purpose};

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
        let mut payload = Vec::new();
        payload.extend_from_slice(&(self.reason.len() as u32).to_be_bytes());
        payload.extend_from_slice(self.reason.as_bytes());
        payload.extend_from_slice(&(self.entries.len() as u32).to_be_bytes());
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

const PURPOSE: Purpose = Purpose { letters: *b"JRNL", version: 1 };
