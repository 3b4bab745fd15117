//! What it costs to find a position in a segment's indexes, by offset and by timestamp, in
//! indexes of a full segment, and to feed them one batch more.
//!
//! `cargo bench --bench index_lookup`

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use storage::index::{IndexPolicy, IndexedBatch, SegmentIndex};

const BATCH_BYTES: u32 = 5_000;
const POLICY: IndexPolicy = IndexPolicy { interval_bytes: 4_096, bytes_max: 10 << 20 };

fn nth_batch(number: u32) -> IndexedBatch {
    IndexedBatch {
        last_offset: i64::from(number) * 10 + 9,
        position: number * BATCH_BYTES,
        size_bytes: BATCH_BYTES,
        max_timestamp: i64::from(number) * 3,
    }
}

fn index_of(batches: u32) -> SegmentIndex {
    let mut index = SegmentIndex::new(0, POLICY);
    (0..batches).for_each(|number| index.on_batch(nth_batch(number)));
    index
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("index");
    for batches in [100_u32, 200_000] {
        let index = index_of(batches);
        let mut state = 1_u64;
        let mut anywhere = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            i64::from((state >> 33) as u32 % batches)
        };
        group.bench_with_input(BenchmarkId::new("by offset", batches), &index, |bencher, index| {
            bencher.iter(|| index.scan_start_for_offset(black_box(anywhere() * 10)));
        });
        group.bench_with_input(BenchmarkId::new("by time", batches), &index, |bencher, index| {
            bencher.iter(|| index.scan_start_for_timestamp(black_box(anywhere() * 3)));
        });
    }
    group.bench_function("a thousand batches more", |bencher| {
        let add = |mut index: SegmentIndex| {
            (1_000..2_000).for_each(|number| index.on_batch(nth_batch(number)));
            index
        };
        bencher.iter_batched(|| index_of(1_000), add, BatchSize::SmallInput);
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
