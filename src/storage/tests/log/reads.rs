//! What a read gives: from the tail, from disk, across the limit of either.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use storage::{Log, LogOptions, ReadError, Storage};

use crate::harness::{
    append, assert_whole, batch, create, joined, open, read_all, run, split, storage, storage_with,
    value_of,
};

#[test]
fn a_read_gives_whole_batches_within_its_limits() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..10 {
            append(&log, &batch(number * 2, 2, 500)).await;
        }
        let one = batch(0, 2, 500).size_in_bytes();
        for from_disk in [false, true] {
            if from_disk {
                storage.relieve(usize::MAX);
                assert_eq!(storage.cached_bytes(), 0);
            }
            // A byte limit cuts between batches, an upper offset as well.
            let chunk = log.read(0, one * 3 + 1, 20, false).await.unwrap();
            assert_eq!((chunk.base_offset, chunk.next_offset, chunk.bytes), (0, 6, one * 3));
            let chunk = log.read(0, usize::MAX >> 1, 8, false).await.unwrap();
            assert_eq!((chunk.next_offset, split(&chunk).len()), (8, 4));
            // An upper offset inside a batch leaves the batch out.
            let chunk = log.read(0, 1 << 20, 7, false).await.unwrap();
            assert_eq!(chunk.next_offset, 6);
            // A read that begins inside a batch gives the batch.
            let chunk = log.read(5, one, 20, false).await.unwrap();
            assert_eq!((chunk.base_offset, chunk.next_offset), (4, 6));
            // The first batch comes whole when asked for in any case, and only then.
            let chunk = log.read(2, 1, 20, true).await.unwrap();
            assert_eq!((chunk.base_offset, chunk.bytes), (2, one));
            let chunk = log.read(2, one - 1, 20, false).await.unwrap();
            assert_eq!((chunk.bytes, chunk.next_offset), (0, 2));
            // Nothing at the end, an error outside.
            assert_eq!(log.read(20, 100, 20, true).await.unwrap().bytes, 0);
            assert_eq!(log.read(8, 100, 8, true).await.unwrap().bytes, 0);
            for outside in [-1, 21] {
                let refused = log.read(outside, 100, 20, true).await;
                assert!(matches!(
                    refused,
                    Err(ReadError::OutOfRange { log_start: 0, log_end: 20, .. })
                ));
            }
        }
    });
}

#[test]
fn tail_and_disk_give_the_same_bytes() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        // Sizes that put batches over block and window borders.
        for number in 0..300 {
            append(&log, &batch(number, 1, 100 + (number as usize * 577) % 9000)).await;
        }
        let from_tail = read_all(&log, 0).await;
        assert_whole(&from_tail, 0, 300);
        assert_eq!(storage.stats().disk_read_bytes.get(), 0);
        storage.relieve(usize::MAX);
        let from_disk = read_all(&log, 0).await;
        assert!(storage.stats().disk_read_bytes.get() > 0);
        assert!(from_tail == from_disk);
        for (number, (header, bytes)) in from_disk.iter().enumerate() {
            let size = 100 + (number * 577) % 9000;
            let body = &bytes[protocol::batch::HEADER_BYTES..];
            let record = protocol::batch::RecordIter::new(body, header.count).next().unwrap();
            assert_eq!(record.unwrap().value.unwrap(), value_of(number as u64, size));
        }
    });
}

#[test]
fn a_log_goes_on_after_its_tail_has_left_memory() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..50 {
            append(&log, &batch(number, 1, 700)).await;
            // Every append now begins in a block that must be read back.
            storage.relieve(usize::MAX);
        }
        assert_whole(&read_all(&log, 0).await, 0, 50);
        log.give_up().await;
        let (log, report) = open(&storage, LogOptions::default()).await;
        assert!(!report.possibly_short);
        assert_whole(&read_all(&log, 0).await, 0, 50);
    });
}

#[test]
fn readers_of_the_same_range_share_one_read() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..20 {
            append(&log, &batch(number, 1, 10_000)).await;
        }
        storage.relieve(usize::MAX);
        let done = std::rc::Rc::new(std::cell::Cell::new(0));
        for _ in 0..50 {
            let (log, done) = (log.clone(), done.clone());
            runtime::task::spawn(async move {
                let chunk = log.read(0, 1 << 20, 20, true).await.unwrap();
                assert_eq!(chunk.next_offset, 20);
                done.set(done.get() + 1);
            });
        }
        while done.get() < 50 {
            runtime::task::yield_now().await;
        }
        assert_eq!(storage.stats().window_reads.get(), 1);
    });
}

