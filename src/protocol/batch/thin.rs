//! Taking records out of a stored batch, as compaction does (KIP-98, KIP-534).
//!
//! Law: what stays keeps its offset, timestamp, key, value, headers and order; the batch keeps its
//! first and last offset, its producer and sequence, its leader epoch and its codec. A batch that
//! gets a delete horizon carries it as its base timestamp, which the deltas are made relative to.

use std::io::Write;

use bytes::Bytes;

use super::builder::{sealed, write_nullable};
use super::compression::{Codec, Compression, Encoder};
use super::header::{
    BatchHeader, CODEC_MASK, DELETE_HORIZON_BIT, HEADER_BYTES, NO_TIMESTAMP, TimestampType,
};
use super::record::{RecordError, RecordIter, RecordView};
use super::varint;

/// The batch with those of its records that `keep` says, in order of the records. `body` is what
/// lies behind the header, decompressed. With `delete_horizon_ms` the batch is given that horizon,
/// without it keeps what it has. At least one record must stay.
pub fn thinned(
    header: &BatchHeader,
    body: &[u8],
    keep: &[bool],
    delete_horizon_ms: Option<i64>,
) -> Result<Bytes, RecordError> {
    let kept = keep.iter().filter(|keep| **keep).count();
    assert!(kept > 0, "a batch without records is made by `emptied`");
    let codec = header.compression().unwrap_or(Codec::None);
    let out = vec![0; HEADER_BYTES];
    let mut encoder = Encoder::new(Compression::of(codec), out, usize::MAX, body.len());
    let base_timestamp = delete_horizon_ms.unwrap_or(header.base_timestamp);
    let shift = header.base_timestamp.wrapping_sub(base_timestamp);
    let mut max_timestamp = NO_TIMESTAMP;
    let mut scratch = Vec::new();
    for (record, _) in RecordIter::new(body, header.count).zip(keep).filter(|(_, keep)| **keep) {
        let record = record?;
        max_timestamp = max_timestamp.max(header.record_timestamp(record.timestamp_delta));
        let shifted =
            RecordView { timestamp_delta: record.timestamp_delta.wrapping_add(shift), ..record };
        write_record(&mut scratch, &shifted);
        // Compression into memory fails only at the limit, and there is none.
        if let Err(error) = encoder.write_all(&scratch) {
            unreachable!("compressing into memory failed: {error}");
        }
    }
    let batch = match encoder.finish() {
        Ok(batch) => batch,
        Err(error) => unreachable!("compressing into memory failed: {error}"),
    };
    let mut thinned = BatchHeader { base_timestamp, count: kept as i32, ..*header };
    if header.timestamp_type() == TimestampType::CreateTime {
        thinned.max_timestamp = max_timestamp;
    }
    if delete_horizon_ms.is_some() {
        thinned.attributes |= DELETE_HORIZON_BIT;
    }
    Ok(sealed(thinned, batch))
}

/// The batch without any record: it says which offsets were there, and which sequence numbers of
/// its producer.
pub fn emptied(header: &BatchHeader) -> Bytes {
    let empty = BatchHeader {
        attributes: header.attributes & !(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp: NO_TIMESTAMP,
        count: 0,
        ..*header
    };
    sealed(empty, vec![0; HEADER_BYTES])
}

/// The record with its length in front.
fn write_record(out: &mut Vec<u8>, record: &RecordView<'_>) {
    let headers = || record.headers;
    let nullable = |bytes: Option<&[u8]>| match bytes {
        None => varint::len(-1),
        Some(bytes) => varint::len(bytes.len() as i64) + bytes.len(),
    };
    let in_headers = headers().map(|it| nullable(Some(it.key)) + nullable(it.value)).sum::<usize>();
    let bytes = 1
        + varint::len(record.timestamp_delta)
        + varint::len(i64::from(record.offset_delta))
        + nullable(record.key)
        + nullable(record.value)
        + varint::len(headers().len() as i64)
        + in_headers;
    out.clear();
    varint::write(out, bytes as i64);
    out.push(record.attributes as u8);
    varint::write(out, record.timestamp_delta);
    varint::write(out, i64::from(record.offset_delta));
    write_nullable(out, record.key);
    write_nullable(out, record.value);
    varint::write(out, headers().len() as i64);
    for header in headers() {
        write_nullable(out, Some(header.key));
        write_nullable(out, header.value);
    }
}
