//! What leaves the log at its start (reference §3.57, §3.59).

use std::rc::Rc;

use storage::{DeleteRecordsError, Log, LogOptions, ReadError, Storage};

use crate::harness::{
    NOW_MS, append, assert_whole, batch, batch_at, create, eventually, files, open, read_all, run,
    segment, storage,
};

const DAY: i64 = 86_400_000;

fn options() -> LogOptions {
    LogOptions {
        segment_bytes: 20_000,
        segment_ms: i64::MAX,
        file_delete_delay_ms: 0,
        ..LogOptions::default()
    }
}

/// Nine batches to a segment, `age(number)` milliseconds old each.
async fn filled(storage: &Storage, options: &LogOptions, age: impl Fn(u64) -> i64) -> Log {
    let log = create(storage, options.clone()).await;
    for number in 0..90 {
        append(&log, &batch_at(number, 1, 2000, NOW_MS - age(number))).await;
    }
    assert_eq!(log.segments(), 10);
    log
}

#[test]
fn segments_go_by_their_largest_timestamp() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { retention_ms: 7 * DAY, ..options() };
        let log = filled(&storage, &options, |number| (90 - number as i64) * DAY / 3).await;
        let retained = log.apply_retention(NOW_MS).await.unwrap();
        // The third segment's newest record is a bit more than seven days away from the limit.
        let expired = (0..90).filter(|n| (90 - n) * DAY / 3 > 7 * DAY).count() / 9;
        assert_eq!(retained.deleted_segments, expired);
        assert_eq!(log.log_start_offset(), expired as i64 * 9);
        assert_whole(&read_all(&log, log.log_start_offset()).await, expired as i64 * 9, 90);
        let refused = log.read(log.log_start_offset() - 1, 1, 90, true).await;
        assert!(matches!(refused, Err(ReadError::OutOfRange { .. })));
        eventually("the files are removed", async || {
            files(&dir).await.iter().filter(|name| name.ends_with(".log")).count() == 10 - expired
                && !files(&dir).await.iter().any(|name| name.ends_with(".deleted"))
        })
        .await;
    });
}

#[test]
fn a_timestamp_from_the_future_keeps_its_segment_and_all_behind_it() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { retention_ms: DAY, ..options() };
        let age = |number| if number == 12 { -DAY } else { 30 * DAY };
        let log = filled(&storage, &options, age).await;
        assert_eq!(log.apply_retention(NOW_MS).await.unwrap().deleted_segments, 1);
        assert_eq!(log.log_start_offset(), 9);
    });
}

/// As in Kafka: without timestamps a segment is as old as its file.
#[test]
fn segments_without_timestamps_go_by_when_they_were_written() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { retention_ms: DAY, ..options() };
        let log = create(&storage, options).await;
        for number in 0..36 {
            append(&log, &batch_at(number, 1, 2000, -1)).await;
        }
        assert_eq!(log.segments(), 4);
        eventually("all are finished", async || {
            files(&dir).await.iter().filter(|name| name.ends_with(".index")).count() >= 3
        })
        .await;
        let wall_ms = runtime::time::wall_ms();
        assert_eq!(log.apply_retention(wall_ms).await.unwrap().deleted_segments, 0);
        let age = |base: i64, days: u64| {
            let file = std::fs::File::options().write(true).open(segment(&dir, base)).unwrap();
            let age = std::time::Duration::from_secs(days * 86_400 + 3600);
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        };
        age(0, 2);
        age(9, 1);
        age(27, 3);
        assert_eq!(log.apply_retention(wall_ms).await.unwrap().deleted_segments, 2);
        age(18, 1);
        assert_eq!(log.apply_retention(wall_ms).await.unwrap().deleted_segments, 2);
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (36, 36));
    });
}

#[test]
fn the_active_segment_is_sealed_first_when_all_of_it_is_expired() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { retention_ms: DAY, ..options() };
        let log = filled(&storage, &options, |_| 2 * DAY).await;
        let retained = log.apply_retention(NOW_MS).await.unwrap();
        assert_eq!(retained.deleted_segments, 10);
        assert_eq!((log.log_start_offset(), log.log_end_offset(), log.size_bytes()), (90, 90, 0));
        append(&log, &batch(90, 1, 10)).await;
        log.close().await;
        let (log, _) = open(&storage, options).await;
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (90, 91));
        assert_whole(&read_all(&log, 90).await, 90, 91);
    });
}