#[test]
fn who_reads_on_finds_the_next_bytes_read_already() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..64 {
            append(&log, &batch(number, 1, 100_000)).await;
        }
        storage.relieve(usize::MAX);
        let mut offset = 0;
        while offset < 64 {
            let chunk = log.read(offset, 300_000, 64, true).await.unwrap();
            assert!(chunk.bytes <= 300_000 && chunk.bytes > 0);
            offset = chunk.next_offset;
        }
        // Each window of 512 KiB was read once, however many reads it took.
        let windows = (64 * 100_200_u64).div_ceil(512 << 10);
        let reads = storage.stats().window_reads.get();
        assert!(reads <= windows, "{reads} reads of {windows} windows");
    });
}

#[test]
fn a_batch_that_stays_in_memory_is_checked_once() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..20 {
            append(&log, &batch(number, 1, 100_000)).await;
        }
        let checked = || storage.stats().checked_bytes.get();
        storage.relieve(usize::MAX);
        let first = log.read(0, 4 << 20, 20, true).await.unwrap();
        assert_eq!(checked(), first.bytes as u64);
        // From another batch on, and again from the first.
        for offset in [7, 0] {
            let again = log.read(offset, 4 << 20, 20, true).await.unwrap();
            assert_eq!(joined(&again), joined(&first)[first.bytes - again.bytes..]);
        }
        assert_eq!(checked(), first.bytes as u64);
        // What is read from disk anew is looked at anew.
        storage.relieve(usize::MAX);
        log.read(0, 4 << 20, 20, true).await.unwrap();
        assert_eq!(checked(), 2 * first.bytes as u64);
    });
}

/// The most reads under way at once while 16 readers read 1 MiB each from disk.
async fn most_reads_under_way(storage: &Storage, log: &Log, commits: bool) -> usize {
    storage.relieve(usize::MAX);
    let done = Rc::new(Cell::new(0));
    for number in 0..16 {
        let (log, done) = (log.clone(), done.clone());
        runtime::task::spawn(async move {
            log.read(number * 8, 1 << 20, 128, true).await.unwrap();
            done.set(done.get() + 1);
        });
    }
    let mut most = 0;
    while done.get() < 16 {
        if commits {
            append(log, &batch(0, 1, 100)).await;
        } else {
            runtime::task::yield_now().await;
        }
        most = most.max(storage.disk_reads_under_way());
    }
    assert_eq!(storage.disk_reads_under_way(), 0);
    most
}

#[test]
fn commits_wait_behind_few_reads() {
    run(|dir| async move {
        let storage = storage_with(&dir, 64 << 20);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..128 {
            append(&log, &batch(number, 1, 200_000)).await;
        }
        let mut most = usize::MAX;
        // A machine that holds us up between a commit and a read makes it look as if none went on.
        for _ in 0..5 {
            append(&log, &batch(0, 1, 100)).await;
            most = most.min(most_reads_under_way(&storage, &log, true).await);
        }
        assert_eq!(most, 2);
        runtime::time::sleep(Duration::from_millis(150)).await;
        assert_eq!(most_reads_under_way(&storage, &log, false).await, 16);
    });
}

#[test]
fn reading_stays_within_the_budget() {
    run(|dir| async move {
        let storage = storage_with(&dir, 4 << 20);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..200 {
            append(&log, &batch(number, 1, 100_000)).await;
        }
        assert!(storage.cached_bytes() <= 7 << 19, "an eighth of the budget is not for caches");
        let mut offset = 0;
        while offset < 200 {
            let chunk = log.read(offset, 1 << 20, 200, true).await.unwrap();
            assert_eq!(joined(&chunk).len(), chunk.bytes);
            offset = chunk.next_offset;
            assert!(storage.cached_bytes() <= 4 << 20);
        }
    });
}

#[test]
fn a_slice_outlives_the_cache_the_log_and_a_deletion() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        append(&log, &batch(0, 1, 5000)).await;
        let from_tail = log.read(0, 1 << 20, 1, true).await.unwrap();
        storage.relieve(usize::MAX);
        let from_disk = log.read(0, 1 << 20, 1, true).await.unwrap();
        storage.relieve(usize::MAX);
        log.delete().await.unwrap();
        log.give_up().await;
        assert_eq!(joined(&from_tail), batch(0, 1, 5000).to_bytes(0, 0));
        assert_eq!(joined(&from_disk), joined(&from_tail));
    });
}
