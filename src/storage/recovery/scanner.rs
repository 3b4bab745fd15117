//! Reading a segment file front to back.

use protocol::batch::header::HEADER_BYTES;
use protocol::batch::{BatchError, BatchHeader};
use runtime::file::FsError;

use crate::open_files::UsedFile;
use crate::segment::{Chain, ChainBreak};

/// A window that moves over a segment's file.
pub struct Scanner {
    file: UsedFile,
    /// Bytes of the file that may be looked at.
    length: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
    bytes_read: u64,
}

/// What stands at a position.
pub enum Step {
    Batch(BatchHeader),
    Break(ChainBreak),
}

impl Scanner {
    pub fn new(file: UsedFile, length: u64) -> Scanner {
        Scanner { file, length, buffer: Vec::new(), buffer_at: 0, bytes_read: 0 }
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The bytes at `position`: `wanted` of them, or what there is before the end.
    pub async fn bytes_at(&mut self, position: u64, wanted: usize) -> Result<&[u8], FsError> {
        let wanted = wanted.min(self.length.saturating_sub(position) as usize);
        let buffered = self.buffer_at + self.buffer.len() as u64;
        if position < self.buffer_at || position + wanted as u64 > buffered {
            self.fill(position, wanted).await?;
        }
        let start = (position - self.buffer_at) as usize;
        let end = self.buffer.len().min(start + wanted);
        Ok(&self.buffer[start.min(end)..end])
    }

    /// The header at `position`, if that is the next batch's; its checksum is not looked at.
    pub async fn header_at(
        &mut self,
        position: u64,
        chain: &Chain,
    ) -> Result<Result<BatchHeader, ChainBreak>, FsError> {
        let rest = self.length.saturating_sub(position);
        let head = self.bytes_at(position, HEADER_BYTES).await?;
        let header = match BatchHeader::parse_prefix(head) {
            Ok(header) => header,
            Err(error) => return Ok(Err(ChainBreak::Header(error))),
        };
        let size = header.size_in_bytes();
        if size as u64 > rest {
            let available = rest as usize;
            return Ok(Err(ChainBreak::Header(BatchError::Incomplete { size, available })));
        }
        Ok(chain.check_header(&header).map(|()| header))
    }

    /// Accepts the batch at `position` as the chain's next, checksum included.
    pub async fn step(&mut self, position: u64, chain: &mut Chain) -> Result<Step, FsError> {
        let header = match self.header_at(position, chain).await? {
            Ok(header) => header,
            Err(reason) => return Ok(Step::Break(reason)),
        };
        let batch = self.bytes_at(position, header.size_in_bytes()).await?;
        Ok(match chain.accept(batch) {
            Ok(header) => Step::Batch(header),
            Err(reason) => Step::Break(reason),
        })
    }

    async fn fill(&mut self, position: u64, wanted: usize) -> Result<(), FsError> {
        let start = position - position % READ_BYTES as u64;
        let end = (position + wanted as u64).next_multiple_of(READ_BYTES as u64).min(self.length);
        self.buffer.clear();
        self.buffer_at = start;
        let mut at = start;
        while at < end {
            let length = ((end - at) as usize).min(READ_BYTES);
            let block = self.file.read_at(at, length).await?;
            self.bytes_read += block.len() as u64;
            self.buffer.extend_from_slice(&block);
            if block.len() < length {
                break;
            }
            at += length as u64;
        }
        Ok(())
    }
}

const READ_BYTES: usize = 1 << 20;
