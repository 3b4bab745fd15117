//! What the fuzz target `batches` does with one input.
//!
//! ```text
//! rules | repairs | bytes of a produce request's partition
//! ```
//! `repairs` lets the input past the checks that random bytes never pass: the size, the format
//! version, the base offset and the checksum of the batch.

use bytes::Bytes;
use protocol::batch::header::{CRC_AT, crc_of, crc_ok};
use protocol::batch::{
    BatchHeader, Batches, Codec, Compression, CompressionPolicy, HEADER_BYTES, ProduceRules,
    RecordIter, Rejection, TimestampType, ValidBatch, decompress, validate_for_append,
    validate_within,
};

const NOW_MS: i64 = 1_700_000_000_000;
/// Small, so that bombs are cheap; the validator's own floor is 1 MiB.
const MESSAGE_BYTES_MAX: usize = 100_000;
const DECOMPRESSED_BYTES_MAX: usize = 1 << 20;

pub fn run(input: &[u8]) {
    let [rules, repairs, bytes @ ..] = input else { return };
    let rules = rules_of(*rules);
    let raw = repaired(bytes, *repairs);
    iterate(&raw);
    for codec in Codec::ALL {
        // Payloads without a batch around them, as a reader of a damaged log would meet them.
        if let Ok(body) = decompress(codec, bytes, DECOMPRESSED_BYTES_MAX) {
            assert!(body.len() <= DECOMPRESSED_BYTES_MAX);
        }
    }
    let verdict = validate_for_append(raw.clone(), &rules);
    if let Some(sooner) = validate_within(raw.clone(), &rules, 5_000) {
        assert_eq!(sooner, verdict, "the budget changed the verdict");
    }
    match verdict {
        Ok(valid) => accepted(&valid, &rules),
        Err(rejected) => {
            let code = rejected.error.code();
            assert!([2, 10, 18, 32, 47, 76, 87].contains(&code), "{rejected}");
            assert!(rejected.record_faults.is_empty() || [32, 87].contains(&code));
            refused(&raw, &rejected.error);
        }
    }
}

fn rules_of(bits: u8) -> ProduceRules {
    let compression = match bits & 7 {
        codec @ 0..5 => Codec::ALL[usize::from(codec)],
        _ => {
            return ProduceRules {
                compression: CompressionPolicy::Producer,
                ..rules_of(bits & !7)
            };
        }
    };
    ProduceRules {
        api_version: if bits & 8 == 0 { 13 } else { 3 },
        max_message_bytes: MESSAGE_BYTES_MAX,
        timestamp_type: if bits & 16 == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        },
        compression: CompressionPolicy::Fixed(Compression::of(compression)),
        compacted: bits & 32 != 0,
        before_max_ms: if bits & 64 == 0 { i64::MAX } else { 1_000 },
        ..ProduceRules::of_default_topic(NOW_MS)
    }
}

fn repaired(bytes: &[u8], repairs: u8) -> Bytes {
    let mut raw = bytes.to_vec();
    if raw.len() >= HEADER_BYTES {
        if repairs & 1 != 0 {
            let length = (raw.len() - 12) as i32;
            raw[8..12].copy_from_slice(&length.to_be_bytes());
        }
        if repairs & 2 != 0 {
            raw[..8].fill(0);
            raw[16] = 2;
        }
        if repairs & 4 != 0 {
            let crc = crc_of(&raw);
            raw[CRC_AT..][..4].copy_from_slice(&crc.to_be_bytes());
        }
    }
    raw.into()
}

fn iterate(raw: &Bytes) {
    let mut batches = Batches::of(raw.clone());
    for (header, batch) in batches.by_ref().flatten() {
        assert_eq!(header.size_in_bytes(), batch.len());
        assert_eq!(BatchHeader::parse(&batch), Ok(header));
        crc_ok(&batch);
        let body = &batch[HEADER_BYTES..];
        let records = RecordIter::new(body, header.count).count();
        assert!(records <= body.len() + 1);
    }
    assert!(batches.rest().len() <= raw.len());
}

fn accepted(valid: &ValidBatch, rules: &ProduceRules) {
    let stored = valid.to_bytes(0, 7);
    let header = BatchHeader::parse(&stored).expect("an accepted batch has a header");
    assert!(crc_ok(&stored) && header.size_in_bytes() == stored.len());
    assert_eq!(header.max_timestamp, valid.max_timestamp());
    let codec = header.compression().expect("an accepted batch has a codec");
    let body = decompress(codec, valid.body(), DECOMPRESSED_BYTES_MAX);
    let body = body.expect("an accepted batch can be decompressed");
    let records: Result<Vec<_>, _> = RecordIter::new(&body, header.count).collect();
    let records = records.expect("an accepted batch has whole records");
    assert_eq!(records.len(), header.count as usize);
    if header.timestamp_type() == TimestampType::CreateTime {
        let timestamps = records.iter().map(|each| header.record_timestamp(each.timestamp_delta));
        assert_eq!(timestamps.max().map(|latest| latest.max(-1)), Some(header.max_timestamp));
        let again = validate_for_append(stored.clone(), rules);
        assert_eq!(again.map(|again| again.to_bytes(0, 7)), Ok(stored), "not accepted twice");
    }
}

/// A refusal for the structure of its records must be one that the iterator shares.
fn refused(raw: &Bytes, error: &Rejection) {
    let Rejection::Structure(_) = error else { return };
    let header = BatchHeader::parse(raw).expect("its records were read");
    let codec = header.compression().expect("its records were read");
    let payload = &raw[HEADER_BYTES..header.size_in_bytes()];
    if let Ok(body) = decompress(codec, payload, DECOMPRESSED_BYTES_MAX) {
        assert!(RecordIter::new(&body, header.count).any(|record| record.is_err()), "{error}");
    }
}
