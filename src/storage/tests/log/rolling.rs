//! When segments are sealed, and what a sealed one looks like on disk.

use protocol::batch::BatchHeader;
use storage::LogOptions;
use storage::index::{IndexFiles, IndexPolicy, SegmentIndex};

use crate::harness::{
    NOW_MS, append, assert_whole, batch, batch_at, create, eventually, files, open, read_all, run,
    segment, storage,
};

const SMALL: u64 = 64 << 10;

fn small_segments() -> LogOptions {
    LogOptions { segment_bytes: SMALL, ..LogOptions::default() }
}

#[test]
fn a_segment_that_would_outgrow_its_size_is_sealed_first_and_cut_to_its_batches() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, small_segments()).await;
        let one = batch(0, 1, 1000).size_in_bytes() as u64;
        let fitting = SMALL / one;
        for number in 0..fitting {
            append(&log, &batch(number, 1, 1000)).await;
        }
        assert_eq!(log.segments(), 1);
        for number in fitting..fitting * 3 {
            append(&log, &batch(number, 1, 1000)).await;
        }
        assert_eq!(log.segments(), 3);
        log.close().await;
        for base in [0, fitting as i64] {
            let bytes = runtime::fs::read(segment(&dir, base)).await.unwrap();
            assert_eq!(bytes.len() as u64, fitting * one);
            let mut next = base;
            let mut at = 0;
            while at < bytes.len() {
                let header = BatchHeader::parse(&bytes[at..]).unwrap();
                assert_eq!(header.base_offset, next);
                next += 1;
                at += header.size_in_bytes();
            }
            assert_index_is_right(&dir, base, &bytes).await;
        }
        let (log, report) = open(&storage, small_segments()).await;
        assert!(report.clean);
        assert_whole(&read_all(&log, 0).await, 0, fitting as i64 * 3);
    });
}

#[test]
fn a_segment_is_sealed_before_its_time_on_request() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        assert!(!log.seal(NOW_MS).await, "nothing to seal");
        append(&log, &batch(0, 5, 100)).await;
        assert_eq!(log.active_bytes(), batch(0, 5, 100).size_in_bytes() as u64);
        assert!(log.seal(NOW_MS).await);
        assert_eq!((log.segments(), log.active_bytes()), (2, 0));
        assert!(!log.seal(NOW_MS).await, "nothing new to seal");
        append(&log, &batch(5, 5, 100)).await;
        assert_whole(&read_all(&log, 0).await, 0, 10);
        log.close().await;
        let (log, _) = open(&storage, LogOptions::default()).await;
        assert_eq!(log.segments(), 2);
        assert!(log.seal(NOW_MS).await, "the first thing that is done with an opened log");
        assert_whole(&read_all(&log, 0).await, 0, 10);
        log.close().await;
        assert!(!log.seal(NOW_MS).await, "it serves no more");
    });
}

/// The files on disk are the index that the batches give.
async fn assert_index_is_right(dir: &std::path::Path, base: i64, log: &[u8]) {
    let policy = IndexPolicy { interval_bytes: 4096, bytes_max: 10 << 20 };
    let name = |ending: &str| segment(dir, base).with_extension(ending);
    let offsets = runtime::fs::read(name("index")).await.unwrap();
    let times = runtime::fs::read(name("timeindex")).await.unwrap();
    let files = IndexFiles { offsets: &offsets, times: &times, log_bytes: log.len() as u64 };
    let index = SegmentIndex::parse(base, policy, files).unwrap();
    assert!(index.offsets().len() > 10);
    for entry in index.offsets().entries() {
        let header = BatchHeader::parse(&log[entry.position as usize..]).unwrap();
        assert_eq!(header.last_offset(), entry.last_offset);
    }
    assert_eq!(index.largest_timestamp().unwrap().timestamp, NOW_MS);
}

