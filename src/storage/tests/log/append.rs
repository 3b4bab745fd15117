//! Appending and reading back, from the tail and from disk, now and after a start.

use std::time::Duration;

use runtime::time::within;
use storage::{AppendError, CommitError, LogOptions, Unavailable};

use crate::harness::{
    NOW_MS, append, assert_whole, batch, create, open, read_all, run, storage, storage_with,
};

#[test]
fn what_is_committed_is_read_back_before_and_after_a_clean_start() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..10 {
            let appended = append(&log, &batch(number * 3, 3, 100)).await;
            assert_eq!(appended.base_offset, number as i64 * 3);
            assert_eq!(appended.last_offset, number as i64 * 3 + 2);
        }
        let first = read_all(&log, 0).await;
        assert_whole(&first, 0, 30);
        log.close().await;

        let (log, report) = open(&storage, LogOptions::default()).await;
        assert!(report.clean);
        assert_eq!(report.scanned_bytes, 0);
        assert_eq!(read_all(&log, 0).await, first);
        append(&log, &batch(30, 1, 100)).await;
        assert_whole(&read_all(&log, 0).await, 0, 31);
    });
}

#[test]
fn what_is_committed_is_there_after_a_start_without_a_close() {
    run(|dir| async move {
        let first = {
            let storage = storage(&dir);
            let log = create(&storage, LogOptions::default()).await;
            for number in 0..100 {
                append(&log, &batch(number, 1, 1000)).await;
            }
            read_all(&log, 0).await
        };
        let storage = storage(&dir);
        let (log, report) = open(&storage, LogOptions::default()).await;
        assert!(!report.clean && !report.possibly_short);
        assert_eq!(log.log_end_offset(), 100);
        assert_eq!(read_all(&log, 0).await, first);
        append(&log, &batch(100, 1, 1000)).await;
        assert_whole(&read_all(&log, 0).await, 0, 101);
    });
}

#[test]
fn appends_that_arrive_during_a_write_share_the_next_one() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        let mut last = 0;
        for number in 0..64 {
            last = log.append(&batch(number, 1, 1000), 0, 0).await.unwrap().last_offset;
        }
        log.committed(last + 1).await.unwrap();
        assert_eq!(log.committed_end(), 64);
        assert!(storage.stats().commits.get() <= 4, "{}", storage.stats().commits.get());
        assert_whole(&read_all(&log, 0).await, 0, 64);
    });
}

#[test]
fn offsets_follow_the_order_of_calls_even_when_memory_is_short() {
    run(|dir| async move {
        let storage = storage_with(&dir, 256 << 10);
        let log = create(&storage, LogOptions::default()).await;
        let done = std::rc::Rc::new(std::cell::Cell::new(0));
        for number in 0..200 {
            let (log, done) = (log.clone(), done.clone());
            runtime::task::spawn(async move {
                let appended = log.append(&batch(number, 1, 20_000), 0, NOW_MS).await.unwrap();
                assert_eq!(appended.base_offset, number as i64);
                done.set(done.get() + 1);
            });
        }
        log_reaches(&log, 200).await;
        assert_eq!(done.get(), 200);
        assert_whole(&read_all(&log, 0).await, 0, 200);
        assert!(storage.cached_bytes() <= 256 << 10);
    });
}

/// The log has at least so many records, all committed.
async fn log_reaches(log: &storage::Log, end: i64) {
    while log.committed_end() < end {
        log.advanced().listen().await;
    }
}

#[test]
fn a_batch_larger_than_one_write_is_kept_whole() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        append(&log, &batch(0, 1, 100)).await;
        append(&log, &batch(1, 3, 1_500_000)).await;
        append(&log, &batch(4, 1, 100)).await;
        let before = read_all(&log, 0).await;
        assert_whole(&before, 0, 5);
        log.give_up().await;
        let (log, _) = open(&storage, LogOptions::default()).await;
        assert_eq!(read_all(&log, 0).await, before);
    });
}

