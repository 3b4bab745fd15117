//! Appending and reading back, from the tail and from disk, now and after a start.

mod harness;

use harness::{append, assert_whole, batch, create, open, read_all, run, storage};
use storage::LogOptions;

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
