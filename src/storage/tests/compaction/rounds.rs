//! Whole rounds on real files: what a reader sees, what a restart finds, what an operator may ask.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use protocol::batch::compression::Compression;
use protocol::batch::{
    BatchBuilder, BatchHeader, Codec, HEADER_BYTES, NewRecord, RecordIter, ValidBatch, decompress,
};
use storage::compaction::keys::SLOT_BYTES;
use storage::offline::{self, VerifyOptions};
use storage::{CleanError, Cleaned, Cleaner, Log, LogOptions};

use crate::harness::{
    NOW_MS, append, create, damage, eventually, files, open, read_all, run, segment, storage,
};

pub fn options() -> LogOptions {
    LogOptions {
        segment_bytes: 20_000,
        segment_ms: i64::MAX,
        index_interval_bytes: 600,
        file_delete_delay_ms: 0,
        cleanup_delete: false,
        cleanup_compact: true,
        ..LogOptions::default()
    }
}

pub fn cleaner() -> Cleaner {
    Cleaner::new(1 << 20, 1e12)
}

/// A batch of these keys, each value about 500 bytes and different.
pub fn keyed(codec: Codec, keys: &[(u32, Option<u32>)]) -> ValidBatch {
    let mut builder = BatchBuilder::new(Compression::of(codec));
    for (key, value) in keys {
        let value = value.map(|value| value.to_be_bytes().repeat(120));
        let (key, value) = (key.to_be_bytes(), value.as_deref());
        builder.append(&NewRecord { timestamp: NOW_MS, key: Some(&key), value, headers: &[] });
    }
    ValidBatch::built_here(builder.build()).unwrap()
}

/// Newest value per key, and all records by offset, as a reader from the log's start sees them.
pub async fn seen(log: &Log) -> (BTreeMap<u32, Option<u32>>, Vec<(i64, u32)>) {
    let (mut newest, mut all) = (BTreeMap::new(), Vec::new());
    for (header, batch) in read_all(log, log.log_start_offset()).await {
        let start = log.log_start_offset();
        for (offset, key, value) in records(&header, &batch) {
            if offset < start {
                continue;
            }
            assert!(all.last().is_none_or(|(last, _)| *last < offset), "offsets rise");
            all.push((offset, key));
            newest.insert(key, value);
        }
    }
    (newest, all)
}

pub fn records(header: &BatchHeader, batch: &Bytes) -> Vec<(i64, u32, Option<u32>)> {
    let codec = header.compression().unwrap();
    let body = match header.count {
        0 => Vec::new(),
        _ => decompress(codec, &batch[HEADER_BYTES..], 1 << 24).unwrap(),
    };
    let record = |record: Result<protocol::batch::RecordView<'_>, _>| {
        let record = record.unwrap();
        let key = u32::from_be_bytes(record.key.unwrap().try_into().unwrap());
        let offset = header.base_offset + i64::from(record.offset_delta);
        let value = |bytes: &[u8]| u32::from_be_bytes(*bytes.first_chunk().unwrap());
        (offset, key, record.value.map(value))
    };
    RecordIter::new(&body, header.count).map(record).collect()
}

/// Rewrites each of `keys` keys `times` times, so that several segments come to be.
async fn filled(dir: &Path, log: &Log, keys: u32, times: u32) {
    for time in 0..times {
        for key in 0..keys {
            append(log, &keyed(Codec::None, &[(key, Some(time * 1000 + key))])).await;
        }
    }
    settled(dir, log).await;
}

/// Everything sealed is finished, so that it may be cleaned.
pub async fn settled(dir: &Path, log: &Log) {
    eventually("all sealed segments are finished", async || {
        let names = files(dir).await;
        let bases = names.iter().filter_map(|name| name.strip_suffix(".log"));
        let active = bases.map(|base| base.parse::<i64>().unwrap()).max().unwrap();
        log.cleanable(NOW_MS).await.unwrap().to == active
    })
    .await;
}

async fn clean(log: &Log) -> Cleaned {
    log.clean(&cleaner(), NOW_MS).await.unwrap()
}

