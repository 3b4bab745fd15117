//! The header: fields, patches in place, checksum; whole batches out of a run of bytes.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use protocol::batch::header::{crc_ok, set_base_offset, set_leader_epoch, set_max_timestamp};
use protocol::batch::{
    BatchBuilder, BatchError, BatchHeader, Batches, Codec, Compression, HEADER_BYTES, TimestampType,
};

use crate::forge::{batch_of, forged, record, varied};

#[test]
fn the_header_of_a_known_batch_is_read_field_by_field() {
    // One record with the value "hello" of producer 7, epoch 3, sequence 11, written out by hand.
    let mut bytes = Vec::new();
    bytes.extend(5_i64.to_be_bytes());
    bytes.extend(61_i32.to_be_bytes());
    bytes.extend(9_i32.to_be_bytes());
    bytes.push(2);
    bytes.extend([0; 4]);
    bytes.extend(0x10_i16.to_be_bytes());
    bytes.extend(0_i32.to_be_bytes());
    bytes.extend(1_000_i64.to_be_bytes());
    bytes.extend(1_000_i64.to_be_bytes());
    bytes.extend(7_i64.to_be_bytes());
    bytes.extend(3_i16.to_be_bytes());
    bytes.extend(11_i32.to_be_bytes());
    bytes.extend(1_i32.to_be_bytes());
    bytes.extend([22, 0, 0, 0, 1, 10]);
    bytes.extend(b"hello\0");

    let header = BatchHeader::parse(&bytes).unwrap();
    assert_eq!((header.base_offset, header.partition_leader_epoch), (5, 9));
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (7, 3, 11));
    assert_eq!((header.base_timestamp, header.max_timestamp, header.count), (1_000, 1_000, 1));
    assert_eq!((header.size_in_bytes(), header.last_offset(), header.next_offset()), (73, 5, 6));
    assert_eq!(header.compression(), Ok(Codec::None));
    assert_eq!(header.timestamp_type(), TimestampType::CreateTime);
    assert!(header.is_transactional() && !header.is_control() && header.has_producer());
    assert_eq!(header.encode(), bytes[..HEADER_BYTES]);
    assert!(!crc_ok(&bytes));
}

/// Castagnoli's polynomial, on the published check value, guards against the other CRC-32.
#[test]
fn the_checksum_is_crc_32c() {
    let mut batch = vec![0; 21];
    batch.extend_from_slice(b"123456789");
    assert_eq!(protocol::batch::header::crc_of(&batch), 0xe306_9283);
}

#[test]
fn bytes_that_hold_no_batch_are_named() {
    let batch = batch_of(Compression::None, &[record("x")]);
    let size = batch.len();
    let with_length = |length: i32| {
        let mut bytes = batch.to_vec();
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        BatchHeader::parse(&bytes)
    };
    assert_eq!(BatchHeader::parse(&batch[..60]), Err(BatchError::Short { available: 60 }));
    assert_eq!(
        BatchHeader::parse(&batch[..size - 1]),
        Err(BatchError::Incomplete { size, available: size - 1 })
    );
    for length in [i32::MIN, -1, 0, 48, i32::MAX - 11, i32::MAX] {
        assert_eq!(with_length(length), Err(BatchError::Length(length)));
    }
    let mut old = batch.to_vec();
    old[16] = 1;
    assert_eq!(BatchHeader::parse(&old), Err(BatchError::Magic(1)));
    assert_eq!(BatchError::Magic(1).code(), 2);
}

/// The leader epoch is the broker's and outside the checksum (Kafka protocol behaviour 37).
#[test]
fn offset_and_epoch_are_patched_without_a_new_checksum() {
    let mut batch = BytesMut::from(&varied(Compression::None, 20)[..]);
    let crc = BatchHeader::parse(&batch).unwrap().crc;
    set_base_offset(&mut batch, i64::MAX - 30);
    set_leader_epoch(&mut batch, 77);
    let header = BatchHeader::parse(&batch).unwrap();
    assert_eq!((header.base_offset, header.partition_leader_epoch), (i64::MAX - 30, 77));
    assert_eq!(header.crc, crc);
    assert!(crc_ok(&batch));
}

