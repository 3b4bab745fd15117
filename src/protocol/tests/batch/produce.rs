//! Batches that are accepted, and what is corrected in them on the way.

use bytes::Bytes;
use proptest::prelude::*;
use protocol::batch::header::crc_ok;
use protocol::batch::{
    BatchHeader, Codec, Compression, CompressionPolicy, HEADER_BYTES, ProduceRules, RecordFault,
    RecordFaultKind, Rejection, TimestampType, ValidBatch, estimated_micros, validate_for_append,
    validate_within,
};

use crate::forge::{
    NOW_MS, batch_of, forged, log_append_time_rules, record, record_at, rules, varied,
};

const HOUR: i64 = 3_600_000;

fn accepted(batch: &Bytes, rules: &ProduceRules) -> ValidBatch {
    let valid = match validate_for_append(batch.clone(), rules) {
        Ok(valid) => valid,
        Err(rejected) => panic!("refused: {rejected}"),
    };
    let stored = valid.to_bytes(1_000, 5);
    let header = BatchHeader::parse(&stored).unwrap();
    assert!(crc_ok(&stored), "the corrected header has the right checksum");
    assert_eq!((header.base_offset, header.partition_leader_epoch), (1_000, 5));
    assert_eq!(header.size_in_bytes(), valid.size_in_bytes());
    assert_eq!(header.max_timestamp, valid.max_timestamp());
    valid
}

/// Kafka protocol behaviour 26: one batch of format 2, base offset 0, right count and checksum.
#[test]
fn an_honest_batch_is_kept_without_a_copy() {
    for codec in Codec::ALL {
        let batch = varied(Compression::of(codec), 100);
        let valid = accepted(&batch, &rules());
        assert_eq!(valid.to_bytes(0, -1), batch, "{}", codec.name());
        assert_eq!(valid.body().as_ptr(), batch[HEADER_BYTES..].as_ptr(), "{}", codec.name());
        assert_eq!((valid.record_count(), valid.recompressed()), (100, false));
        assert_eq!(valid.log_append_time_ms(), None);
    }
}

#[test]
fn the_largest_timestamp_is_found_where_it_first_is() {
    for codec in Codec::ALL {
        let records = [record_at(NOW_MS - 2), record_at(NOW_MS), record_at(NOW_MS), record_at(5)];
        let valid = accepted(&batch_of(Compression::of(codec), &records), &rules());
        assert_eq!((valid.max_timestamp(), valid.max_timestamp_offset_delta()), (NOW_MS, 1));
    }
}

/// Hostile input H24: the header's maxTimestamp is not believed.
#[test]
fn a_wrong_max_timestamp_is_corrected() {
    for codec in [Codec::None, Codec::Snappy] {
        let honest = varied(Compression::of(codec), 50);
        for lie in [i64::MIN, -1, 0, NOW_MS * 2, i64::MAX] {
            let lying = forged(&honest, |header| header.max_timestamp = lie);
            assert_eq!(accepted(&lying, &rules()).to_bytes(0, -1), honest);
        }
    }
}

/// Kafka protocol behaviour 32.
#[test]
fn log_append_time_stamps_the_header() {
    for codec in Codec::ALL {
        let batch = batch_of(Compression::of(codec), &[record_at(NOW_MS - 9), record_at(-1)]);
        let valid = accepted(&batch, &log_append_time_rules());
        assert_eq!(valid.log_append_time_ms(), Some(NOW_MS));
        assert_eq!((valid.max_timestamp(), valid.max_timestamp_offset_delta()), (NOW_MS, 0));
        assert_eq!(valid.header().timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(valid.body().as_ptr(), batch[HEADER_BYTES..].as_ptr());
    }
}

/// Kafka protocol behaviour 31: the bounds, which do not apply to the broker's own time.
#[test]
fn timestamps_outside_the_bounds_are_refused_record_by_record() {
    let narrow = ProduceRules { before_max_ms: 2 * HOUR, after_max_ms: HOUR, ..rules() };
    for (shift, fine) in
        [(0, true), (-2 * HOUR, true), (-2 * HOUR - 1, false), (HOUR, true), (HOUR + 1, false)]
    {
        let batch = batch_of(Compression::None, &[record_at(NOW_MS + shift)]);
        assert_eq!(validate_for_append(batch, &narrow).is_ok(), fine, "{shift} ms");
    }
    let mixed = [record_at(NOW_MS), record_at(NOW_MS - 5 * HOUR), record_at(NOW_MS + 5 * HOUR)];
    for codec in [Codec::None, Codec::Gzip] {
        let batch = batch_of(Compression::of(codec), &mixed);
        let rejected = validate_for_append(batch.clone(), &narrow).unwrap_err();
        assert_eq!((rejected.error.code(), rejected.error.tells_log_start_offset()), (32, true));
        let kind = RecordFaultKind::Timestamp;
        let faults = [1, 2].map(|batch_index| RecordFault { batch_index, kind });
        assert_eq!(rejected.record_faults, faults);
        accepted(
            &batch,
            &ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..narrow.clone() },
        );
    }
}