#[test]
fn size_retention_never_cuts_below_its_limit() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = filled(&storage, &options(), |_| 0).await;
        let one = log.size_bytes() / 10;
        for (limit, kept) in [(one * 8 + 1, 9), (one * 8, 8), (one - 1, 1), (0, 0)] {
            log.set_options(Rc::new(LogOptions { retention_bytes: limit as i64, ..options() }));
            log.apply_retention(NOW_MS).await.unwrap();
            assert_eq!(log.size_bytes(), one * kept);
            assert!(log.size_bytes() >= limit);
        }
        assert_eq!(log.log_start_offset(), 90);
    });
}

#[test]
fn without_delete_in_the_policy_neither_age_nor_size_deletes() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options =
            LogOptions { retention_ms: 1, retention_bytes: 1, cleanup_delete: false, ..options() };
        let log = filled(&storage, &options, |_| DAY).await;
        assert_eq!(log.apply_retention(NOW_MS).await.unwrap().deleted_segments, 0);
        log.delete_records(20).await.unwrap();
        assert_eq!(log.segments(), 8, "what lies below the log start goes in any case");
    });
}

#[test]
fn a_jump_of_the_wall_clock_deletes_nothing_for_a_while() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { retention_ms: 7 * DAY, ..options() };
        let log = filled(&storage, &options, |_| 0).await;
        assert_eq!(log.apply_retention(NOW_MS).await.unwrap().deleted_segments, 0);
        let later = NOW_MS + 365 * DAY;
        assert_eq!(log.apply_retention(later).await.unwrap().deleted_segments, 0);
        assert_eq!(log.apply_retention(later + 1).await.unwrap().deleted_segments, 0);
    });
}

#[test]
fn records_are_deleted_up_to_any_offset_and_stay_deleted() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, options()).await;
        for number in 0..30 {
            append(&log, &batch(number * 3, 3, 700)).await;
        }
        let end = 90;
        for outside in [end + 1, -1] {
            let refused = log.delete_records(outside).await;
            assert!(matches!(refused, Err(DeleteRecordsError::OutOfRange { .. })));
        }
        // In the middle of a batch: the batch is still given, the log start says what counts.
        assert_eq!(log.delete_records(31).await.unwrap(), 31);
        assert_eq!(log.log_start_offset(), 31);
        let chunk = log.read(31, 1, end, true).await.unwrap();
        assert_eq!(chunk.base_offset, 30);
        assert!(log.segments() < 5);
        // It never falls.
        assert_eq!(log.delete_records(10).await.unwrap(), 31);
        log.give_up().await;
        let (log, _) = open(&storage, options()).await;
        assert_eq!(log.log_start_offset(), 31);
        assert_eq!(log.delete_records(end).await.unwrap(), end);
        log.close().await;
        let (log, _) = open(&storage, options()).await;
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (end, end));
        append(&log, &batch(90, 1, 10)).await;
        assert_whole(&read_all(&log, end).await, end, end + 1);
    });
}

#[test]
fn large_segments_go_as_a_whole_too() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { segment_bytes: 9 << 20, ..options() };
        let log = create(&storage, options).await;
        for number in 0..20 {
            append(&log, &batch(number, 1, 1 << 20)).await;
        }
        let kept = log.delete_records(15).await.unwrap();
        assert!(kept > 0);
        eventually("the first segments are removed", async || {
            let names = files(&dir).await;
            !names.iter().any(|name| name.ends_with(".deleted") || name.contains("000000.log"))
        })
        .await;
        assert_whole(&read_all(&log, 15).await, 15, 20);
    });
}

#[test]
fn files_of_deleted_segments_wait_for_their_delay_and_go_at_the_next_start() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { file_delete_delay_ms: 3_600_000, ..options() };
        let log = filled(&storage, &options, |_| 0).await;
        log.delete_records(45).await.unwrap();
        let deleted = files(&dir).await.iter().filter(|name| name.ends_with(".deleted")).count();
        assert!(deleted >= 5, "renamed, not yet removed");
        log.close().await;
        let (_log, _) = open(&storage, options).await;
        eventually("leftovers are removed", async || {
            !files(&dir).await.iter().any(|name| name.ends_with(".deleted"))
        })
        .await;
    });
}
