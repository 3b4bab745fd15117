//! The leader epochs' file.
//!
//! Law: a derived file. When it is missing or damaged, the epochs are taken again from the batches
//! of the log, which carry them; nothing is ever refused because of it.
//!
//! The payload of the sealed file (see `envelope`), big endian:
//! ```text
//! 4            number of entries
//! 12 × n       epoch (4), start offset (8), both rising strictly
//! ```

use super::{EpochStart, LeaderEpochs, rises};
use crate::envelope::{self, EnvelopeError, PayloadReader, Purpose};

/// The file's name in the partition's directory.
pub const EPOCHS_FILE_NAME: &str = "leader-epochs";

impl LeaderEpochs {
    /// The checkpoint file's bytes.
    pub fn to_file(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(4 + self.entries.len() * ENTRY_BYTES);
        payload.extend_from_slice(&(self.entries.len() as u32).to_be_bytes());
        for entry in &self.entries {
            payload.extend_from_slice(&entry.epoch.to_be_bytes());
            payload.extend_from_slice(&entry.start_offset.to_be_bytes());
        }
        envelope::seal(PURPOSE, &payload)
    }

    /// The epochs a checkpoint file holds; an error asks for a rebuild from the log.
    pub fn from_file(file: &[u8]) -> Result<Self, EnvelopeError> {
        let (_, payload) = envelope::open(PURPOSE, file)?;
        let mut reader = PayloadReader::new(payload);
        let count = reader.u32()? as usize;
        if reader.remaining() != count * ENTRY_BYTES {
            return Err(EnvelopeError::Payload { reason: "the number of entries is wrong" });
        }
        let mut entries: Vec<EpochStart> = Vec::with_capacity(count);
        for _ in 0..count {
            let entry = EpochStart { epoch: reader.i32()?, start_offset: reader.i64()? };
            let valid = entry.epoch >= 0 && entry.start_offset >= 0;
            if !valid || entries.last().is_some_and(|last| !rises(*last, entry)) {
                return Err(EnvelopeError::Payload { reason: "the epochs do not rise" });
            }
            entries.push(entry);
        }
        reader.finish()?;
        Ok(LeaderEpochs { entries })
    }
}

const PURPOSE: Purpose = Purpose { letters: *b"CTEP", version: 1 };
const ENTRY_BYTES: usize = 12;
