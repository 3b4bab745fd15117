//! Offsets by timestamp (reference §3.51, §3.52).

use protocol::batch::compression::Compression;
use protocol::batch::{BatchBuilder, Codec, NewRecord, ValidBatch};
use storage::LogOptions;

use crate::harness::{NOW_MS, append, batch_at, create, open, run, storage};

fn stamped(codec: Codec, timestamps: &[i64]) -> ValidBatch {
    let mut builder = BatchBuilder::new(Compression::of(codec));
    for timestamp in timestamps {
        let value = timestamp.to_be_bytes();
        let record =
            NewRecord { timestamp: *timestamp, value: Some(&value), ..NewRecord::default() };
        builder.append(&record);
    }
    ValidBatch::built_here(builder.build()).unwrap()
}

/// A model: all timestamps in offset order.
#[test]
fn the_first_record_at_or_behind_a_timestamp_is_found() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options =
            LogOptions { segment_bytes: 2000, index_interval_bytes: 100, ..LogOptions::default() };
        let log = create(&storage, options.clone()).await;
        let mut model: Vec<i64> = Vec::new();
        let mut random = 7_u64;
        for number in 0..120 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let codec = [Codec::None, Codec::Lz4, Codec::Gzip, Codec::Zstd][number % 4];
            let jitter = |n: u64| (random >> (n * 7) & 63) as i64 - 20;
            let stamps: Vec<i64> =
                (0..4).map(|n| NOW_MS + number as i64 * 10 + jitter(n)).collect();
            append(&log, &stamped(codec, &stamps)).await;
            model.extend(stamps);
        }
        assert!(log.segments() > 5);
        let end = log.log_end_offset();
        for closed in [false, true] {
            let log = if closed {
                log.close().await;
                open(&storage, options.clone()).await.0
            } else {
                log.clone()
            };
            for target in (NOW_MS - 50..NOW_MS + 1300).step_by(7) {
                let expected = model.iter().position(|stamp| *stamp >= target);
                let found = log.offset_for_timestamp(target, end).await.unwrap();
                assert_eq!(found.map(|found| found.offset as usize), expected, "{target}");
                if let (Some(found), Some(at)) = (found, expected) {
                    assert_eq!(found.timestamp, model[at]);
                    assert_eq!(found.leader_epoch, 0);
                }
            }
            let newest = *model.iter().max().unwrap();
            let found = log.max_timestamp().await.unwrap().unwrap();
            assert_eq!(found.timestamp, newest);
            assert_eq!(found.offset as usize, model.iter().position(|s| *s == newest).unwrap());
        }
    });
}

#[test]
fn a_lookup_sees_neither_deleted_nor_uncommitted_records() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        assert_eq!(log.offset_for_timestamp(0, 0).await.unwrap(), None);
        assert_eq!(log.max_timestamp().await.unwrap(), None);
        for number in 0..20 {
            append(&log, &batch_at(number, 1, 10, NOW_MS + number as i64)).await;
        }
        log.delete_records(5).await.unwrap();
        let found = log.offset_for_timestamp(NOW_MS, 20).await.unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp), (5, NOW_MS + 5));
        assert_eq!(log.offset_for_timestamp(NOW_MS + 15, 15).await.unwrap(), None);
        assert_eq!(log.offset_for_timestamp(NOW_MS + 20, 20).await.unwrap(), None);
    });
}

#[test]
fn a_log_append_time_batch_is_found_by_its_one_timestamp() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        let mut bytes = stamped(Codec::None, &[1, 2, 3]).to_bytes(0, 0).to_vec();
        let kind = protocol::batch::TimestampType::LogAppendTime;
        protocol::batch::header::set_max_timestamp(&mut bytes, kind, NOW_MS);
        append(&log, &ValidBatch::built_here(bytes.into()).unwrap()).await;
        let found = log.offset_for_timestamp(5, 3).await.unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp), (0, NOW_MS));
        let found = log.max_timestamp().await.unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp), (0, NOW_MS));
    });
}
