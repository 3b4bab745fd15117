//! A segment's batches in order, many at a time, past the caches that readers use.

use bytes::Bytes;
use protocol::batch::{BatchHeader, HEADER_BYTES};
use runtime::file::FsError;

use crate::open_files::UsedFile;
use crate::segment::Chain;

pub struct Chunks {
    file: UsedFile,
    position: u64,
    limit: u64,
    /// Bytes that are asked for at once.
    wanted: usize,
}

/// Whole batches that follow each other.
pub struct Chunk {
    pub position: u64,
    pub bytes: Bytes,
}

/// Why a segment gives no more batches.
pub enum ChunkError {
    Io(FsError),
    Damaged { position: u64, reason: String },
}

impl From<FsError> for ChunkError {
    fn from(error: FsError) -> ChunkError {
        ChunkError::Io(error)
    }
}

impl Chunks {
    /// From `position` of a segment with `limit` bytes of batches.
    pub fn new(file: UsedFile, position: u64, limit: u64, wanted: usize) -> Chunks {
        Chunks { file, position, limit, wanted: wanted.max(HEADER_BYTES) }
    }

    /// The next batches; none behind the last. A batch that is longer than what is asked for at
    /// once comes alone.
    pub async fn next(&mut self) -> Result<Option<Chunk>, ChunkError> {
        let position = self.position;
        if position >= self.limit {
            return Ok(None);
        }
        let mut bytes = self.read(position, self.wanted).await?;
        let mut whole = 0;
        loop {
            match BatchHeader::parse_prefix(&bytes[whole..]) {
                Ok(header) if header.size_in_bytes() <= bytes.len() - whole => {
                    whole += header.size_in_bytes();
                }
                Ok(header) if whole == 0 && header.size_in_bytes() > bytes.len() => {
                    let size = header.size_in_bytes();
                    if position + size as u64 > self.limit {
                        let reason = "the batch goes on behind the segment's end".to_owned();
                        return Err(ChunkError::Damaged { position, reason });
                    }
                    bytes = self.read(position, size).await?;
                }
                Err(error) if whole == 0 => {
                    return Err(ChunkError::Damaged { position, reason: error.to_string() });
                }
                _ => break,
            }
            if whole == bytes.len() {
                break;
            }
        }
        self.position += whole as u64;
        bytes.truncate(whole);
        Ok(Some(Chunk { position, bytes: bytes.into() }))
    }

    async fn read(&self, from: u64, wanted: usize) -> Result<Vec<u8>, ChunkError> {
        let wanted = wanted.min((self.limit - from) as usize);
        let mut bytes = Vec::with_capacity(wanted);
        while bytes.len() < wanted {
            let at = from + bytes.len() as u64;
            let block = self.file.read_at(at, (wanted - bytes.len()).min(READ_BYTES)).await?;
            if block.is_empty() {
                let reason = "the file is shorter than the log".to_owned();
                return Err(ChunkError::Damaged { position: at, reason });
            }
            bytes.extend_from_slice(&block);
            runtime::copied(block.len());
        }
        Ok(bytes)
    }
}

/// The batches of a chunk, each accepted by the chain; an error says where and why one is not.
pub fn accepted(
    chain: &mut Chain,
    chunk: &Chunk,
) -> impl Iterator<Item = Result<(BatchHeader, Bytes), (u64, String)>> {
    let mut rest = chunk.bytes.clone();
    let mut position = chunk.position;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let header = match chain.accept(&rest) {
            Ok(header) => header,
            Err(reason) => {
                rest.clear();
                return Some(Err((position, reason.to_string())));
            }
        };
        let batch = rest.split_to(header.size_in_bytes());
        position += batch.len() as u64;
        Some(Ok((header, batch)))
    })
}

const READ_BYTES: usize = 1 << 20;
