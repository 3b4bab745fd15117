//! The files that batches could give back, read where they can be.

use std::collections::BTreeMap;

use runtime::file::FsError;

use super::inventory::Inventory;
use crate::directory::SegmentFile;
use crate::epochs::{EPOCHS_FILE_NAME, LeaderEpochs};
use crate::index::{IndexFiles, IndexPolicy, OffsetIndex, SegmentIndex, TimeIndex};
use crate::log::snapshot_name;
use crate::producer::{ProducerLimits, ProducerSnapshot, Producers};
use crate::segment::{IndexFlushed, IndexSums, REGISTER_FILE_NAME, RegisteredSegment, register};

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

/// What the index files of a segment must be to be believed.
#[derive(Clone, Copy)]
pub enum Entries {
    /// Of a sealed segment: whole files with these checksums.
    All(IndexSums),
    /// Of a segment in use: they begin with these entries.
    First(IndexFlushed),
}

/// The indexes of a segment with `log_bytes` bytes of batches, as its files have them; none when
/// they must be taken from the batches.
pub async fn load_index(
    dir: &std::path::Path,
    base: i64,
    policy: IndexPolicy,
    log_bytes: u64,
    entries: Entries,
) -> Result<Option<SegmentIndex>, FsError> {
    let (offset_bytes, time_bytes, sums) = match entries {
        Entries::All(sums) => (None, None, sums),
        Entries::First(IndexFlushed { offset_entries, time_entries, sums }) => {
            let offset_bytes = offset_entries * OffsetIndex::ENTRY_BYTES;
            (Some(offset_bytes), Some(time_entries * TimeIndex::ENTRY_BYTES), sums)
        }
    };
    let offsets = read_if_there(&dir.join(SegmentFile::OffsetIndex.name(base))).await?;
    let times = read_if_there(&dir.join(SegmentFile::TimeIndex.name(base))).await?;
    let (Some(offsets), Some(times)) =
        (first_bytes(offsets.as_deref(), offset_bytes), first_bytes(times.as_deref(), time_bytes))
    else {
        return Ok(None);
    };
    if IndexSums::of(offsets, times) != sums && !runtime::sabotaged("trust the index") {
        return Ok(None);
    }
    let parsed = SegmentIndex::parse(base, policy, IndexFiles { offsets, times, log_bytes });
    Ok(parsed.ok().map(|mut index| {
        index.resume_at_end(log_bytes);
        index
    }))
}

/// What the register knows of the sealed segments; nothing when it is missing or damaged.
pub async fn load_register(
    dir: &std::path::Path,
) -> Result<BTreeMap<i64, RegisteredSegment>, FsError> {
    let file = read_if_there(&dir.join(REGISTER_FILE_NAME)).await?;
    let segments = file.and_then(|file| register::from_file(&file).ok()).unwrap_or_default();
    Ok(segments.into_iter().map(|segment| (segment.base_offset, segment)).collect())
}

/// The first `bytes` of a file, or all of it; none when it does not have them.
fn first_bytes(file: Option<&[u8]>, bytes: Option<usize>) -> Option<&[u8]> {
    match (file, bytes) {
        (_, Some(0)) => Some(&[]),
        (Some(file), Some(bytes)) => file.get(..bytes),
        (file, None) => file,
        (None, Some(_)) => None,
    }
}

async fn read_if_there(path: &std::path::Path) -> Result<Option<Vec<u8>>, FsError> {
    match runtime::fs::read(path).await {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
