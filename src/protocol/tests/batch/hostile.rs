//! Batches that no honest client sends: the one right answer to each (hostile inputs H17 to H33).

use bytes::Bytes;
use proptest::prelude::*;
use protocol::batch::{
    BatchBuilder, Codec, Compression, CompressionPolicy, ProduceRules, RejectedBatch,
    validate_for_append,
};

use crate::forge::{
    PLAIN_TAIL, batch_of, forged, raw_record, record, renew_checksum, rules, varied, varint,
    with_body, with_payload,
};

fn refused(batch: impl Into<Bytes>) -> RejectedBatch {
    match validate_for_append(batch.into(), &rules()) {
        Ok(_) => panic!("accepted"),
        Err(rejected) => rejected,
    }
}

/// Code, and whether the answer tells the log start offset.
fn answer(batch: impl Into<Bytes>) -> (i16, bool) {
    let rejected = refused(batch);
    (rejected.error.code(), rejected.error.tells_log_start_offset())
}

fn one() -> Bytes {
    batch_of(Compression::None, &[record("x")])
}

fn with_byte(at: usize, byte: u8) -> Bytes {
    let mut batch = one().to_vec();
    batch[at] = byte;
    renew_checksum(&mut batch);
    batch.into()
}

fn with_length(length: i32) -> Bytes {
    let mut batch = one().to_vec();
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    renew_checksum(&mut batch);
    batch.into()
}

#[test]
fn h17_not_exactly_one_batch_of_format_2() {
    let two = [&one()[..], &one()].concat();
    let half = one().slice(..one().len() - 2);
    for batch in [Bytes::new(), two.into(), half, one().slice(..16)] {
        assert_eq!(answer(batch), (87, false));
    }
    for magic in [0, 1] {
        assert_eq!(answer(with_byte(16, magic)), (87, false));
    }
}

#[test]
fn h18_unknown_formats() {
    for magic in [3, 0xff, 127] {
        assert_eq!(answer(with_byte(16, magic)), (2, false));
    }
    let broken_second = [&one()[..], &with_byte(16, 3)].concat();
    assert_eq!(answer(broken_second), (2, false));
}

#[test]
fn h19_lengths_that_lie() {
    let honest = one().len() as i32 - 12;
    for length in [i32::MIN, -1, 0, 13, 14, 48, honest - 1, i32::MAX - 11, i32::MAX] {
        assert_eq!(answer(with_length(length)), (2, false), "{length}");
    }
    for length in [honest + 1, 1 << 30] {
        assert_eq!(answer(with_length(length)), (87, false), "{length}");
    }
}

#[test]
fn h20_one_wrong_bit() {
    for at in [17, 21, 30, 60, 61, one().len() - 1] {
        let mut batch = one().to_vec();
        batch[at] ^= 4;
        assert_eq!(answer(batch), (2, false), "byte {at}");
    }
}

#[test]
fn h21_offsets_and_counts_that_lie() {
    let two = batch_of(Compression::None, &[record("x"), record("y")]);
    for (what, base_offset) in [("5", 5), ("-1", -1), ("lowest", i64::MIN)] {
        let batch = forged(&two, |header| header.base_offset = base_offset);
        assert_eq!(answer(batch), (87, true), "base offset {what}");
    }
    for (count, delta) in [
        (2, 5),
        (2, 0),
        (2, -1),
        (2, i32::MAX),
        (2, i32::MIN),
        (3, 1),
        (1, 1),
        (0, 1),
        (-1, 1),
        (0, -1),
        (i32::MAX, 1),
        (i32::MAX, i32::MAX - 1),
        (3, 2),
        (1, 0),
        (i32::MIN, i32::MAX),
    ] {
        let batch = forged(&two, |header| {
            header.count = count;
            header.last_offset_delta = delta;
        });
        assert_eq!(answer(batch), (87, true), "count {count}, last delta {delta}");
    }
    for codec in Codec::ALL {
        let packed = varied(Compression::of(codec), 5);
        for count in [4, 6, i32::MAX] {
            let batch = forged(&packed, |header| {
                header.count = count;
                header.last_offset_delta = count - 1;
            });
            assert_eq!(answer(batch), (87, true), "{} of 5 in {}", count, codec.name());
        }
    }
}

