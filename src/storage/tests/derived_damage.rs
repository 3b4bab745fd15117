//! Fault A10 on the files that batches could give back: whatever byte of an index, a producer
//! snapshot, the leader epochs or the checkpoint is wrong or missing, the log opens and answers
//! as before.

#![cfg(not(sim))]
#![expect(clippy::unwrap_used, reason = "a scenario ends where its world does not work")]

#[expect(dead_code, reason = "shared with the scenarios of the log")]
mod harness;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use harness::{batch_at, create, open, split, storage};
use protocol::batch::compression::Compression;
use protocol::batch::{BatchBuilder, Codec};
use runtime::{Config, Core, Exit};
use storage::producer::ProducerDescription;
use storage::{Log, LogOptions, TimestampOffset};

const BATCHES: u64 = 90;

fn small_segments() -> LogOptions {
    LogOptions { segment_bytes: 12 << 10, index_interval_bytes: 900, ..LogOptions::default() }
}

/// Everything that a client can learn of a log.
#[derive(Debug, PartialEq, Eq)]
struct Answers {
    /// Base offset and checksum of the batch that is read at each offset.
    batches: Vec<(i64, u32)>,
    timestamps: Vec<Option<TimestampOffset>>,
    largest: Option<TimestampOffset>,
    epochs: Vec<(Option<i32>, i64)>,
    producers: Vec<ProducerDescription>,
    ends: [i64; 3],
}

async fn ask(log: &Log) -> Answers {
    let end = log.committed_end();
    let mut batches = Vec::new();
    for offset in (log.log_start_offset()..end).step_by(7) {
        let chunk = log.read(offset, 1, end, true).await.unwrap();
        let (header, _) = split(&chunk)[0];
        batches.push((header.base_offset, header.crc));
    }
    let mut timestamps = Vec::new();
    for timestamp in (0..110_000).step_by(4_999) {
        let found = log.offset_for_timestamp(harness::NOW_MS + timestamp, end).await.unwrap();
        timestamps.push(found);
    }
    Answers {
        batches,
        timestamps,
        largest: log.max_timestamp().await.unwrap(),
        epochs: (0..end)
            .step_by(11)
            .map(|offset| (log.epoch_at(offset), log.end_offset_for_epoch(3).end_offset))
            .collect(),
        producers: log.producers(),
        ends: [log.log_start_offset(), log.log_end_offset(), end],
    }
}

async fn write_log(dir: &Path, clean: bool) -> Answers {
    let log = create(&storage(dir), small_segments()).await;
    let mut sequences = [0; 4];
    for number in 0..BATCHES {
        if number % 40 == 0 {
            log.begin_epoch((number / 40) as i32 + 3);
        }
        let timestamp = harness::NOW_MS + (number as i64 * 7919) % 100_000;
        let sent = if number % 2 == 0 {
            batch_at(number * 4, 4, 100 + (number as usize * 37) % 200, timestamp)
        } else {
            let id = number as usize % 4;
            let builder = BatchBuilder::new(Compression::of(Codec::None));
            let builder = builder.producer(id as i64, 0, sequences[id]);
            sequences[id] += 4;
            harness::built(builder, number * 4, 4, 80, timestamp)
        };
        log.append(&sent, log.latest_epoch(), harness::NOW_MS).await.unwrap();
    }
    log.committed(log.log_end_offset()).await.unwrap();
    let answers = ask(&log).await;
    if clean {
        log.close().await;
    }
    answers
}

type Contents = Vec<(PathBuf, Vec<u8>)>;

fn files_of(dir: &Path) -> Contents {
    let entries = fs::read_dir(dir.join("orders-0")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.collect();
    paths.sort();
    let read = |path: PathBuf| fs::read(&path).ok().map(|bytes| (path, bytes));
    paths.into_iter().filter_map(read).collect()
}

fn restore(dir: &Path, contents: &Contents) {
    for (path, _) in files_of(dir) {
        // What an earlier process left unfinished may go by itself.
        let _ = fs::remove_file(path);
    }
    for (path, bytes) in contents {
        fs::write(path, bytes).unwrap();
    }
}

fn is_derived(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    !name.ends_with(".log") && name != "partition.metadata"
}

/// Opens what `contents` has become and asks everything again.
async fn assert_unharmed(dir: &Path, contents: &Contents, before: &Answers, what: &str) {
    restore(dir, contents);
    let (log, _) = open(&storage(dir), small_segments()).await;
    assert_eq!(ask(&log).await, *before, "{what}");
    log.close().await;
}

async fn flip_everywhere(dir: &Path, before: &Answers, step: usize) {
    let sound = files_of(dir);
    let mut flips = 0;
    for (number, (path, bytes)) in sound.iter().enumerate().filter(|(_, (p, _))| is_derived(p)) {
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for at in (flips % step..used).step_by(step) {
            let mut flipped = sound.clone();
            flipped[number].1[at] ^= 1 << ((at / step) % 8);
            let what = format!("byte {at} of {}", path.display());
            assert_unharmed(dir, &flipped, before, &what).await;
            flips += 1;
        }
    }
    assert!(flips > 50, "{flips} bytes were flipped");
}

/// Writes a log in one process, and looks at it in the next.
fn in_two_processes<F, Fut>(name: &str, clean: bool, look: F)
where
    F: Fn(PathBuf, Arc<Answers>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let unique = format!("derived-{name}-{}", std::process::id());
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
    fs::create_dir_all(&dir).unwrap();
    let before = process({
        let dir = dir.clone();
        move || {
            let dir = dir.clone();
            async move { write_log(&dir, clean).await }
        }
    });
    let (before, files) = (Arc::new(before), dir.clone());
    process(move || look(files.clone(), before.clone()));
    fs::remove_dir_all(&dir).unwrap();
}

fn process<T: Send + 'static, Fut: Future<Output = T> + 'static>(
    main: impl Fn() -> Fut + Clone + Send + 'static,
) -> T {
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    let exit = runtime::run(Config::new(vec![0]), move |_: Core<()>| {
        let (body, slot) = (main(), Arc::clone(&slot));
        async move {
            let value = body.await;
            *slot.lock().unwrap() = Some(value);
            Exit::Clean
        }
    });
    assert_eq!(exit, Exit::Clean);
    let value = result.lock().unwrap().take();
    value.unwrap()
}

#[test]
fn flipped_bytes_after_a_clean_stop() {
    in_two_processes("clean", true, |dir, before| async move {
        flip_everywhere(&dir, &before, 37).await;
    });
}

#[test]
fn flipped_bytes_after_a_kill() {
    in_two_processes("killed", false, |dir, before| async move {
        flip_everywhere(&dir, &before, 53).await;
    });
}

#[test]
fn missing_emptied_and_shortened_files() {
    in_two_processes("missing", true, |dir, before| async move {
        let sound = files_of(&dir);
        for (number, (path, bytes)) in sound.iter().enumerate().filter(|(_, (p, _))| is_derived(p))
        {
            let what = |change: &str| format!("{change} {}", path.display());
            let mut fewer = sound.clone();
            fewer.remove(number);
            assert_unharmed(&dir, &fewer, &before, &what("deleted")).await;
            for length in [0, bytes.len() / 3, bytes.len().saturating_sub(1)] {
                let mut shorter = sound.clone();
                shorter[number].1.truncate(length);
                assert_unharmed(&dir, &shorter, &before, &what("shortened")).await;
            }
        }
    });
}
