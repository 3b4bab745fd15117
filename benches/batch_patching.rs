//! What it costs to stamp a batch on its way into the log: base offset and leader epoch in place,
//! the whole header beside its records, and the time of the append without reading them again.
//!
//! `cargo bench --bench batch_patching`

#![expect(clippy::expect_used, reason = "a benchmark on wrong input shall fail")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use protocol::batch::header::{set_base_offset, set_leader_epoch, set_max_timestamp};
use protocol::batch::{
    BatchBuilder, BatchHeader, Compression, NewRecord, ProduceRules, TimestampType,
    validate_for_append,
};

const NOW_MS: i64 = 1_700_000_000_000;

fn bench(criterion: &mut Criterion) {
    let value = vec![b'v'; 64 << 10];
    let mut builder = BatchBuilder::new(Compression::None);
    builder.append(&NewRecord { timestamp: 1, value: Some(&value), ..NewRecord::default() });
    let batch = builder.build();
    let mut bytes = batch.to_vec();

    let mut group = criterion.benchmark_group("patch a batch of 64 KiB");
    group.bench_function("parse the header", |bencher| {
        bencher.iter(|| BatchHeader::parse(black_box(&batch)));
    });
    group.bench_function("offset and epoch in place", |bencher| {
        bencher.iter(|| {
            set_base_offset(black_box(&mut bytes), 42);
            set_leader_epoch(black_box(&mut bytes), 7);
        });
    });
    group.bench_function("time and checksum in place", |bencher| {
        let kind = TimestampType::LogAppendTime;
        bencher.iter(|| set_max_timestamp(black_box(&mut bytes), kind, NOW_MS));
    });
    let rules = ProduceRules {
        timestamp_type: TimestampType::LogAppendTime,
        ..ProduceRules::of_default_topic(NOW_MS)
    };
    group.bench_function("validate and stamp the time", |bencher| {
        bencher.iter(|| validate_for_append(black_box(batch.clone()), &rules));
    });
    let valid = validate_for_append(batch.clone(), &rules).expect("an honest batch");
    group.bench_function("encode the stored header", |bencher| {
        bencher.iter(|| black_box(&valid).encode_header(42, 7));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
