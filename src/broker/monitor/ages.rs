//! How old records are: from the timeline of their partition, and where that does not reach, from
//! the timestamp of their batch in the log. A scrape reads a few batches at most; what it found is
//! remembered in the timeline, and what it did not look up is told at the next scrape.

use std::rc::Rc;
use std::time::Duration;

use protocol::Str;
use protocol::batch::{BatchHeader, HEADER_BYTES};
use runtime::time;
use storage::Log;

use super::timeline::Appended;
use crate::slot::Slot;
use runtime::task::Unhurried;

/// When was the record at this offset appended?
pub struct AgeQuestion {
    pub topic: Str,
    pub partition: i32,
    pub offset: i64,
}

/// For each question the age in milliseconds, or none where it is not known (yet).
pub async fn ages(slot: &Rc<Slot>, asked: Vec<AgeQuestion>) -> Vec<Option<i64>> {
    let mut lookups = LOOKUPS_MAX;
    let deadline = time::now() + LOOKUP_TIME;
    let mut ages = Vec::with_capacity(asked.len());
    let mut pace = Unhurried::default();
    for question in asked {
        ages.push(age(slot, &question, (&mut lookups, deadline)).await);
        pace.turn().await;
    }
    ages
}

async fn age(
    slot: &Slot,
    question: &AgeQuestion,
    (lookups, deadline): (&mut usize, time::Instant),
) -> Option<i64> {
    let now_ms = time::wall_ms();
    let partition = slot.shard.topic(&question.topic)?.partition(question.partition)?;
    let known = partition.timeline().appended(question.offset, now_ms);
    let at_ms = match known {
        Appended::At(at_ms) => at_ms,
        _ if *lookups > 0 && time::now() < deadline => {
            *lookups -= 1;
            let log = partition.log().ok()?;
            let at_ms = time::within(deadline, written_ms(&log, question.offset)).await.ok()??;
            partition.timeline().learn(question.offset, at_ms.min(now_ms));
            at_ms
        }
        Appended::After(at_ms) => at_ms,
        Appended::Unknown => return None,
    };
    Some((now_ms - at_ms).max(0))
}

/// The timestamp of the first record of the batch that holds an offset.
async fn written_ms(log: &Log, offset: i64) -> Option<i64> {
    let chunk = log.read(offset, 1, log.committed_end(), true).await.ok()?;
    let mut head = Vec::with_capacity(HEADER_BYTES);
    for slice in &chunk.slices {
        let wanted = HEADER_BYTES - head.len();
        head.extend_from_slice(&slice[..wanted.min(slice.len())]);
    }
    let at_ms = BatchHeader::parse_prefix(&head).ok()?.record_timestamp(0);
    (at_ms >= 0).then_some(at_ms)
}

/// Batches that one scrape reads on one slot, and the time it takes for that.
const LOOKUPS_MAX: usize = 32;
const LOOKUP_TIME: Duration = Duration::from_millis(20);
