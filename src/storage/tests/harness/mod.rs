//! What every scenario needs: a core to run on, a fresh directory, batches that can be told apart.

#![expect(clippy::unwrap_used, reason = "a scenario ends where its world does not work")]

use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use protocol::Uuid;
use protocol::batch::compression::Compression;
use protocol::batch::{BatchBuilder, BatchHeader, Codec, NewRecord, ValidBatch};
use runtime::local::Budget;
use runtime::{Config, Exit};
use storage::{Appended, Log, LogOptions, ReadChunk, RecoveryReport, Storage, StorageConfig};

pub const TOPIC_ID: Uuid = Uuid([7; 16]);
pub const NOW_MS: i64 = 1_700_000_000_000;

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Runs a scenario on one core, in an empty data directory that is removed when it succeeds.
pub fn run<F, Fut>(scenario: F)
where
    F: Fn(PathBuf) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("storage-{}-{number}", std::process::id());
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let data_dir = dir.clone();
    let exit = runtime::run::<(), _, _>(Config::new(vec![number % 2]), move |_core| {
        let (scenario, dir) = (scenario.clone(), data_dir.clone());
        async move {
            runtime::fs::create_dir_all(&dir).await.unwrap();
            scenario(dir.clone()).await;
            Exit::Clean
        }
    });
    assert_eq!(exit, Exit::Clean);
    // Only now nothing new begins in the background. A simulated disk is simply gone.
    while cfg!(not(sim)) && std::fs::remove_dir_all(&dir).is_err() {
        std::thread::yield_now();
    }
}

/// A slot's storage with `budget` bytes of memory.
pub fn storage_with(dir: &Path, budget: usize) -> Storage {
    Storage::new(StorageConfig::new(dir.to_path_buf(), Budget::new(budget)))
}

pub fn storage(dir: &Path) -> Storage {
    storage_with(dir, 64 << 20)
}

pub fn options() -> Rc<LogOptions> {
    Rc::new(LogOptions::default())
}

pub async fn create(storage: &Storage, options: LogOptions) -> Log {
    storage.create_log("orders", 0, TOPIC_ID, Rc::new(options)).await.unwrap()
}

pub async fn open(storage: &Storage, options: LogOptions) -> (Log, RecoveryReport) {
    storage.open_log("orders", 0, TOPIC_ID, Rc::new(options)).await.unwrap()
}

/// `count` records of `size` bytes each, not compressible by accident: the value tells its number.
pub fn batch(first: u64, count: u64, size: usize) -> ValidBatch {
    batch_at(first, count, size, NOW_MS)
}

pub fn batch_at(first: u64, count: u64, size: usize, timestamp: i64) -> ValidBatch {
    built(BatchBuilder::new(Compression::of(Codec::None)), first, count, size, timestamp)
}

pub fn built(
    mut builder: BatchBuilder,
    first: u64,
    count: u64,
    size: usize,
    timestamp: i64,
) -> ValidBatch {
    for number in first..first + count {
        let value = value_of(number, size);
        builder.append(&NewRecord { timestamp, value: Some(&value), ..NewRecord::default() });
    }
    ValidBatch::built_here(builder.build()).unwrap()
}

pub fn value_of(number: u64, size: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut value = number.to_be_bytes().to_vec();
    while value.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        value.push((state >> 32) as u8 | 1);
    }
    value.truncate(size.max(8));
    value
}

/// Appends and waits until it is committed.
pub async fn append(log: &Log, batch: &ValidBatch) -> Appended {
    let appended = log.append(batch, 0, NOW_MS).await.unwrap();
    log.committed(appended.last_offset + 1).await.unwrap();
    appended
}

/// All batches from `offset` to the committed end.
pub async fn read_all(log: &Log, mut offset: i64) -> Vec<(BatchHeader, Bytes)> {
    let mut batches = Vec::new();
    let end = log.committed_end();
    while offset < end {
        let chunk = log.read(offset, 1 << 20, end, true).await.unwrap();
        assert!(chunk.bytes > 0, "nothing at {offset} of {end}");
        batches.extend(split(&chunk));
        offset = chunk.next_offset;
    }
    batches
}

pub fn joined(chunk: &ReadChunk) -> Bytes {
    let bytes: Vec<u8> = chunk.slices.iter().flat_map(|slice| slice.iter().copied()).collect();
    assert_eq!(bytes.len(), chunk.bytes);
    bytes.into()
}

pub fn split(chunk: &ReadChunk) -> Vec<(BatchHeader, Bytes)> {
    protocol::batch::Batches::of(joined(chunk)).map(|batch| batch.unwrap()).collect()
}

/// The offsets are dense and every checksum is right.
pub fn assert_whole(batches: &[(BatchHeader, Bytes)], from: i64, to: i64) {
    let mut next = from;
    for (header, bytes) in batches {
        assert_eq!(header.base_offset, next);
        assert!(protocol::batch::header::crc_ok(bytes));
        next = header.last_offset() + 1;
    }
    assert_eq!(next, to);
}

/// Changes a file as a bad disk would.
pub async fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = runtime::fs::read(path).await.unwrap();
    change(&mut bytes);
    runtime::fs::write_atomic(path, &bytes).await.unwrap();
}

/// The file of the segment that begins at `base`.
pub fn segment(dir: &Path, base: i64) -> PathBuf {
    dir.join("orders-0").join(format!("{base:020}.log"))
}

pub fn file(dir: &Path, name: &str) -> PathBuf {
    dir.join("orders-0").join(name)
}

/// Names of the files of the log, sorted.
pub async fn files(dir: &Path) -> Vec<String> {
    let entries = runtime::fs::list(dir.join("orders-0")).await.unwrap();
    entries.into_iter().map(|entry| entry.name).collect()
}

/// Waits until `condition` holds, for no more than ten seconds.
pub async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let deadline = runtime::time::now() + std::time::Duration::from_secs(10);
    while !condition().await {
        assert!(runtime::time::now() < deadline, "waited in vain: {what}");
        runtime::task::yield_now().await;
    }
}
