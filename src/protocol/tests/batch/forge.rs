//! Batches made to order, honest and forged: every header field can be forced, and the checksum
//! is right unless a test breaks it.

use bytes::Bytes;
use protocol::batch::header::{CRC_AT, crc_of};
use protocol::batch::{
    BatchBuilder, BatchHeader, Codec, Compression, HEADER_BYTES, NewRecord, ProduceRules,
    TimestampType, compress,
};

pub const NOW_MS: i64 = 1_700_000_000_000;

pub fn rules() -> ProduceRules {
    ProduceRules::of_default_topic(NOW_MS)
}

pub fn log_append_time_rules() -> ProduceRules {
    ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..rules() }
}

pub fn record(value: &str) -> NewRecord<'_> {
    NewRecord { timestamp: NOW_MS, key: Some(b"key"), value: Some(value.as_bytes()), headers: &[] }
}

pub fn record_at(timestamp: i64) -> NewRecord<'static> {
    NewRecord { timestamp, ..record("value") }
}

pub fn batch_of(compression: Compression, records: &[NewRecord<'_>]) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    for record in records {
        builder.append(record);
    }
    builder.build()
}

/// `count` records that compress well, some with headers and nulls.
pub fn varied(compression: Compression, count: usize) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    for index in 0..count {
        let key = format!("key {}", index % 7);
        let value = format!("value {index} ").repeat(index % 50);
        builder.append(&NewRecord {
            timestamp: NOW_MS - 1_000 + (index as i64 * 37) % 500,
            key: (index % 3 > 0).then_some(key.as_bytes()),
            value: (index % 11 > 0).then_some(value.as_bytes()),
            headers: if index % 4 == 0 {
                &[("trace", Some(b"0af7")), ("empty", None)]
            } else {
                &[]
            },
        });
    }
    builder.build()
}

/// The same batch with its header changed and the checksum renewed.
pub fn forged(batch: &Bytes, change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let mut header = BatchHeader::parse(batch).unwrap();
    change(&mut header);
    let mut forged = batch.to_vec();
    forged[..HEADER_BYTES].copy_from_slice(&header.encode());
    renew_checksum(&mut forged);
    forged.into()
}

/// A batch with these bytes where the (compressed) records should be.
pub fn with_payload(codec: Codec, count: i32, payload: &[u8]) -> Bytes {
    let mut batch = batch_of(Compression::None, &[record_at(NOW_MS)])[..HEADER_BYTES].to_vec();
    batch.extend_from_slice(payload);
    let mut header = BatchHeader::parse_prefix(&batch).unwrap();
    header.batch_length = (batch.len() - 12) as i32;
    header.attributes = i16::from(codec.id());
    header.count = count;
    header.last_offset_delta = count.wrapping_sub(1);
    batch[..HEADER_BYTES].copy_from_slice(&header.encode());
    renew_checksum(&mut batch);
    batch.into()
}

/// The same records with the body changed, compressed by the codec.
pub fn with_body(codec: Codec, count: i32, body: &[u8]) -> Bytes {
    with_payload(codec, count, &compress(Compression::of(codec), body))
}

pub fn renew_checksum(batch: &mut [u8]) {
    let crc = crc_of(batch);
    batch[CRC_AT..][..4].copy_from_slice(&crc.to_be_bytes());
}

pub fn varint(value: i64) -> Vec<u8> {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    let mut out = Vec::new();
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    out
}

/// A record from numbers that may lie: `tail` is everything behind the offset delta.
pub fn raw_record(timestamp_delta: i64, offset_delta: i64, tail: &[u8]) -> Vec<u8> {
    let mut inner = vec![0];
    inner.extend(varint(timestamp_delta));
    inner.extend(varint(offset_delta));
    inner.extend_from_slice(tail);
    let mut out = varint(inner.len() as i64);
    out.extend(inner);
    out
}

/// Null key, value `v`, no headers.
pub const PLAIN_TAIL: [u8; 4] = [1, 2, b'v', 0];
