//! What it costs to judge a produced batch, by codec and size, and to recompress it: the part of
//! a produce request that grows with its bytes.
//!
//! `cargo bench --bench produce_validation`. The constants of `estimated_micros` come from here.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use protocol::batch::{
    BatchBuilder, Codec, Compression, CompressionPolicy, NewRecord, ProduceRules, estimated_micros,
    validate_for_append,
};

const NOW_MS: i64 = 1_700_000_000_000;
const SMALL_RECORD_BYTES: usize = 108;

/// Records of about 1 KiB that compress to a third or so.
fn batch(compression: Compression, bytes: usize) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    let mut state = 7_u64;
    while builder.uncompressed_bytes() < bytes {
        let mut value = String::new();
        while value.len() < 1_000.min(bytes) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            value.push_str(&format!("{{\"id\":{},\"state\":\"open\"}},", state >> 40));
        }
        let value = Some(value.as_bytes());
        builder.append(&NewRecord { timestamp: NOW_MS, key: Some(b"key"), value, headers: &[] });
    }
    builder.build()
}

/// Records of 100 bytes, their overhead not counted.
fn small_records(compression: Compression, bytes: usize) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    for number in 0..bytes / SMALL_RECORD_BYTES {
        let value = [number as u8; 100];
        let timestamp = NOW_MS + number as i64;
        builder.append(&NewRecord { timestamp, key: None, value: Some(&value), headers: &[] });
    }
    builder.build()
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("validate");
    for codec in Codec::ALL {
        for bytes in [1 << 10, 64 << 10, 900 << 10] {
            let batch = batch(Compression::of(codec), bytes);
            let rules = ProduceRules::of_default_topic(NOW_MS);
            println!("estimated: {} µs", estimated_micros(&batch, &rules));
            group.throughput(Throughput::Bytes(batch.len() as u64));
            let id = BenchmarkId::new(codec.name(), bytes);
            group.bench_with_input(id, &batch, |bencher, batch| {
                bencher.iter(|| validate_for_append(black_box(batch.clone()), &rules));
            });
        }
    }
    group.finish();
    let mut group = criterion.benchmark_group("validate 100-byte records");
    for (bytes, codec) in [(16 << 10, Codec::None), (16 << 10, Codec::Lz4)] {
        let batch = small_records(Compression::of(codec), bytes);
        let rules = ProduceRules::of_default_topic(NOW_MS);
        group.throughput(Throughput::Elements((bytes / SMALL_RECORD_BYTES) as u64));
        group.bench_with_input(BenchmarkId::new(codec.name(), bytes), &batch, |bencher, batch| {
            bencher.iter(|| validate_for_append(black_box(batch.clone()), &rules));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("recompress 64 KiB");
    let plain = batch(Compression::None, 64 << 10);
    group.throughput(Throughput::Bytes(plain.len() as u64));
    for target in [
        Compression::Snappy,
        Compression::of(Codec::Lz4),
        Compression::Lz4 { level: 12 },
        Compression::of(Codec::Zstd),
        Compression::Zstd { level: 19 },
        Compression::of(Codec::Gzip),
        Compression::Gzip { level: 9 },
    ] {
        let rules = ProduceRules {
            compression: CompressionPolicy::Fixed(target),
            ..ProduceRules::of_default_topic(NOW_MS)
        };
        println!("estimated: {} µs", estimated_micros(&plain, &rules));
        group.bench_function(format!("{target:?}"), |bencher| {
            bencher.iter(|| validate_for_append(black_box(plain.clone()), &rules));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
