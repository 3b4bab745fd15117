//! What a commit costs from append to durable, on the file system of `target/`: one batch at a
//! time, which is the device's own latency, and many at once, which share writes.
//!
//! `cargo bench --bench log_commit`

#![expect(clippy::expect_used, reason = "a benchmark on a broken disk shall fail")]

use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use protocol::Uuid;
use protocol::batch::{BatchBuilder, Compression, NewRecord, ValidBatch};
use runtime::local::Budget;
use runtime::{Config, Exit};
use storage::{LogOptions, Storage, StorageConfig};

const TOPIC_ID: Uuid = Uuid([9; 16]);

/// Appends `rounds` times `together` batches of `bytes` and waits for each round to be durable.
async fn commits(dir: &Path, rounds: u64, together: u64, bytes: usize) -> Duration {
    let value = vec![7; bytes];
    let mut builder = BatchBuilder::new(Compression::None);
    builder.append(&NewRecord { value: Some(&value), ..NewRecord::default() });
    let batch = ValidBatch::built_here(builder.build()).expect("a batch of our own");
    let storage = Storage::new(StorageConfig::new(dir.to_path_buf(), Budget::new(64 << 20)));
    let options = Rc::new(LogOptions::default());
    let log = storage.create_log("bench", 0, TOPIC_ID, options).await.expect("a new log");
    let begin = Instant::now();
    for _ in 0..rounds {
        let mut end = 0;
        for _ in 0..together {
            end = log.append(&batch, 0, 0).await.expect("an append").last_offset + 1;
        }
        log.committed(end).await.expect("a commit");
    }
    let took = begin.elapsed();
    log.close().await;
    took
}

fn on_a_core(rounds: u64, together: u64, bytes: usize) -> Duration {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("log-commit");
    std::fs::create_dir_all(&dir).expect("a folder for the log");
    let (sender, receiver) = mpsc::channel();
    let data_dir = dir.clone();
    let exit = runtime::run::<(), _, _>(Config::new(vec![0]), move |_core| {
        let (sender, data_dir) = (sender.clone(), data_dir.clone());
        async move {
            let took = commits(&data_dir, rounds, together, bytes).await;
            sender.send(took).expect("the benchmark waits");
            Exit::Clean
        }
    });
    assert_eq!(exit, Exit::Clean);
    std::fs::remove_dir_all(&dir).expect("the folder can be removed");
    receiver.recv().expect("a duration")
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append until durable");
    group.sample_size(10);
    for (together, bytes) in [(1, 1 << 10), (1, 64 << 10), (64, 1 << 10), (16, 64 << 10)] {
        group.throughput(Throughput::Bytes(together * bytes as u64));
        let id = BenchmarkId::new(format!("{together} batches"), bytes);
        group.bench_function(id, |bencher| {
            bencher.iter_custom(|rounds| on_a_core(rounds, together, bytes));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