#[test]
fn a_new_max_timestamp_renews_the_checksum() {
    let mut batch = BytesMut::from(&varied(Compression::None, 20)[..]);
    for (kind, timestamp) in [(TimestampType::LogAppendTime, 12), (TimestampType::CreateTime, -1)] {
        set_max_timestamp(&mut batch, kind, timestamp);
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!((header.timestamp_type(), header.max_timestamp), (kind, timestamp));
        assert!(crc_ok(&batch));
    }
}

/// Kafka protocol behaviour 39: sequences wrap from 2^31-1 to 0.
#[test]
fn the_last_sequence_wraps() {
    let five = BatchBuilder::new(Compression::None).producer(1, 0, i32::MAX - 2);
    let mut header = BatchHeader::parse(&five.build()).unwrap();
    for (delta, last) in [(0, i32::MAX - 2), (2, i32::MAX), (3, 0), (4, 1)] {
        header.last_offset_delta = delta;
        assert_eq!(header.last_sequence(), last);
    }
    header.base_sequence = -1;
    assert_eq!(header.last_sequence(), -1);
}

#[test]
fn offsets_at_the_end_of_their_range_do_not_wrap() {
    let mut header = BatchHeader::parse(&varied(Compression::None, 3)).unwrap();
    header.base_offset = i64::MAX - 1;
    assert_eq!(header.last_offset(), i64::MAX);
    assert_eq!(header.next_offset(), i64::MAX);
}

#[test]
fn batches_are_cut_out_of_a_run_and_share_its_memory() {
    let parts = [varied(Compression::None, 3), varied(Compression::of(Codec::Zstd), 30)];
    let mut run = BytesMut::new();
    parts.iter().for_each(|part| run.extend_from_slice(part));
    let run = run.freeze();
    let found: Vec<Bytes> = Batches::of(run.clone()).map(|item| item.unwrap().1).collect();
    assert_eq!(found, parts);
    assert_eq!(found[0].as_ptr(), run.as_ptr());

    let mut torn = Batches::of(run.slice(..run.len() - 1));
    assert!(torn.next().unwrap().is_ok());
    assert!(matches!(torn.next(), Some(Err(BatchError::Incomplete { .. }))));
    assert!(torn.next().is_none());
    assert_eq!(torn.rest().len(), parts[1].len() - 1);
}

#[test]
fn the_delete_horizon_is_read_from_the_base_timestamp() {
    let batch = forged(&varied(Compression::None, 1), |header| header.base_timestamp = 123);
    assert_eq!(BatchHeader::parse(&batch).unwrap().delete_horizon_ms(), None);
    let batch = forged(&batch, |header| header.attributes |= 1 << 6);
    assert_eq!(BatchHeader::parse(&batch).unwrap().delete_horizon_ms(), Some(123));
}

/// Hostile input H20: no single flipped bit behind the length, the epoch and the format version
/// keeps the checksum right.
#[test]
fn every_flipped_bit_is_seen_by_the_checksum() {
    let batch = varied(Compression::of(Codec::Lz4), 12);
    for at in 17..batch.len() {
        for bit in 0..8 {
            let mut flipped = batch.to_vec();
            flipped[at] ^= 1 << bit;
            assert!(!crc_ok(&flipped), "bit {bit} of byte {at}");
        }
    }
}

proptest! {
    #[test]
    fn headers_survive_encoding(fields in any::<[u8; 49]>(), length in 49_i32..2_147_483_635) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[12..].copy_from_slice(&fields);
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[16] = 2;
        let header = BatchHeader::parse_prefix(&bytes).unwrap();
        prop_assert_eq!(header.encode(), bytes);
    }

    #[test]
    fn foreign_bytes_never_make_the_iterator_fail(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = Bytes::from(bytes);
        let found: usize = Batches::of(bytes.clone()).flatten().map(|(_, batch)| batch.len()).sum();
        prop_assert!(found <= bytes.len());
    }
}