/// Hostile input H24, on the default bounds: as Kafka answers.
#[test]
fn extreme_timestamps_are_judged_without_overflow() {
    for (timestamp, fine) in [
        (i64::MIN, false),
        (-2, true),
        (-1, true),
        (0, true),
        (NOW_MS + HOUR, true),
        (NOW_MS + HOUR + 1, false),
        (i64::MAX, false),
    ] {
        let batch = batch_of(Compression::None, &[record_at(timestamp)]);
        let verdict = validate_for_append(batch, &rules());
        assert_eq!(verdict.is_ok(), fine, "{timestamp}");
        if let Ok(valid) = verdict {
            assert_eq!(valid.max_timestamp(), timestamp.max(-1));
        }
    }
    let wrapping = forged(&batch_of(Compression::None, &[record_at(1), record_at(5)]), |header| {
        header.base_timestamp = i64::MAX;
    });
    assert_eq!(validate_for_append(wrapping, &rules()).unwrap_err().error.code(), 32);
}

/// Kafka protocol behaviour 31: the bit is cleared on one kind of topic, refused on the other.
#[test]
fn the_log_append_time_bit_of_a_client() {
    let marked = |timestamp| {
        forged(&batch_of(Compression::None, &[record_at(timestamp)]), |header| {
            header.attributes |= 1 << 3;
        })
    };
    let cleared = accepted(&marked(NOW_MS), &rules());
    assert_eq!(cleared.header().timestamp_type(), TimestampType::CreateTime);
    for (batch, rules) in [(marked(NOW_MS), log_append_time_rules()), (marked(-1), rules())] {
        let rejected = validate_for_append(batch, &rules).unwrap_err();
        assert_eq!((rejected.error.code(), rejected.record_faults.len()), (32, 1));
        assert_eq!(rejected.record_faults[0].kind, RecordFaultKind::LogAppendTime);
    }
}

/// Kafka protocol behaviour 30, hostile input H33: every record without a key is listed.
#[test]
fn records_of_a_compacted_topic_need_keys() {
    let compacted = ProduceRules { compacted: true, ..rules() };
    let keyless = protocol::batch::NewRecord { key: None, ..record("x") };
    let empty_key = protocol::batch::NewRecord { key: Some(b""), ..record("x") };
    let tombstone = protocol::batch::NewRecord { value: None, ..record("x") };
    for codec in Codec::ALL {
        let compression = Compression::of(codec);
        let bad = batch_of(compression, &[record("x"), keyless, empty_key, keyless]);
        let rejected = validate_for_append(bad.clone(), &compacted).unwrap_err();
        assert_eq!((rejected.error.code(), rejected.error.tells_log_start_offset()), (87, true));
        let kind = RecordFaultKind::NoKey;
        let faults = [1, 3].map(|batch_index| RecordFault { batch_index, kind });
        assert_eq!(rejected.record_faults, faults);
        accepted(&batch_of(compression, &[empty_key, tombstone]), &compacted);
        accepted(&bad, &rules());
    }
}

#[test]
fn a_bad_timestamp_outweighs_a_missing_key() {
    let compacted = ProduceRules { compacted: true, ..rules() };
    let keyless = protocol::batch::NewRecord { key: None, ..record("x") };
    let batch = batch_of(Compression::None, &[keyless, record_at(i64::MAX)]);
    let rejected = validate_for_append(batch, &compacted).unwrap_err();
    assert_eq!((rejected.error, rejected.record_faults.len()), (Rejection::Timestamps(2), 2));
}

