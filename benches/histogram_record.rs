//! What it costs to count: one latency into a histogram, one request into a counter, and the text
//! of a scrape.
//!
//! `cargo bench --bench histogram_record`

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use metrics::{Counter, Histogram};

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("metrics");
    let histogram = Histogram::default();
    let mut nanos = 1_u64;
    group.bench_function("record a latency", |bencher| {
        bencher.iter(|| {
            nanos = nanos.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            histogram.record_nanos(black_box(nanos >> 40));
        });
    });
    let counter = Counter::default();
    group.bench_function("count a request", |bencher| {
        bencher.iter(|| black_box(&counter).increment());
    });
    group.bench_function("cumulate the buckets", |bencher| {
        bencher.iter(|| black_box(&histogram).cumulative());
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
