//! `compression.type` other than `producer`: the batch is written anew (Kafka protocol
//! behaviour 34).

use bytes::Bytes;
use protocol::batch::header::crc_ok;
use protocol::batch::{
    BatchBuilder, BatchHeader, Codec, Compression, CompressionPolicy, HEADER_BYTES, NewRecord,
    ProduceRules, RecordIter, Rejection, TimestampType, decompress, validate_for_append,
};

use crate::forge::{
    NOW_MS, PLAIN_TAIL, batch_of, raw_record, record, record_at, rules, varied, with_body,
};

fn to(compression: Compression) -> ProduceRules {
    ProduceRules { compression: CompressionPolicy::Fixed(compression), ..rules() }
}

fn body_of(batch: &Bytes) -> Vec<u8> {
    let codec = BatchHeader::parse(batch).unwrap().compression().unwrap();
    decompress(codec, &batch[HEADER_BYTES..], 100 << 20).unwrap()
}

#[test]
fn every_codec_becomes_every_other_with_the_same_records() {
    for from in Codec::ALL {
        for target in Codec::ALL {
            let batch = varied(Compression::of(from), 200);
            let valid = validate_for_append(batch.clone(), &to(Compression::of(target))).unwrap();
            let stored = valid.to_bytes(0, -1);
            assert!(crc_ok(&stored));
            assert_eq!(valid.header().compression(), Ok(target));
            assert_eq!(valid.recompressed(), from != target);
            assert_eq!(body_of(&stored), body_of(&batch), "{} {}", from.name(), target.name());
            assert_eq!(valid.max_timestamp(), BatchHeader::parse(&batch).unwrap().max_timestamp);
            assert_eq!(valid.record_count(), 200);
        }
    }
}

#[test]
fn a_level_alone_is_no_reason_to_recompress() {
    let batch = varied(Compression::Gzip { level: 1 }, 50);
    let valid = validate_for_append(batch.clone(), &to(Compression::Gzip { level: 9 })).unwrap();
    assert!(!valid.recompressed());
    assert_eq!(valid.to_bytes(0, -1), batch);
}

#[test]
fn producer_fields_and_the_transactional_bit_stay() {
    let mut builder = BatchBuilder::new(Compression::None).producer(42, 7, 1_234).transactional();
    let batch = builder.append(&record("a")).append(&record("b")).build();
    let valid = validate_for_append(batch, &to(Compression::Snappy)).unwrap();
    let header = valid.header();
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (42, 7, 1_234));
    assert!(header.is_transactional() && header.has_producer());
    assert_eq!((header.count, header.last_offset_delta), (2, 1));
}

#[test]
fn offsets_become_dense() {
    let deltas = [1, 0, 0];
    let body: Vec<u8> =
        deltas.iter().flat_map(|&delta| raw_record(0, delta, &PLAIN_TAIL)).collect();
    for from in [Codec::None, Codec::Gzip] {
        let batch = with_body(from, 3, &body);
        let valid = validate_for_append(batch, &to(Compression::of(Codec::Lz4))).unwrap();
        let stored = body_of(&valid.to_bytes(0, -1));
        let offsets: Vec<_> =
            RecordIter::new(&stored, 3).map(|record| record.unwrap().offset_delta).collect();
        assert_eq!(offsets, [0, 1, 2]);
    }
}

#[test]
fn timestamps_stay_when_the_base_moves() {
    let body: Vec<u8> = [(-50, 0), (25, 1), (0, 2)]
        .iter()
        .flat_map(|&(timestamp, offset)| raw_record(timestamp, offset, &PLAIN_TAIL))
        .collect();
    let batch = with_body(Codec::None, 3, &body);
    let valid = validate_for_append(batch, &to(Compression::of(Codec::Zstd))).unwrap();
    let header = *valid.header();
    assert_eq!((header.base_timestamp, header.max_timestamp), (NOW_MS - 50, NOW_MS + 25));
    assert_eq!(valid.max_timestamp_offset_delta(), 1);
    let stored = body_of(&valid.to_bytes(0, -1));
    let timestamps: Vec<_> = RecordIter::new(&stored, 3)
        .map(|record| header.record_timestamp(record.unwrap().timestamp_delta))
        .collect();
    assert_eq!(timestamps, [NOW_MS - 50, NOW_MS + 25, NOW_MS]);
}

#[test]
fn log_append_time_is_stamped_on_the_new_batch() {
    let rules = ProduceRules {
        timestamp_type: TimestampType::LogAppendTime,
        ..to(Compression::of(Codec::Gzip))
    };
    let batch = batch_of(Compression::None, &[record_at(5), record_at(9)]);
    let valid = validate_for_append(batch, &rules).unwrap();
    assert_eq!((valid.max_timestamp(), valid.log_append_time_ms()), (NOW_MS, Some(NOW_MS)));
    assert_eq!(valid.header().timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(valid.header().base_timestamp, 5);
    assert!(crc_ok(&valid.to_bytes(0, 0)));
}

/// Kafka protocol behaviour 28: the size is judged again when the batch has its final form.
#[test]
fn a_batch_that_grows_past_the_limit_is_refused() {
    let batch = batch_of(Compression::of(Codec::Gzip), &[record(&"x".repeat(5_000))]);
    let small = ProduceRules { max_message_bytes: 500, ..to(Compression::None) };
    let rejected = validate_for_append(batch.clone(), &small).unwrap_err();
    assert_eq!(rejected.error, Rejection::RecompressedTooLarge { limit: 500 });
    assert_eq!((rejected.error.code(), rejected.error.tells_log_start_offset()), (10, false));
    for target in [Compression::Snappy, Compression::of(Codec::Zstd)] {
        let tight = ProduceRules { max_message_bytes: batch.len(), ..to(target) };
        let (valid, fits) = (validate_for_append(batch.clone(), &tight), 62 + 5_000 / 20);
        assert_eq!(valid.is_ok(), batch.len() >= fits || target.codec() == Codec::Zstd);
    }
}

#[test]
fn a_record_with_every_field_passes_unchanged() {
    let headers: &[(&str, Option<&[u8]>)] = &[("h", Some(b"v")), ("", None), ("h", Some(b""))];
    let full = NewRecord { timestamp: NOW_MS, key: Some(b""), value: None, headers };
    let batch = batch_of(Compression::None, &[full]);
    let valid = validate_for_append(batch.clone(), &to(Compression::Snappy)).unwrap();
    let body = body_of(&valid.to_bytes(0, -1));
    let stored = RecordIter::new(&body, 1).next().unwrap().unwrap();
    let sent = RecordIter::new(&batch[HEADER_BYTES..], 1).next().unwrap().unwrap();
    assert_eq!(stored, sent);
    assert_eq!(stored.headers.count(), 3);
}