/// Kafka keeps attribute bits that mean nothing, and offsets of plain batches as they are.
#[test]
fn oddities_that_kafka_stores_are_stored() {
    let odd = forged(&varied(Compression::None, 3), |header| header.attributes |= 0x7f80);
    assert_eq!(accepted(&odd, &rules()).to_bytes(0, -1), odd);
    let epoch = forged(&varied(Compression::None, 3), |header| header.partition_leader_epoch = 77);
    accepted(&epoch, &rules());
}

#[test]
fn bytes_too_short_to_be_a_second_batch_are_ignored() {
    let batch = batch_of(Compression::None, &[record("x")]);
    for rest in [&[0_u8; 5][..], &[0; 11], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0, 0]] {
        let valid = accepted(&[&batch[..], rest].concat().into(), &rules());
        assert_eq!(valid.to_bytes(0, -1), batch);
    }
}

#[test]
fn a_batch_of_our_own_may_hold_markers() {
    let mut builder = protocol::batch::BatchBuilder::new(Compression::None)
        .producer(9, 1, -1)
        .transactional()
        .control();
    let marker = protocol::batch::NewRecord {
        timestamp: NOW_MS,
        key: Some(&[0, 0, 0, 1]),
        value: Some(&[0; 6]),
        headers: &[],
    };
    let batch = builder.append(&marker).build();
    let valid = ValidBatch::built_here(batch.clone()).unwrap();
    assert!(valid.header().is_control() && valid.header().is_transactional());
    assert_eq!(valid.to_bytes(0, -1), batch);
    assert!(validate_for_append(batch, &rules()).is_err());
}

#[test]
fn a_budget_puts_off_only_what_exceeds_it() {
    let batch = batch_of(Compression::of(Codec::Zstd), &[record(&"x".repeat(300_000))]);
    assert_eq!(validate_within(batch.clone(), &rules(), 100_000), None);
    let whole = validate_for_append(batch.clone(), &rules());
    assert_eq!(validate_within(batch, &rules(), 400_000), Some(whole));
    let plain = varied(Compression::None, 3_000);
    assert!(matches!(validate_within(plain.clone(), &rules(), 10), Some(Ok(_))));
    let recompress = ProduceRules {
        compression: CompressionPolicy::Fixed(Compression::of(Codec::Gzip)),
        ..rules()
    };
    assert_eq!(validate_within(plain, &recompress, 10), None);
}

#[test]
fn validation_can_leave_the_core() {
    fn assert_send<T: Send>() {}
    assert_send::<ProduceRules>();
    assert_send::<ValidBatch>();
    assert_send::<protocol::batch::RejectedBatch>();
}

#[test]
fn estimates_grow_with_size_and_work() {
    let plain = varied(Compression::None, 500);
    let gzipped = varied(Compression::of(Codec::Gzip), 500);
    let to = |compression| ProduceRules {
        compression: CompressionPolicy::Fixed(compression),
        ..rules()
    };
    let micros = estimated_micros(&plain, &rules());
    assert!(micros <= 50, "{micros}");
    assert!(estimated_micros(&gzipped, &rules()) > micros / 2);
    let fast = estimated_micros(&plain, &to(Compression::of(Codec::Lz4)));
    let slow = estimated_micros(&plain, &to(Compression::Zstd { level: 22 }));
    assert!(micros < fast && fast < slow, "{micros} {fast} {slow}");
    assert_eq!(estimated_micros(b"", &rules()), 1);
}

proptest! {
    /// The checksum that follows from the header's change alone is the real one.
    #[test]
    fn stamping_never_breaks_the_checksum(
        // Batches of up to 10 KiB and of about 200 KiB: the checksum is renewed in two ways.
        count in prop_oneof![1_usize..60, 800_usize..810],
        now_ms in 0..i64::MAX,
        id in 0_u8..5,
    ) {
        let codec = Codec::from_id(id).unwrap();
        let batch = varied(Compression::of(codec), count);
        let rules = ProduceRules { now_ms, ..log_append_time_rules() };
        let stored = validate_for_append(batch, &rules).unwrap().to_bytes(7, 7);
        prop_assert!(crc_ok(&stored));
    }
}
