//! Against an independent implementation of the format, in both directions.

use bytes::{Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    self as theirs, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use protocol::batch::{
    BatchBuilder, BatchHeader, Codec, Compression, HEADER_BYTES, NewRecord, RecordIter,
    TimestampType, compress, decompress, validate_for_append,
};

use crate::forge::rules;

#[derive(Clone, Debug)]
struct Sample {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    header: Option<(String, Option<Vec<u8>>)>,
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let bytes = || option::of(vec(any::<u8>(), 0..50));
    let header = option::of((".{0,10}", bytes()));
    let sample = (0..1_600_000_000_000_i64, bytes(), bytes(), header);
    let build = |(timestamp, key, value, header)| Sample { timestamp, key, value, header };
    vec(sample.prop_map(build), 1..30)
}

fn our_codec(compression: theirs::Compression) -> Codec {
    match compression {
        theirs::Compression::None => Codec::None,
        theirs::Compression::Gzip => Codec::Gzip,
        theirs::Compression::Snappy => Codec::Snappy,
        theirs::Compression::Lz4 => Codec::Lz4,
        theirs::Compression::Zstd => Codec::Zstd,
    }
}

fn their_codec(codec: Codec) -> theirs::Compression {
    match codec {
        Codec::None => theirs::Compression::None,
        Codec::Gzip => theirs::Compression::Gzip,
        Codec::Snappy => theirs::Compression::Snappy,
        Codec::Lz4 => theirs::Compression::Lz4,
        Codec::Zstd => theirs::Compression::Zstd,
    }
}

fn ours(samples: &[Sample], codec: Codec) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::of(codec))
        .producer(4_711, 3, 100)
        .transactional()
        .base_offset(0)
        .leader_epoch(6);
    for sample in samples {
        let headers: Vec<_> =
            sample.header.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
        builder.append(&NewRecord {
            timestamp: sample.timestamp,
            key: sample.key.as_deref(),
            value: sample.value.as_deref(),
            headers: &headers,
        });
    }
    builder.build()
}

fn their_record(sample: &Sample, index: usize) -> Record {
    let mut record = Record {
        transactional: true,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 6,
        producer_id: 4_711,
        producer_epoch: 3,
        timestamp_type: theirs::TimestampType::Creation,
        offset: index as i64,
        sequence: 100 + index as i32,
        timestamp: sample.timestamp,
        key: sample.key.clone().map(Bytes::from),
        value: sample.value.clone().map(Bytes::from),
        headers: Default::default(),
    };
    if let Some((key, value)) = &sample.header {
        record.headers.insert(StrBytes::from(key.clone()), value.clone().map(Bytes::from));
    }
    record
}

proptest! {
    #[test]
    fn they_read_what_we_build(samples in samples(), id in 0_u8..5) {
        let codec = Codec::from_id(id).unwrap();
        let mut batch = ours(&samples, codec);
        let unpack = |packed: &mut Bytes, compression| {
            Ok(decompress(our_codec(compression), packed, 1 << 20).map(Bytes::from)?)
        };
        let set = RecordBatchDecoder::decode_with_custom_compression(&mut batch, Some(unpack));
        let set = set.unwrap();
        prop_assert_eq!(set.compression, their_codec(codec));
        prop_assert_eq!(set.records.len(), samples.len());
        for (index, (read, sample)) in set.records.iter().zip(&samples).enumerate() {
            prop_assert_eq!(read, &their_record(sample, index));
        }
        prop_assert!(batch.is_empty());
    }

    #[test]
    fn we_read_what_they_build(samples in samples(), id in 0_u8..5) {
        let codec = Codec::from_id(id).unwrap();
        let records: Vec<_> =
            samples.iter().enumerate().map(|(index, sample)| their_record(sample, index)).collect();
        let options = RecordEncodeOptions { version: 2, compression: their_codec(codec) };
        let mut batch = BytesMut::new();
        let pack = |body: &mut BytesMut, out: &mut BytesMut, compression| {
            let compression = Compression::of(our_codec(compression));
            out.extend_from_slice(&compress(compression, body));
            Ok(())
        };
        let pack = Some(pack);
        RecordBatchEncoder::encode_with_custom_compression(&mut batch, &records, &options, pack)
            .unwrap();
        let batch = batch.freeze();

        let valid = validate_for_append(batch.clone(), &rules()).unwrap();
        prop_assert_eq!(valid.to_bytes(0, 6), batch.clone());
        let header = BatchHeader::parse(&batch).unwrap();
        prop_assert_eq!(header.timestamp_type(), TimestampType::CreateTime);
        prop_assert_eq!((header.producer_id, header.base_sequence), (4_711, 100));
        let body = decompress(codec, &batch[HEADER_BYTES..], 1 << 20).unwrap();
        let read: Vec<_> = RecordIter::new(&body, header.count).collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(read.len(), samples.len());
        for (record, sample) in read.iter().zip(&samples) {
            prop_assert_eq!(header.record_timestamp(record.timestamp_delta), sample.timestamp);
            prop_assert_eq!(record.key, sample.key.as_deref());
            prop_assert_eq!(record.value, sample.value.as_deref());
            let header = record.headers.clone().next();
            let found = header.map(|header| (header.key, header.value));
            let sent = sample.header.as_ref();
            prop_assert_eq!(found, sent.map(|(key, value)| (key.as_bytes(), value.as_deref())));
        }
    }
}
