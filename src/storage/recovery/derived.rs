//! The files that batches could give back, read where they can be.

use std::path::{Path, PathBuf};

use runtime::file::FsError;

use super::inventory::Inventory;
use crate::directory::SegmentFile;
use crate::epochs::{EPOCHS_FILE_NAME, LeaderEpochs};
use crate::index::{IndexFiles, IndexFlushed, IndexPolicy, IndexSums, SegmentIndex};
use crate::log::snapshot_name;
use crate::producer::{ProducerLimits, ProducerSnapshot, Producers};

/// The leader epochs up to the recovery point; none when they must be taken from the batches.
pub async fn load_epochs(inventory: &Inventory) -> Result<Option<LeaderEpochs>, FsError> {
    let point = inventory.checkpoint.recovery_point;
    if !inventory.has_epochs {
        return Ok((point.epoch < 0).then(LeaderEpochs::new));
    }
    let file = runtime::fs::read(inventory.dir.join(EPOCHS_FILE_NAME)).await?;
    let Ok(mut epochs) = LeaderEpochs::from_file(&file) else { return Ok(None) };
    // Epochs that began at the recovery point may have had no batch: they may begin again.
    epochs.truncate_from_end(point.offset);
    let known = epochs.latest().map_or(-1, |latest| latest.epoch);
    Ok((known <= point.epoch).then_some(epochs))
}

/// The producers at the recovery point; none when they must be taken from the batches.
pub async fn load_producers(
    inventory: &Inventory,
    limits: ProducerLimits,
) -> Result<Option<Producers>, FsError> {
    let offset = inventory.checkpoint.producers_offset;
    if offset < 0 {
        let end = inventory.checkpoint.recovery_point.offset;
        return Ok(Some(Producers::new(limits, end)));
    }
    if !inventory.snapshots.contains(&offset) {
        return Ok(None);
    }
    let file = runtime::fs::read(inventory.dir.join(snapshot_name(offset))).await?;
    let snapshot = ProducerSnapshot::from_file(&file).ok();
    let fitting = snapshot.filter(|snapshot| snapshot.end_offset == offset);
    Ok(fitting.map(|snapshot| snapshot.into_producers(limits)))
}

/// How much of an index file counts.
#[derive(Clone, Copy)]
pub enum Entries {
    /// All of a sealed segment's files; the file of sums says what they must be.
    All,
    /// What was written of a segment that grows.
    First(IndexFlushed),
}

/// The indexes of a segment with `log_bytes` bytes of batches, as its files have them; none when
/// they must be taken from the batches.
pub async fn load_index(
    dir: &Path,
    base: i64,
    policy: IndexPolicy,
    log_bytes: u64,
    entries: Entries,
) -> Result<Option<SegmentIndex>, FsError> {
    let read = |file: SegmentFile| read_if_there(dir.join(file.name(base)));
    let offsets = read(SegmentFile::OffsetIndex).await?;
    let times = read(SegmentFile::TimeIndex).await?;
    let files = match entries {
        Entries::All => {
            let sums = read(SegmentFile::IndexSums).await?;
            let (Some(sums), Some(offsets), Some(times)) = (&sums, &offsets, &times) else {
                return Ok(None);
            };
            let files = IndexFiles { offsets, times, log_bytes };
            let known = IndexSums::from_file(sums).ok();
            known.filter(|known| *known == IndexSums::of(&files)).map(|_| files)
        }
        Entries::First(flushed) => {
            let offsets = flushed.offsets_of(offsets.as_deref().unwrap_or_default());
            let times = flushed.times_of(times.as_deref().unwrap_or_default());
            offsets.zip(times).map(|(offsets, times)| IndexFiles { offsets, times, log_bytes })
        }
    };
    let Some(files) = files else { return Ok(None) };
    let parsed = SegmentIndex::parse(base, policy, files);
    Ok(parsed.ok().map(|mut index| {
        index.resume_at_end(log_bytes);
        index
    }))
}

async fn read_if_there(path: PathBuf) -> Result<Option<Vec<u8>>, FsError> {
    match runtime::fs::read(&path).await {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
