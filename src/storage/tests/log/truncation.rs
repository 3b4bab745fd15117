//! Cutting the end, as a follower does.

use storage::{CommitError, LogOptions, TruncateError};

use crate::harness::{NOW_MS, append, assert_whole, batch, create, open, read_all, run, storage};

fn options() -> LogOptions {
    LogOptions { segment_bytes: 20_000, ..LogOptions::default() }
}

#[test]
fn a_log_is_cut_before_the_batch_that_holds_the_offset() {
    for target in [0_i64, 1, 2, 3, 40, 41, 53, 54, 55, 88, 89] {
        run(move |dir| async move {
            let storage = storage(&dir);
            let log = create(&storage, options()).await;
            for number in 0..30 {
                let epoch = (number / 10) as i32;
                let appended = log.append(&batch(number * 3, 3, 650), epoch, NOW_MS).await.unwrap();
                log.committed(appended.last_offset + 1).await.unwrap();
            }
            let whole = read_all(&log, 0).await;
            let expected = target / 3 * 3;
            assert_eq!(log.truncate_to(target).await.unwrap(), expected);
            assert_eq!((log.log_end_offset(), log.committed_end()), (expected, expected));
            assert_eq!(
                log.latest_epoch(),
                if expected == 0 { -1 } else { (expected as i32 - 1) / 30 }
            );
            let kept = expected as usize / 3;
            assert!(read_all(&log, 0).await == whole[..kept]);

            // It goes on from there, under a new epoch, now and after a crash.
            let appended = log.append(&batch(500, 2, 650), 7, NOW_MS).await.unwrap();
            assert_eq!(appended.base_offset, expected);
            log.committed(expected + 2).await.unwrap();
            let now = read_all(&log, 0).await;
            assert_whole(&now, 0, expected + 2);
            log.give_up().await;
            let (log, report) = open(&storage, options()).await;
            assert_eq!((report.cut_bytes, report.possibly_short), (0, false));
            assert!(read_all(&log, 0).await == now);
            assert_eq!(log.end_offset_for_epoch(7).end_offset, expected + 2);
            log.close().await;
            let (log, report) = open(&storage, options()).await;
            assert!(report.clean);
            assert!(read_all(&log, 0).await == now);
        });
    }
}

#[test]
fn a_cut_outside_of_the_log_changes_nothing() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, options()).await;
        for number in 0..30 {
            append(&log, &batch(number, 1, 1000)).await;
        }
        assert_eq!(log.truncate_to(30).await.unwrap(), 30);
        assert_eq!(log.truncate_to(99).await.unwrap(), 30);
        log.delete_records(10).await.unwrap();
        let refused = log.truncate_to(9).await;
        assert!(matches!(refused, Err(TruncateError::BeforeStart { offset: 9, log_start: 10 })));
        assert_eq!(log.truncate_to(10).await.unwrap(), 10);
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (10, 10));
    });
}

#[test]
fn who_waits_for_a_removed_offset_is_told() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, options()).await;
        append(&log, &batch(0, 10, 10)).await;
        let waiting = log.committed(10);
        log.truncate_to(0).await.unwrap();
        assert_eq!(waiting.await, Err(CommitError::Truncated { log_end: 0 }));
    });
}

#[test]
fn cutting_and_growing_in_turns_keeps_the_log_whole() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, options()).await;
        let mut number = 0;
        let mut end = 0;
        for round in 0..40_i64 {
            for _ in 0..(round * 7) % 11 + 1 {
                end = append(&log, &batch(number, 1, 900)).await.last_offset + 1;
                number += 1;
            }
            let back = (round * 5) % 9;
            end = log.truncate_to((end - back).max(0)).await.unwrap();
            assert_whole(&read_all(&log, 0).await, 0, end);
        }
        log.give_up().await;
        let (log, _) = open(&storage, options()).await;
        assert_whole(&read_all(&log, 0).await, 0, end);
    });
}