#[test]
fn a_reader_rebuilds_the_same_map_from_less() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, options()).await;
        filled(&dir, &log, 20, 20).await;
        let (before, all_before) = seen(&log).await;
        let end = log.log_end_offset();
        let dirty = log.cleanable(NOW_MS).await.unwrap();
        assert!(dirty.is_due(&options().compaction));
        let cleaned = clean(&log).await;
        assert_eq!(cleaned.cleaned_to, dirty.to);
        assert_eq!(cleaned.keys, 20);
        assert!(!cleaned.map_full);
        assert!(cleaned.bytes.1 < cleaned.bytes.0 / 5, "{cleaned:?}");
        let (after, all_after) = seen(&log).await;
        assert_eq!(after, before);
        assert_eq!(log.log_end_offset(), end);
        // Of what was cleaned, each key is there once; behind it all is there.
        let below = |records: &[(i64, u32)]| {
            records.iter().filter(|(offset, _)| *offset < dirty.to).count()
        };
        assert_eq!(below(&all_after), 20);
        assert_eq!(all_after.len() - below(&all_after), all_before.len() - below(&all_before));
        let names = files(&dir).await;
        assert!(!names.iter().any(|name| name.contains("cleaned.") || name.ends_with(".cleaned")));
        assert!(!names.contains(&"segment-exchange".to_owned()));
        let again = log.cleanable(NOW_MS).await.unwrap();
        assert_eq!((again.dirty_bytes, again.first_dirty), (0, dirty.to));
        assert!(!again.is_due(&options().compaction));
    });
}

/// As in Kafka, what counts for a group is how large its segments are before the round.
#[test]
fn segments_that_became_small_become_one_in_the_next_round() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, options()).await;
        filled(&dir, &log, 20, 20).await;
        let first = clean(&log).await;
        assert_eq!(first.segments.0, first.segments.1);
        filled(&dir, &log, 20, 2).await;
        let second = clean(&log).await;
        assert!(second.segments.1 <= 3 && second.segments.0 > first.segments.0, "{second:?}");
        assert_eq!(log.segments(), second.segments.1 + 1);
        assert_eq!(seen(&log).await.0.len(), 20);
    });
}

#[test]
fn a_cleaned_log_opens_again_in_order_and_after_a_crash() {
    run(|dir| async move {
        let first = storage(&dir);
        let log = create(&first, options()).await;
        filled(&dir, &log, 20, 12).await;
        let cleaned = clean(&log).await;
        let (expected, all) = seen(&log).await;
        log.close().await;
        let second = storage(&dir);
        let (log, report) = open(&second, options()).await;
        assert!(report.clean);
        assert_eq!(seen(&log).await, (expected.clone(), all.clone()));
        assert_eq!(log.cleanable(NOW_MS).await.unwrap().first_dirty, cleaned.cleaned_to);
        append(&log, &keyed(Codec::None, &[(1, Some(77))])).await;
        log.give_up().await;
        // Without its derived files all of it is read, gaps and empty batches too; and it is
        // known to have gaps when the topic is not compacted any more.
        for name in ["checkpoint", "leader-epochs"] {
            if name == "leader-epochs" && files(&dir).await.contains(&name.to_owned()) {
                runtime::fs::remove_file(crate::harness::file(&dir, name)).await.unwrap();
            }
        }
        let third = storage(&dir);
        let (log, report) = open(&third, LogOptions { cleanup_compact: false, ..options() }).await;
        assert!(!report.clean);
        assert_eq!(seen(&log).await.1.len(), all.len() + 1);
    });
}

#[test]
fn offline_tools_take_a_cleaned_log_for_sound() {
    run(|dir| async move {
        let first = storage(&dir);
        let log = create(&first, options()).await;
        filled(&dir, &log, 20, 12).await;
        append(&log, &keyed(Codec::Zstd, &[(1, None), (2, Some(1))])).await;
        clean(&log).await;
        log.close().await;
        let path = dir.join("orders-0");
        let report = offline_verify(path).await;
        assert_eq!(report, Vec::<String>::new());
    });
}