#[test]
fn h22_records_that_contradict_themselves() {
    let tails: [(&str, Vec<u8>); 10] = [
        ("key length -2", [varint(-2), vec![2, b'v', 0]].concat()),
        ("key length 2^31-1", [varint(i64::from(i32::MAX)), vec![2, b'v', 0]].concat()),
        ("value length -2", [vec![1], varint(-2), vec![0]].concat()),
        ("value past the end", vec![1, 40, b'v', 0]),
        ("header count 2^31-1", [vec![1, 1], varint(i64::from(i32::MAX))].concat()),
        ("header count -1", vec![1, 1, 1]),
        ("header key null", vec![1, 1, 2, 1, 1]),
        ("header value length -2", vec![1, 1, 2, 2, b'h', 3]),
        ("a varint of 6 bytes", vec![0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ("bytes left over", vec![1, 2, b'v', 0, 0]),
    ];
    for codec in [Codec::None, Codec::Gzip, Codec::Zstd] {
        for (what, tail) in &tails {
            let batch = with_body(codec, 1, &raw_record(0, 0, tail));
            assert_eq!(answer(batch), (87, true), "{what} in {}", codec.name());
        }
        for length in [-1, -5, i64::from(i32::MAX), 400] {
            let record = [varint(length), vec![0, 0, 0], PLAIN_TAIL.to_vec()].concat();
            assert_eq!(answer(with_body(codec, 1, &record)), (87, true), "length {length}");
        }
        let varlong = [vec![26, 0], vec![0xff; 10], vec![1]].concat();
        assert_eq!(answer(with_body(codec, 1, &varlong)), (87, true), "a varlong of 11 bytes");
    }
}

#[test]
fn h23_offset_deltas_outside_the_batch() {
    for delta in [i64::from(i32::MAX), i64::from(i32::MIN), -1, 2] {
        let body = [raw_record(0, 0, &PLAIN_TAIL), raw_record(0, delta, &PLAIN_TAIL)].concat();
        assert_eq!(answer(with_body(Codec::None, 2, &body)), (87, true), "{delta}");
        assert_eq!(answer(with_body(Codec::Lz4, 2, &body)), (87, true), "{delta}");
    }
}

/// Kafka stores disorder inside a plain batch and fails on it inside a compressed one.
#[test]
fn deltas_out_of_order() {
    for deltas in [[1, 0], [0, 0]] {
        let body = deltas.map(|delta| raw_record(0, delta, &PLAIN_TAIL)).concat();
        let plain = with_body(Codec::None, 2, &body);
        let valid = validate_for_append(plain.clone(), &rules()).unwrap();
        assert_eq!(valid.to_bytes(0, -1), plain);
        assert_eq!(answer(with_body(Codec::Gzip, 2, &body)), (87, true));
    }
}

#[test]
fn h25_codecs() {
    for codec in [5, 6, 7] {
        let batch = forged(&one(), |header| header.attributes = codec);
        assert_eq!(answer(batch), (76, true), "codec {codec}");
    }
    let zstd = varied(Compression::of(Codec::Zstd), 5);
    for (api_version, fine) in [(3, false), (6, false), (7, true), (13, true)] {
        let rules = ProduceRules { api_version, ..rules() };
        match validate_for_append(zstd.clone(), &rules) {
            Ok(_) => assert!(fine, "version {api_version}"),
            Err(rejected) => {
                assert!(!fine, "version {api_version}");
                assert_eq!(rejected.error.code(), 76);
                assert!(!rejected.error.tells_log_start_offset());
            }
        }
    }
}

/// The right answer to a bomb is "too large", before more than the bound was unpacked.
#[test]
fn h26_bombs() {
    let value_bytes = 64 << 20;
    let tail = [vec![1], varint(value_bytes), vec![0; value_bytes as usize + 1]].concat();
    let bomb = raw_record(0, 0, &tail);
    for codec in [Codec::Gzip, Codec::Lz4, Codec::Zstd] {
        let batch = with_body(codec, 1, &bomb);
        for target in [CompressionPolicy::Producer, CompressionPolicy::Fixed(Compression::Snappy)] {
            let rules = ProduceRules { compression: target, ..rules() };
            let rejected = validate_for_append(batch.clone(), &rules).unwrap_err();
            assert_eq!(rejected.error.code(), 10, "{}", codec.name());
        }
    }
    let snappy = with_body(Codec::Snappy, 1, &bomb);
    let large = ProduceRules { max_message_bytes: 5 << 20, ..rules() };
    assert_eq!(validate_for_append(snappy, &large).unwrap_err().error.code(), 10);
}

#[test]
fn h27_broken_compressed_data() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        for payload in [&b"no such data"[..], b"", &[0xff; 100]] {
            assert_eq!(answer(with_payload(codec, 1, payload)), (2, false), "{}", codec.name());
        }
        let whole = varied(Compression::of(codec), 50);
        let cut = with_payload(codec, 50, &whole[61..whole.len() - 20]);
        assert_eq!(answer(cut), (2, false), "{} cut short", codec.name());
    }
    let mut lz4 = varied(Compression::of(Codec::Lz4), 50).to_vec();
    lz4[61 + 6] ^= 0xff;
    renew_checksum(&mut lz4);
    assert_eq!(answer(lz4), (2, false), "lz4 with a wrong header checksum");
}