#[test]
fn a_wait_ends_with_the_commit_or_with_the_log() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        assert_eq!(log.committed(0).await, Ok(()));
        let beyond = log.committed(5).await;
        assert_eq!(beyond, Err(CommitError::Truncated { log_end: 0 }));
        let appended = log.append(&batch(0, 5, 10), 0, NOW_MS).await.unwrap();
        let waiting = log.committed(appended.last_offset + 1);
        assert_eq!(log.committed_end(), 0, "nothing is committed before its write returns");
        assert_eq!(waiting.await, Ok(()));
        log.close().await;
        assert_eq!(log.committed(5).await, Ok(()));
        let refused = log.append(&batch(5, 1, 10), 0, NOW_MS).await;
        assert!(matches!(refused, Err(AppendError::Unavailable(Unavailable::Closed))));
    });
}

#[test]
fn a_given_up_wait_leaves_nothing_behind() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..100 {
            let appended = log.append(&batch(number, 1, 10), 0, NOW_MS).await.unwrap();
            let wait = log.committed(appended.last_offset + 1);
            let soon = runtime::time::now() + Duration::from_nanos(1);
            let _ = within(soon, wait).await;
        }
        log.committed(100).await.unwrap();
        assert_whole(&read_all(&log, 0).await, 0, 100);
    });
}

#[test]
fn a_follower_keeps_the_offsets_and_epochs_it_is_given() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        let first = batch(0, 3, 50).to_bytes(0, 4);
        let second = batch(3, 2, 50).to_bytes(3, 6);
        let both = bytes::Bytes::from([first.as_ref(), second.as_ref()].concat());
        assert_eq!(log.append_as_follower(&both, NOW_MS).await.unwrap(), 5);
        assert_eq!(log.latest_epoch(), 6);
        assert_eq!(log.end_offset_for_epoch(4).end_offset, 3);
        assert_eq!(log.epoch_at(2), Some(4));
        assert_eq!(log.epoch_at(3), Some(6));

        let stale = batch(5, 1, 50).to_bytes(5, 5);
        let refused = log.append_as_follower(&stale, NOW_MS).await;
        assert!(matches!(refused, Err(AppendError::StaleEpoch { found: 5, known: 6 })));
        let overlapping = batch(4, 1, 50).to_bytes(4, 6);
        let refused = log.append_as_follower(&overlapping, NOW_MS).await;
        assert!(matches!(refused, Err(AppendError::OutOfOrder { found: 4, log_end: 5 })));
        let mut flipped = batch(5, 1, 50).to_bytes(5, 6).to_vec();
        flipped[70] ^= 1;
        let refused = log.append_as_follower(&flipped.into(), NOW_MS).await;
        assert!(matches!(refused, Err(AppendError::Checksum { offset: 5 })));
        assert_eq!(log.log_end_offset(), 5);
    });
}

#[test]
fn relaxed_logs_acknowledge_from_the_page_cache_and_sync_by_count_and_by_time() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { flush_messages: 10, ..LogOptions::default() };
        let log = create(&storage, options.clone()).await;
        for number in 0..9 {
            append(&log, &batch(number, 1, 100)).await;
        }
        assert_eq!((log.committed_end(), log.durable_end()), (9, 0));
        append(&log, &batch(9, 1, 100)).await;
        while log.durable_end() < 10 {
            runtime::task::yield_now().await;
        }
        assert_eq!(log.durable_end(), 10);

        let by_time = LogOptions { flush_messages: i64::MAX, flush_ms: 20, ..options.clone() };
        log.set_options(by_time.into());
        append(&log, &batch(10, 1, 100)).await;
        while log.durable_end() < 11 {
            runtime::task::yield_now().await;
        }
        log.close().await;
        let (log, report) = open(&storage, options).await;
        assert!(report.clean);
        assert_whole(&read_all(&log, 0).await, 0, 11);
    });
}

#[test]
fn a_log_may_turn_strict_and_relaxed_while_it_is_written() {
    run(|dir| async move {
        let storage = storage(&dir);
        let strict = LogOptions::default();
        let relaxed = LogOptions { flush_messages: i64::MAX, ..LogOptions::default() };
        let log = create(&storage, strict.clone()).await;
        for round in 0..6 {
            append(&log, &batch(round * 2, 1, 3000)).await;
            assert_eq!(log.durable_end(), round as i64 * 2 + 1);
            log.set_options(relaxed.clone().into());
            append(&log, &batch(round * 2 + 1, 1, 3000)).await;
            log.set_options(strict.clone().into());
        }
        assert_whole(&read_all(&log, 0).await, 0, 12);
        log.close().await;
        let (log, _) = open(&storage, strict).await;
        assert_whole(&read_all(&log, 0).await, 0, 12);
    });
}
