//! Replaying a partition of the topic of committed offsets. A record that cannot be understood is
//! named and left out; the others count.

use bytes::Bytes;
use coordinator::Coordinator;
use protocol::batch::{BatchHeader, Batches, Codec, HEADER_BYTES, RecordIter, decompress};
use storage::{Log, ReadError};

use crate::dispatch::pause_if_long;

/// Makes of a log what it says.
pub async fn load(log: &Log) -> Result<Coordinator, ReadError> {
    let mut coordinator = Coordinator::default();
    let end = log.committed_end();
    let mut next = log.log_start_offset();
    while next < end {
        let chunk = log.read(next, READ_BYTES, end, true).await?;
        if chunk.bytes == 0 {
            break;
        }
        let bytes: Bytes = match <[Bytes; 1]>::try_from(chunk.slices) {
            Ok([only]) => only,
            Err(several) => several.concat().into(),
        };
        for batch in Batches::of(bytes) {
            match batch {
                Ok((header, bytes)) if !header.is_control() => {
                    replay(log, &mut coordinator, &header, &bytes);
                }
                Ok(_) => {}
                Err(why) => tracing::error!(log = %name(log), %why, "a batch was left out"),
            }
            pause_if_long().await;
        }
        next = chunk.next_offset;
    }
    Ok(coordinator)
}

fn replay(log: &Log, coordinator: &mut Coordinator, header: &BatchHeader, batch: &Bytes) {
    let base_offset = header.base_offset;
    let mut body = batch.slice(HEADER_BYTES..);
    if let Some(codec) = header.compression().ok().filter(|codec| *codec != Codec::None) {
        match decompress(codec, &body, BATCH_BYTES_MAX) {
            Ok(plain) => body = plain.into(),
            Err(why) => {
                tracing::error!(log = %name(log), base_offset, %why, "a batch was left out");
                return;
            }
        }
    }
    for record in RecordIter::new(&body, header.count) {
        let (offset, outcome) = match &record {
            Ok(record) => {
                let offset = base_offset + i64::from(record.offset_delta);
                let Some(key) = record.key else { continue };
                if runtime::sabotaged("forget committed offsets") && key.starts_with(OFFSET_KEY) {
                    continue;
                }
                let replayed = coordinator.replay(key, record.value);
                (offset, replayed.map_err(|why| why.to_string()))
            }
            Err(why) => (base_offset, Err(why.to_string())),
        };
        if let Err(why) = outcome {
            tracing::error!(log = %name(log), offset, why, "a record was left out");
        }
    }
}

fn name(log: &Log) -> String {
    format!("{}-{}", log.topic(), log.partition())
}

/// With what the keys of committed offsets begin; looked at only where a simulation forgets them.
const OFFSET_KEY: &[u8] = &[0, 1];
const READ_BYTES: usize = 1 << 20;
const BATCH_BYTES_MAX: usize = 64 << 20;
