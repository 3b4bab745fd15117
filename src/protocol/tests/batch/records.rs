//! Records as views: what is written is read back, and what does not add up is named.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::batch::{
    BatchBuilder, BatchHeader, Codec, Compression, HEADER_BYTES, NewRecord, RecordError,
    RecordIter, decompress, validate_for_append,
};

use crate::forge::{PLAIN_TAIL, raw_record, rules, varied, with_body, with_payload};

type Headers = Vec<(String, Option<Vec<u8>>)>;
type Written = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Headers);

fn written() -> impl Strategy<Value = Vec<Written>> {
    let bytes = || vec(any::<u8>(), 0..40);
    let headers = vec((".{0,12}", option::of(bytes())), 0..4);
    vec((-1..1_i64 << 41, option::of(bytes()), option::of(bytes()), headers), 1..40)
}

fn build(compression: Compression, written: &[Written]) -> bytes::Bytes {
    let mut builder = BatchBuilder::new(compression);
    for (timestamp, key, value, headers) in written {
        let headers: Vec<_> =
            headers.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        let (key, value) = (key.as_deref(), value.as_deref());
        builder.append(&NewRecord { timestamp: *timestamp, key, value, headers: &headers });
    }
    builder.build()
}

fn read(header: &BatchHeader, body: &[u8]) -> Result<Vec<Written>, RecordError> {
    RecordIter::new(body, header.count)
        .map(|record| {
            let record = record?;
            let headers = record.headers.map(|header| {
                let key = String::from_utf8_lossy(header.key).into_owned();
                (key, header.value.map(<[u8]>::to_vec))
            });
            Ok((
                header.record_timestamp(record.timestamp_delta),
                record.key.map(<[u8]>::to_vec),
                record.value.map(<[u8]>::to_vec),
                headers.collect(),
            ))
        })
        .collect()
}

proptest! {
    #[test]
    fn what_is_built_is_read_back(written in written(), codec in 0_u8..5) {
        let codec = Codec::from_id(codec).unwrap();
        let batch = build(Compression::of(codec), &written);
        let header = BatchHeader::parse(&batch).unwrap();
        let body = decompress(codec, &batch[HEADER_BYTES..], 1 << 20).unwrap();
        prop_assert_eq!(read(&header, &body).unwrap(), written.clone());
        prop_assert_eq!(header.max_timestamp, written.iter().map(|each| each.0).max().unwrap());
    }

    /// The validator's pass and the iterator must draw the same line between good and bad, also
    /// when the records come out of a codec in pieces.
    #[test]
    fn the_two_readers_of_records_agree(
        written in written(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in 0_usize..4,
        codec in 0_u8..2,
    ) {
        let codec = [Codec::None, Codec::Zstd][usize::from(codec)];
        let honest = build(Compression::None, &written);
        let header = BatchHeader::parse(&honest).unwrap();
        let mut body = honest[HEADER_BYTES..].to_vec();
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        body.truncate(body.len() - cut);
        let by_iterator = RecordIter::new(&body, header.count).find_map(Result::err);
        let lenient = protocol::batch::ProduceRules {
            timestamp_type: protocol::batch::TimestampType::LogAppendTime,
            ..rules()
        };
        let verdict = validate_for_append(with_body(codec, header.count, &body), &lenient);
        let by_validator = match verdict {
            Err(rejected) => match rejected.error {
                protocol::batch::Rejection::Structure(error) => Some(error),
                protocol::batch::Rejection::OffsetDelta { .. } => None,
                other => return Err(TestCaseError::fail(format!("unexpected: {other}"))),
            },
            Ok(_) => None,
        };
        prop_assert_eq!(by_iterator.is_some(), by_validator.is_some(),
            "{:?} against {:?}", by_iterator, by_validator);
    }

    #[test]
    fn foreign_bodies_end_or_fail(body in vec(any::<u8>(), 0..200), count in any::<i32>()) {
        let records = RecordIter::new(&body, count).count();
        prop_assert!(records <= body.len() + 1);
    }
}

#[test]
fn records_larger_than_a_chunk_are_walked() {
    let value = vec![7; 300_000];
    let mut builder = BatchBuilder::new(Compression::of(Codec::Gzip));
    for _ in 0..3 {
        builder.append(&NewRecord { timestamp: 5, value: Some(&value), ..NewRecord::default() });
    }
    let batch = builder.build();
    let valid = validate_for_append(batch.clone(), &rules()).unwrap();
    assert_eq!(valid.to_bytes(0, -1), batch);
}

#[test]
fn faults_of_a_body_are_named() {
    let whole = raw_record(0, 0, &PLAIN_TAIL);
    let first_error = |body: &[u8], count| RecordIter::new(body, count).find_map(Result::err);
    assert_eq!(first_error(&whole, 1), None);
    assert_eq!(first_error(&whole, 2), Some(RecordError::Short { index: 1 }));
    assert_eq!(
        first_error(&whole, 0),
        Some(RecordError::Trailing { count: 0, bytes: whole.len() })
    );
    assert_eq!(first_error(&whole[..5], 1), Some(RecordError::Short { index: 0 }));
    assert!(first_error(&[], -1).is_none());
}

#[test]
fn after_an_error_the_iterator_ends() {
    let mut records = RecordIter::new(&[0xff; 20], 5);
    assert!(records.next().unwrap().is_err());
    assert!(records.next().is_none());
}

#[test]
fn views_point_into_the_body() {
    let batch = varied(Compression::None, 5);
    let body = &batch[HEADER_BYTES..];
    let range = body.as_ptr_range();
    for record in RecordIter::new(body, 5) {
        let record = record.unwrap();
        for field in [record.key, record.value].into_iter().flatten() {
            assert!(range.contains(&field.as_ptr()) || field.is_empty());
        }
    }
}

#[test]
fn an_empty_batch_has_no_records() {
    let batch = with_payload(Codec::None, 0, &[]);
    let header = BatchHeader::parse(&batch).unwrap();
    assert_eq!(RecordIter::new(&batch[HEADER_BYTES..], header.count).count(), 0);
}
