//! A segment that is made from others, beside them.
//!
//! Law: it gets batches in order and nothing else: no zeros behind them, no mark. It is durable,
//! its indexes too, when `finish` returns; their names are when the directory is synced.

use std::path::{Path, PathBuf};

use protocol::batch::BatchHeader;
use runtime::file::{AlignedBuf, File, FsError, Mode};

use super::exchange::CLEANED_SUFFIX;
use crate::directory::SegmentFile;
use crate::index::{IndexPolicy, IndexedBatch, SegmentIndex};
use crate::segment::{BLOCK, IndexSums, Largest, RegisteredSegment};

pub struct NewSegment {
    dir: PathBuf,
    base_offset: i64,
    file: File,
    /// Bytes in the file, whole blocks.
    written: u64,
    pending: Vec<u8>,
    index: SegmentIndex,
}

/// A segment that may take the place of others.
pub struct MadeSegment {
    pub registered: RegisteredSegment,
    pub index: SegmentIndex,
}

impl NewSegment {
    pub async fn create(
        dir: &Path,
        base_offset: i64,
        mode: Mode,
        policy: IndexPolicy,
    ) -> Result<NewSegment, FsError> {
        remove(dir, base_offset).await?;
        let path = cleaned_path(dir, base_offset, SegmentFile::Log);
        let file = File::create_new(path, mode).await?;
        let index = SegmentIndex::new(base_offset, policy);
        let (dir, pending) = (dir.to_owned(), Vec::with_capacity(WRITE_BYTES));
        Ok(NewSegment { dir, base_offset, file, written: 0, pending, index })
    }

    /// Bytes of its batches so far.
    pub fn size(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    pub async fn put(&mut self, header: &BatchHeader, batch: &[u8]) -> Result<(), FsError> {
        assert_eq!(header.size_in_bytes(), batch.len(), "a batch is as long as it says");
        self.index.on_batch(IndexedBatch {
            last_offset: header.last_offset(),
            position: self.size() as u32,
            size_bytes: batch.len() as u32,
            max_timestamp: header.max_timestamp,
        });
        self.pending.extend_from_slice(batch);
        runtime::copied(batch.len());
        while self.pending.len() >= WRITE_BYTES {
            self.write(WRITE_BYTES).await?;
        }
        Ok(())
    }

    /// Makes it durable, and its indexes.
    pub async fn finish(mut self) -> Result<MadeSegment, FsError> {
        let size = self.size();
        if !self.pending.is_empty() {
            self.write(self.pending.len()).await?;
        }
        self.file.truncate(size).await?;
        self.file.sync().await?;
        self.file.close().await?;
        runtime::reached("clean: batches durable");
        self.index.seal();
        let offsets = self.index.offsets().to_file(0);
        let path = cleaned_path(&self.dir, self.base_offset, SegmentFile::OffsetIndex);
        runtime::fs::write_atomic(path, &offsets).await?;
        let times = self.index.times().to_file(0);
        let path = cleaned_path(&self.dir, self.base_offset, SegmentFile::TimeIndex);
        runtime::fs::write_atomic(path, &times).await?;
        runtime::fs::sync_dir(&self.dir).await?;
        runtime::reached("clean: segment made");
        let registered = RegisteredSegment {
            base_offset: self.base_offset,
            size,
            largest: Largest::of(&self.index),
            sums: IndexSums::of(&offsets, &times),
        };
        Ok(MadeSegment { registered, index: self.index })
    }

    async fn write(&mut self, bytes: usize) -> Result<(), FsError> {
        let mut buffer = AlignedBuf::with_room(bytes);
        buffer.put(&self.pending[..bytes]);
        buffer.zero_to(bytes.next_multiple_of(BLOCK));
        self.file.write_at(self.written, buffer.freeze()).await?;
        self.written += bytes as u64;
        self.pending.drain(..bytes);
        Ok(())
    }
}

/// Removes what an earlier round may have left.
pub async fn remove(dir: &Path, base_offset: i64) -> Result<(), FsError> {
    for file in SegmentFile::ALL {
        match runtime::fs::remove_file(cleaned_path(dir, base_offset, file)).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn cleaned_path(dir: &Path, base_offset: i64, file: SegmentFile) -> PathBuf {
    dir.join(format!("{}{CLEANED_SUFFIX}", file.name(base_offset)))
}

const WRITE_BYTES: usize = 256 << 10;
const _: () = assert!(WRITE_BYTES.is_multiple_of(BLOCK));