async fn offline_verify(path: std::path::PathBuf) -> Vec<String> {
    runtime::task::blocking(move || {
        let options = VerifyOptions { deep: true, gaps: false };
        let report = offline::verify(&path, options).unwrap();
        report.faults.iter().map(ToString::to_string).collect()
    })
    .await
}

#[test]
fn little_memory_takes_several_rounds() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, options()).await;
        filled(&dir, &log, 60, 6).await;
        let (before, _) = seen(&log).await;
        let to = log.cleanable(NOW_MS).await.unwrap().to;
        let small = Cleaner { map_load: 0.5, ..Cleaner::new(34 * SLOT_BYTES, 1e12) };
        let (mut rounds, mut cleaned_to) = (0, 0);
        while cleaned_to < to {
            let cleaned = log.clean(&small, NOW_MS).await.unwrap();
            assert!(cleaned.keys <= 17);
            assert!(cleaned.cleaned_to > cleaned_to, "a round gets somewhere");
            cleaned_to = cleaned.cleaned_to;
            rounds += 1;
        }
        assert!(rounds > 3);
        let (after, all) = seen(&log).await;
        assert_eq!(after, before);
        assert!(all.iter().filter(|(offset, _)| *offset < to).count() <= 60 + 1);
    });
}

#[test]
fn tombstones_go_after_their_retention() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { delete_retention_ms: 1000, ..options() };
        let log = create(&storage, options).await;
        append(&log, &keyed(Codec::None, &[(500, Some(1)), (501, Some(1))])).await;
        append(&log, &keyed(Codec::Lz4, &[(500, None)])).await;
        filled(&dir, &log, 20, 6).await;
        clean(&log).await;
        assert_eq!(seen(&log).await.0[&500], None, "it tells readers that the key is gone");
        filled(&dir, &log, 20, 6).await;
        log.clean(&cleaner(), NOW_MS + 999).await.unwrap();
        assert_eq!(seen(&log).await.0.get(&500), Some(&None));
        filled(&dir, &log, 20, 6).await;
        log.clean(&cleaner(), NOW_MS + 1000).await.unwrap();
        assert_eq!(seen(&log).await.0.get(&500), None);
        assert!(seen(&log).await.0[&501].is_some());
    });
}

#[test]
fn a_producer_goes_on_after_its_records_were_cleaned_away() {
    run(|dir| async move {
        let first = storage(&dir);
        let log = create(&first, options()).await;
        let batch = |sequence: i32| {
            let mut builder = BatchBuilder::new(Compression::None).producer(9, 0, sequence);
            let (key, value) = (7_u32.to_be_bytes(), [1; 50]);
            builder.append(&NewRecord {
                timestamp: NOW_MS,
                key: Some(&key),
                value: Some(&value),
                headers: &[],
            });
            ValidBatch::built_here(builder.build()).unwrap()
        };
        for sequence in 0..8 {
            append(&log, &batch(sequence)).await;
        }
        filled(&dir, &log, 20, 6).await;
        clean(&log).await;
        log.give_up().await;
        // Nothing but the batches is left to say what the producer wrote.
        for name in files(&dir).await.iter().filter(|name| name.ends_with(".producers")) {
            runtime::fs::remove_file(crate::harness::file(&dir, name)).await.unwrap();
        }
        let second = storage(&dir);
        let (log, _) = open(&second, options()).await;
        assert!(log.append(&batch(7), 0, NOW_MS).await.unwrap().duplicate);
        assert!(!append(&log, &batch(8)).await.duplicate);
    });
}

