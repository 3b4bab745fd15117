//! What it costs to read a request: header and body of a produce request with its records left
//! as slices, and of a fetch request with many partitions.
//!
//! `cargo bench --bench frame_decode`

#![expect(clippy::expect_used, reason = "a benchmark on wrong input shall fail")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use protocol::batch::{BatchBuilder, Compression, NewRecord};
use protocol::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};
use protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use protocol::{Decoder, Encoder, Message, RequestHeader};

fn frame<M: Message>(body: &M, version: i16) -> Bytes {
    let header = RequestHeader {
        api_key: M::KEY.number(),
        api_version: version,
        correlation_id: 1,
        client_id: Some("bench".into()),
    };
    let mut encoder = Encoder::new();
    header.encode(&mut encoder);
    body.encode(&mut encoder, version);
    encoder.finish_contiguous()
}

fn produce(value_bytes: usize) -> Bytes {
    let value = vec![b'v'; value_bytes];
    let mut builder = BatchBuilder::new(Compression::None);
    builder.append(&NewRecord { value: Some(&value), ..NewRecord::default() });
    let partition = PartitionProduceData {
        records: Some(builder.build().into()),
        ..PartitionProduceData::default()
    };
    let topic = TopicProduceData {
        name: "orders".into(),
        partition_data: vec![partition],
        ..TopicProduceData::default()
    };
    let request = ProduceRequest { topic_data: vec![topic], ..ProduceRequest::default() };
    frame(&request, 9)
}

fn fetch(partitions: i32) -> Bytes {
    let partitions = (0..partitions)
        .map(|partition| FetchPartition { partition, fetch_offset: 7, ..Default::default() })
        .collect();
    let topic = FetchTopic { topic: "orders".into(), partitions, ..FetchTopic::default() };
    frame(&FetchRequest { topics: vec![topic], ..FetchRequest::default() }, 12)
}

fn decode<M: Message>(frame: &Bytes) -> M {
    let mut decoder = Decoder::new(frame.clone());
    let header = RequestHeader::decode(&mut decoder).expect("a header");
    M::decode(&mut decoder, header.api_version).expect("a body")
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode produce");
    for value_bytes in [1 << 10, 64 << 10, 1 << 20] {
        let frame = produce(value_bytes);
        group.throughput(Throughput::Bytes(frame.len() as u64));
        group.bench_with_input(
            BenchmarkId::from_parameter(value_bytes),
            &frame,
            |bencher, frame| {
                bencher.iter(|| decode::<ProduceRequest>(black_box(frame)));
            },
        );
    }
    group.finish();
    let mut group = criterion.benchmark_group("decode fetch");
    for partitions in [1, 100, 10_000] {
        let frame = fetch(partitions);
        group.throughput(Throughput::Elements(partitions as u64));
        group.bench_with_input(
            BenchmarkId::from_parameter(partitions),
            &frame,
            |bencher, frame| {
                bencher.iter(|| decode::<FetchRequest>(black_box(frame)));
            },
        );
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