#[test]
fn a_segment_is_sealed_by_the_age_of_its_first_batch() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { segment_ms: 1000, ..LogOptions::default() };
        let log = create(&storage, options.clone()).await;
        append(&log, &batch_at(0, 1, 10, NOW_MS)).await;
        append(&log, &batch_at(1, 1, 10, NOW_MS + 1000)).await;
        assert_eq!(log.segments(), 1, "not older than segment.ms");
        append(&log, &batch_at(2, 1, 10, NOW_MS + 1001)).await;
        assert_eq!(log.segments(), 2);
        // After a start the age still counts from the first batch.
        log.close().await;
        let (log, _) = open(&storage, options).await;
        append(&log, &batch_at(3, 1, 10, NOW_MS + 2001)).await;
        assert_eq!(log.segments(), 2);
        append(&log, &batch_at(4, 1, 10, NOW_MS + 2002)).await;
        assert_eq!(log.segments(), 3);
    });
}

#[test]
fn a_segment_is_sealed_when_its_index_is_full() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions {
            segment_index_bytes: 80,
            index_interval_bytes: 100,
            ..LogOptions::default()
        };
        let log = create(&storage, options).await;
        for number in 0..100 {
            append(&log, &batch(number, 1, 200)).await;
        }
        assert!(log.segments() >= 9, "{} segments", log.segments());
        assert_whole(&read_all(&log, 0).await, 0, 100);
    });
}

#[test]
fn a_segment_is_sealed_before_its_offsets_outgrow_31_bits() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log =
            create(&storage, LogOptions { cleanup_compact: true, ..Default::default() }).await;
        log.append_as_follower(&batch(0, 1, 10).to_bytes(0, 0), NOW_MS).await.unwrap();
        let last = i64::from(i32::MAX);
        log.append_as_follower(&batch(1, 1, 10).to_bytes(last, 0), NOW_MS).await.unwrap();
        assert_eq!(log.segments(), 1);
        log.append_as_follower(&batch(2, 1, 10).to_bytes(last + 1, 0), NOW_MS).await.unwrap();
        assert_eq!(log.segments(), 2);
        log.committed(last + 2).await.unwrap();
        let chunk = log.read(1, 1 << 20, last + 2, true).await.unwrap();
        assert_eq!(chunk.base_offset, last);
    });
}

#[test]
fn preallocation_takes_the_whole_segment_at_once_and_growth_doubles_otherwise() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { preallocate: true, ..LogOptions::default() };
        let options = LogOptions { segment_bytes: 8 << 20, ..options };
        let log = create(&storage, options).await;
        assert!(!files(&dir).await.iter().any(|name| name.ends_with(".log")), "no file yet");
        append(&log, &batch(0, 1, 10)).await;
        let size = async |base| {
            let entries = runtime::fs::list(dir.join("orders-0")).await.unwrap();
            let name = format!("{base:020}.log");
            entries.iter().find(|entry| entry.name == name).unwrap().len
        };
        assert_eq!(size(0).await, 8 << 20);
        log.delete().await.unwrap();

        let log = create(&storage, LogOptions::default()).await;
        append(&log, &batch(0, 1, 10)).await;
        assert_eq!(size(0).await, 64 << 10);
        append(&log, &batch(1, 1, 60_000)).await;
        eventually("the next step is allocated ahead", async || size(0).await == 128 << 10).await;
    });
}

#[test]
fn rolling_under_load_loses_nothing() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, small_segments()).await;
        for number in 0..500 {
            log.append(&batch(number, 1, 2000), 0, NOW_MS).await.unwrap();
        }
        log.committed(500).await.unwrap();
        assert!(log.segments() > 10);
        assert_whole(&read_all(&log, 0).await, 0, 500);
        storage.relieve(usize::MAX);
        assert_whole(&read_all(&log, 0).await, 0, 500);
        log.give_up().await;
        let (log, report) = open(&storage, small_segments()).await;
        assert!(!report.possibly_short);
        assert_whole(&read_all(&log, 0).await, 0, 500);
    });
}