#[test]
fn h28_sizes() {
    let size = one().len();
    for (max_message_bytes, segment_bytes, code) in [
        (size, size, None),
        (size - 1, size, Some(10)),
        (size, size - 1, Some(18)),
        (size - 1, size - 1, Some(10)),
    ] {
        let rules = ProduceRules { max_message_bytes, segment_bytes, ..rules() };
        let verdict = validate_for_append(one(), &rules);
        let rejection = verdict.err().map(|rejected| rejected.error);
        assert_eq!(rejection.as_ref().map(|error| error.code()), code);
        assert!(rejection.is_none_or(|error| !error.tells_log_start_offset()));
    }
}

/// Kafka protocol behaviour 33.
#[test]
fn h29_control_batches() {
    let control = BatchBuilder::new(Compression::None).control().append(&record("x")).build();
    assert_eq!(answer(control), (87, true));
    let mut marker =
        BatchBuilder::new(Compression::None).producer(5, 0, 0).transactional().control();
    assert_eq!(answer(marker.append(&record("x")).build()), (87, true));
}

#[test]
fn h30_producer_fields() {
    let sent_by = |id, epoch, sequence| {
        BatchBuilder::new(Compression::None)
            .producer(id, epoch, sequence)
            .append(&record("x"))
            .build()
    };
    assert_eq!(answer(sent_by(5, 0, -1)), (87, true));
    assert_eq!(answer(sent_by(5, -1, 0)), (47, true));
    for (id, epoch, sequence) in [(5, 0, 0), (5, 3, 7), (5, 0, i32::MAX), (-1, -1, -1), (-1, 3, 7)]
    {
        assert!(validate_for_append(sent_by(id, epoch, sequence), &rules()).is_ok());
    }
}

#[test]
fn the_list_of_bad_records_is_bounded() {
    let compacted = ProduceRules { compacted: true, max_message_bytes: 1 << 24, ..rules() };
    let body = raw_record(0, 0, &PLAIN_TAIL);
    let mut records = Vec::new();
    for index in 0..150_000_i64 {
        records.extend(raw_record(0, index, &PLAIN_TAIL));
    }
    assert!(records.len() > body.len());
    let batch = with_body(Codec::Gzip, 150_000, &records);
    let rejected = validate_for_append(batch, &compacted).unwrap_err();
    assert_eq!(rejected.error, protocol::batch::Rejection::Keys(150_000));
    assert_eq!(rejected.record_faults.len(), RejectedBatch::RECORD_FAULTS_MAX);
}

proptest! {
    /// Whatever a client writes into a batch with a right checksum gets an answer.
    #[test]
    fn every_forgery_gets_an_answer(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        id in 0_u8..5,
        target in 0_u8..6,
    ) {
        let mut batch = varied(Compression::of(Codec::from_id(id).unwrap()), 20).to_vec();
        for (at, byte) in changes {
            let at = 8 + at.index(batch.len() - 8);
            batch[at] = byte;
        }
        renew_checksum(&mut batch);
        let compression = match Codec::from_id(target) {
            Some(codec) => CompressionPolicy::Fixed(Compression::of(codec)),
            None => CompressionPolicy::Producer,
        };
        let rules = ProduceRules { compression, compacted: target % 2 == 0, ..rules() };
        match validate_for_append(batch.into(), &rules) {
            Ok(valid) => prop_assert!(protocol::batch::header::crc_ok(&valid.to_bytes(0, 0))),
            Err(rejected) => {
                prop_assert!([2, 10, 18, 32, 47, 76, 87].contains(&rejected.error.code()));
            }
        }
    }
}
