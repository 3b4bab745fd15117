//! What happens to logs by the clock: retention, rolling, forgetting idle producers.

use std::rc::Rc;
use std::time::Duration;

use runtime::task::{Either, race, yield_now};
use runtime::time;
use storage::Retained;

use crate::slot::Slot;

/// Applies retention every log.retention.check.interval.ms until the process is asked to stop.
pub async fn keep_house(slot: Rc<Slot>) {
    loop {
        let interval = slot.settings().log_retention_check_interval_ms;
        let interval = Duration::from_millis(interval.max(0) as u64);
        match race(time::sleep(interval.max(INTERVAL_MIN)), runtime::shutdown_requested()).await {
            Either::Left(()) => sweep(&slot).await,
            Either::Right(()) => return,
        }
    }
}

async fn sweep(slot: &Rc<Slot>) {
    let now_ms = time::wall_ms();
    for topic in slot.shard.topics() {
        for partition in topic.partitions() {
            let Ok(log) = partition.log() else { continue };
            match log.apply_retention(now_ms).await {
                Ok(Retained { deleted_segments: 0, .. }) => {}
                Ok(Retained { deleted_segments, deleted_bytes, log_start_offset }) => {
                    let partition = partition.name();
                    tracing::info!(
                        partition,
                        deleted_segments,
                        deleted_bytes,
                        log_start_offset,
                        "retention"
                    );
                }
                Err(why) => {
                    tracing::warn!(partition = %partition.name(), %why, "retention failed");
                }
            }
            yield_now().await;
        }
    }
}

const INTERVAL_MIN: Duration = Duration::from_millis(10);
