//! What makes a batch the legal successor of the one before it.
//!
//! Law: a batch is accepted by its checksum *and* by its place: it begins at the offset where the
//! last one ended (or later, in a log whose batches compaction thins out) and its leader epoch is
//! not older. So bytes that once were a valid batch of this or another life of the file, and a
//! write that landed in the wrong place, are not taken for the next batch.

use protocol::batch::header::crc_ok;
use protocol::batch::{BatchError, BatchHeader};
use thiserror::Error;

/// The end of the accepted batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// First offset behind them.
    pub next_offset: i64,
    /// Leader epoch of the last one, −1 before the first.
    pub epoch: i32,
    /// Whether offsets may be missing between batches, as compaction leaves them.
    pub gaps: bool,
}

/// Why the bytes at a position are not the next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChainBreak {
    #[error("{0}")]
    Header(BatchError),
    #[error("its checksum does not match its bytes")]
    Checksum,
    #[error("it starts at offset {found}, expected {expected}")]
    Offset { found: i64, expected: i64 },
    #[error("its leader epoch {found} is older than {known}")]
    Epoch { found: i32, known: i32 },
    #[error("its last offset lies {0} behind its first")]
    LastOffset(i32),
}

impl Chain {
    /// Whether a batch with this header may come next. Its checksum has still to be looked at.
    pub fn check_header(&self, header: &BatchHeader) -> Result<(), ChainBreak> {
        let found = header.base_offset;
        let expected = self.next_offset;
        if found < expected || (found > expected && !self.gaps) {
            return Err(ChainBreak::Offset { found, expected });
        }
        if header.last_offset_delta < 0 {
            return Err(ChainBreak::LastOffset(header.last_offset_delta));
        }
        if header.partition_leader_epoch < self.epoch {
            let (found, known) = (header.partition_leader_epoch, self.epoch);
            return Err(ChainBreak::Epoch { found, known });
        }
        Ok(())
    }

    /// Accepts the batch at the start of `bytes`, or says why it is none. Bytes behind the batch
    /// are not looked at.
    pub fn accept(&mut self, bytes: &[u8]) -> Result<BatchHeader, ChainBreak> {
        let header = BatchHeader::parse(bytes).map_err(ChainBreak::Header)?;
        self.check_header(&header)?;
        if !crc_ok(&bytes[..header.size_in_bytes()]) {
            return Err(ChainBreak::Checksum);
        }
        self.advance(&header);
        Ok(header)
    }

    /// Takes note of a batch that was accepted.
    pub fn advance(&mut self, header: &BatchHeader) {
        assert!(header.base_offset >= self.next_offset, "batches go forward");
        self.next_offset = header.next_offset();
        self.epoch = self.epoch.max(header.partition_leader_epoch);
    }
}
