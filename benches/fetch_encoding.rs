//! What it costs to write a fetch answer: only the parts around the records are encoded, the
//! records themselves are spliced in as the slices that the log gave.
//!
//! `cargo bench --bench fetch_encoding`

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use protocol::messages::fetch::{FetchResponse, FetchableTopicResponse, PartitionData};
use protocol::{ApiKey, Encoder, Message, ResponseHeader};

const VERSION: i16 = 17;

fn answer(partitions: i32, bytes: usize) -> FetchResponse {
    let records = Bytes::from(vec![0; bytes]);
    let partition = |partition_index| PartitionData {
        partition_index,
        high_watermark: 1_000,
        last_stable_offset: 1_000,
        log_start_offset: 0,
        records: Some(records.clone().into()),
        ..PartitionData::default()
    };
    let topic = FetchableTopicResponse {
        partitions: (0..partitions).map(partition).collect(),
        ..FetchableTopicResponse::default()
    };
    FetchResponse { responses: vec![topic], ..FetchResponse::default() }
}

fn encode(answer: &FetchResponse) -> Vec<Bytes> {
    let mut encoder = Encoder::framed(256);
    ResponseHeader { correlation_id: 1 }.encode(&mut encoder, ApiKey::Fetch, VERSION);
    answer.encode(&mut encoder, VERSION);
    encoder.finish()
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode a fetch answer");
    for (partitions, bytes) in [(1, 1 << 10), (1, 1 << 20), (100, 10 << 10), (5_000, 0)] {
        let answer = answer(partitions, bytes);
        group.throughput(Throughput::Elements(partitions as u64));
        let id = BenchmarkId::new(format!("{bytes} bytes each"), partitions);
        group.bench_with_input(id, &answer, |bencher, answer| {
            bencher.iter(|| encode(black_box(answer)));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