#[test]
fn a_damaged_batch_stops_the_round_and_nothing_is_lost() {
    run(|dir| async move {
        let first = storage(&dir);
        let log = create(&first, options()).await;
        filled(&dir, &log, 20, 6).await;
        log.close().await;
        damage(&segment(&dir, 0), |bytes| bytes[5000] ^= 1).await;
        let second = storage(&dir);
        let (log, _) = open(&second, options()).await;
        let refused = log.clean(&cleaner(), NOW_MS).await;
        assert!(matches!(refused, Err(CleanError::Read(_))), "{refused:?}");
        assert!(!files(&dir).await.iter().any(|name| name.ends_with(".cleaned")));
        assert_eq!(log.cleanable(NOW_MS).await.unwrap().first_dirty, 0);
    });
}

#[test]
fn retention_and_deleted_records_go_together_with_cleaning() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { cleanup_delete: true, retention_bytes: 60_000, ..options() };
        let log = create(&storage, options).await;
        // Every key once: nothing to thin out, but small segments would be joined.
        for key in 0..400 {
            append(&log, &keyed(Codec::None, &[(key, Some(key))])).await;
        }
        settled(&dir, &log).await;
        clean(&log).await;
        let retained = log.apply_retention(NOW_MS).await.unwrap();
        assert!(retained.deleted_segments > 0);
        let start = log.log_start_offset();
        assert!(start > 0);
        assert_eq!(seen(&log).await.1.first().map(|(offset, _)| *offset), Some(start));
        log.delete_records(start + 15).await.unwrap();
        let (_, all) = seen(&log).await;
        assert_eq!(all.first().map(|(offset, _)| *offset), Some(start + 15));
    });
}

#[test]
fn a_lookup_by_time_finds_what_stayed() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, options()).await;
        for number in 0..200_u32 {
            let mut builder = BatchBuilder::new(Compression::None);
            let (key, value) = ((number % 10).to_be_bytes(), [3; 600]);
            let timestamp = 1000 + i64::from(number);
            builder.append(&NewRecord {
                timestamp,
                key: Some(&key),
                value: Some(&value),
                headers: &[],
            });
            append(&log, &ValidBatch::built_here(builder.build()).unwrap()).await;
        }
        settled(&dir, &log).await;
        let cleaned = clean(&log).await;
        let end = log.log_end_offset();
        let first = seen(&log).await.1[0].0;
        assert!(first > 0);
        let found = log.offset_for_timestamp(1000, end).await.unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp), (first, 1000 + first));
        let found =
            log.offset_for_timestamp(1000 + cleaned.cleaned_to, end).await.unwrap().unwrap();
        assert_eq!(found.offset, cleaned.cleaned_to);
        assert_eq!(log.max_timestamp().await.unwrap().unwrap().offset, 199);
    });
}

#[test]
fn a_cut_below_what_was_cleaned_makes_it_dirty_again() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, options()).await;
        filled(&dir, &log, 20, 8).await;
        let cleaned = clean(&log).await;
        let cut = log.truncate_to(cleaned.cleaned_to - 5).await.unwrap();
        assert!(cut < cleaned.cleaned_to);
        assert_eq!(log.cleanable(NOW_MS).await.unwrap().first_dirty, 0);
        assert!(!files(&dir).await.contains(&"cleaned-to".to_owned()));
        filled(&dir, &log, 20, 8).await;
        let (before, _) = seen(&log).await;
        clean(&log).await;
        assert_eq!(seen(&log).await.0, before);
    });
}

#[test]
fn whoever_closes_a_log_ends_its_round() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, options()).await;
        filled(&dir, &log, 20, 10).await;
        // One chunk, then a pause of nearly a minute.
        let slow = Cleaner::new(1 << 20, 400.0);
        let started = runtime::time::now();
        let (cleaning, closing) = (log.clone(), log.clone());
        let ended = std::rc::Rc::new(std::cell::Cell::new(false));
        let end = ended.clone();
        runtime::task::spawn(async move {
            let cleaned = cleaning.clean(&slow, NOW_MS).await;
            assert!(matches!(cleaned, Err(CleanError::Stopped)), "{cleaned:?}");
            end.set(true);
        });
        runtime::task::yield_now().await;
        closing.close().await;
        eventually("the round ends", async || ended.get()).await;
        assert!(runtime::time::now().since(started) < std::time::Duration::from_secs(5));
    });
}
