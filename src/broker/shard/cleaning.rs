//! The slot's cleaner: one compacted log after the other, the one with the largest dirty share
//! first, at a pace that leaves the disk to others.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use metadata::configs::CleanerSettings;
use runtime::task::{Either, race, yield_now};
use runtime::time;
use storage::{CleanError, Cleaned, Cleaner, Log, ReadError};

use crate::slot::Slot;

/// What a scrape tells of the cleaner.
#[derive(Default)]
pub struct Cleaning {
    /// The largest dirty share of the slot's compacted logs, when they were last looked at.
    pub dirty_ratio_max: Cell<f64>,
}

/// Cleans until the process is asked to stop.
pub async fn keep_clean(slot: Rc<Slot>) {
    let mut cleaner = Cleaner::new(0, UNTOLD_BYTES_PER_SECOND);
    loop {
        let settings = slot.settings().cleaner.clone();
        let pause = Duration::from_millis(settings.backoff_ms.max(0) as u64).max(PAUSE_MIN);
        if let Either::Right(()) = race(time::sleep(pause), runtime::shutdown_requested()).await {
            return;
        }
        if !settings.enabled {
            continue;
        }
        obey(&slot, &settings, &mut cleaner);
        // Not given up half way: whoever closes a log ends its round.
        clean_all_due(&slot, &cleaner).await;
    }
}

fn obey(slot: &Slot, settings: &CleanerSettings, cleaner: &mut Cleaner) {
    let most = slot.budget.limit() / MEMORY_SHARE;
    cleaner.map_bytes_max = usize::try_from(settings.dedupe_buffer_bytes).unwrap_or(0).min(most);
    cleaner.map_load = settings.load_factor.clamp(0.1, 0.95);
    let read_bytes = settings.io_buffer_bytes.max(0) as usize;
    cleaner.read_bytes = read_bytes.clamp(READ_BYTES_MIN, READ_BYTES_MAX.min(most));
    let own_share = |whole: f64| whole / f64::from(slot.host.slots.max(1));
    cleaner.pace.set(settings.io_bytes_per_second.map_or(UNTOLD_BYTES_PER_SECOND, own_share));
}

async fn clean_all_due(slot: &Rc<Slot>, cleaner: &Cleaner) {
    while let Some(log) = dirtiest(slot).await {
        let started = time::now();
        let partition = format!("{}-{}", log.topic(), log.partition());
        match log.clean(cleaner, time::wall_ms()).await {
            Ok(cleaned) => say(&partition, &cleaned, time::now().since(started)),
            Err(CleanError::NoSpace) => {
                tracing::warn!(partition, "no room to compact it");
                return;
            }
            Err(CleanError::Stopped | CleanError::Unavailable(_)) => return,
            Err(why @ CleanError::Read(ReadError::Corrupt { .. })) => {
                tracing::error!(partition, %why, "it is not compacted any more");
            }
            Err(why) => {
                tracing::warn!(partition, %why, "cannot compact it now");
                return;
            }
        }
        yield_now().await;
    }
}

/// The log that is to be cleaned next, if any is due.
async fn dirtiest(slot: &Rc<Slot>) -> Option<Log> {
    let now_ms = time::wall_ms();
    let mut found: Option<(f64, Log)> = None;
    let mut ratio_max: f64 = 0.0;
    for topic in slot.shard.topics() {
        if !topic.settings().cleanup_policy.compact {
            continue;
        }
        for partition in topic.partitions() {
            let Ok(log) = partition.log() else { continue };
            if log.is_uncleanable() {
                continue;
            }
            // A log that cannot be looked at now says so when it is read.
            let Ok(cleanable) = log.cleanable(now_ms).await else { continue };
            ratio_max = ratio_max.max(cleanable.dirty_ratio);
            let is_due = cleanable.is_due(&log.options().compaction);
            if is_due && found.as_ref().is_none_or(|(most, _)| *most < cleanable.dirty_ratio) {
                found = Some((cleanable.dirty_ratio, log));
            }
        }
        yield_now().await;
    }
    slot.cleaning.dirty_ratio_max.set(ratio_max);
    found.map(|(_, log)| log)
}

fn say(partition: &str, cleaned: &Cleaned, took: Duration) {
    let Cleaned { bytes: (bytes_before, bytes_after), segments: (before, after), .. } = *cleaned;
    tracing::info!(
        partition,
        bytes_before,
        bytes_after,
        segments_before = before,
        segments_after = after,
        keys = cleaned.keys,
        cleaned_to = cleaned.cleaned_to,
        memory_sufficed = !cleaned.map_full,
        milliseconds = took.as_millis() as u64,
        "compacted"
    );
}

/// What a slot's cleaner reads and writes a second when nobody has set a limit.
const UNTOLD_BYTES_PER_SECOND: f64 = (32 << 20) as f64;
/// A cleaner remembers keys in this part of its slot's storage memory, at most.
const MEMORY_SHARE: usize = 8;
const READ_BYTES_MIN: usize = 16 << 10;
const READ_BYTES_MAX: usize = 8 << 20;
const PAUSE_MIN: Duration = Duration::from_millis(10);
