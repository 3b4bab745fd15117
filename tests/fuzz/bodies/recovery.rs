//! What the fuzz target `recovery` does with one input, inside a runtime of either kind.
//!
//! A log of a dozen batches in several segments is written and left as a killed process leaves
//! it. The input is a list of changes to its files:
//! ```text
//! file | change | position i16 | length | bytes
//! ```
//! Then the log is opened. Whatever was done to it, opening ends with a log or a refusal; what
//! the log gives out is what was written at those offsets, without holes; and it takes records
//! again.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;
use protocol::Uuid;
use protocol::batch::{BatchBuilder, Batches, Compression, NewRecord, ValidBatch};
use runtime::local::Budget;
use storage::{Log, LogOptions, Storage, StorageConfig};

const TOPIC: &str = "orders";
const LOG_DIR: &str = "orders-0";
const TOPIC_ID: Uuid = Uuid([7; 16]);
const NOW_MS: i64 = 1_700_000_000_000;
const RECORDS: i64 = 12;
const CHANGES_MAX: usize = 16;

pub async fn run(data_dir: PathBuf, input: Vec<u8>) {
    let (alive, left) = (data_dir.join("alive"), data_dir.join("left"));
    let written = write(&alive, &left).await;
    change_files(&left.join(LOG_DIR), &input).await;
    let storage = storage(&left);
    let opened = storage.open_log(TOPIC, 0, TOPIC_ID, options()).await;
    assert!(opened.is_ok() || !input.is_empty(), "refused although nothing was changed");
    let Ok((log, report)) = opened else { return };
    assert!(log.log_start_offset() <= log.log_end_offset());
    assert!(report.cut_bytes == 0 || report.cut_at_offset.is_some());
    let whole = compare(&log, &written).await;
    lookups(&log).await;
    let end = log.log_end_offset();
    assert!(whole && end == RECORDS || !input.is_empty(), "not all there: {report:?}");
    if let Ok(appended) = log.append(&batch(99), 0, NOW_MS).await {
        assert_eq!(appended.base_offset, end);
        log.committed(appended.last_offset + 1).await.expect("nobody truncates this log");
        if whole {
            let tail = log.read(end, 1 << 20, end + 1, true).await;
            let tail = tail.expect("what was just committed can be read");
            assert_eq!(tail.next_offset, end + 1);
        }
    }
    log.close().await;
}

fn storage(data_dir: &Path) -> Storage {
    Storage::new(StorageConfig::new(data_dir.to_path_buf(), Budget::new(16 << 20)))
}

fn options() -> Rc<LogOptions> {
    let (segment_bytes, index_interval_bytes) = (2_000, 100);
    Rc::new(LogOptions { segment_bytes, index_interval_bytes, ..LogOptions::default() })
}

fn batch(number: i64) -> ValidBatch {
    let value = [number as u8; 300];
    let timestamp = NOW_MS + number;
    let mut builder = BatchBuilder::new(Compression::None).producer(5, 0, number as i32);
    builder.append(&NewRecord { timestamp, value: Some(&value), ..NewRecord::default() });
    ValidBatch::built_here(builder.build()).expect("a batch of our own")
}

/// Gives the batches as they must be read, by offset. `left` is what a kill at the end leaves of
/// the log in `alive`, which goes on with whatever it still does in the background.
async fn write(alive: &Path, left: &Path) -> Vec<Bytes> {
    runtime::fs::create_dir_all(alive).await.expect("a folder for the log");
    let storage = storage(alive);
    let log = storage.create_log(TOPIC, 0, TOPIC_ID, options()).await.expect("a new log");
    let mut written = Vec::new();
    for number in 0..RECORDS {
        let batch = batch(number);
        let appended = log.append(&batch, 0, NOW_MS).await.expect("an append");
        assert_eq!(appended.base_offset, number);
        written.push(batch.to_bytes(number, 0));
    }
    log.committed(RECORDS).await.expect("a commit");
    copy_files(&alive.join(LOG_DIR), &left.join(LOG_DIR)).await;
    log.close().await;
    written
}

/// Segments come last: nothing that was copied knows more than they hold.
async fn copy_files(from: &Path, to: &Path) {
    runtime::fs::create_dir_all(to).await.expect("a folder for the copy");
    let mut files = runtime::fs::list(from).await.expect("the log's directory");
    files.sort_by_key(|entry| entry.name.ends_with(".log"));
    for file in files.iter().filter(|entry| !entry.is_dir) {
        // A file under its temporary name may have got its real one in between.
        if let Ok(contents) = runtime::fs::read(from.join(&file.name)).await {
            let path = to.join(&file.name);
            runtime::fs::write_atomic(path, &contents).await.expect("a copy");
        }
    }
}

async fn change_files(dir: &Path, mut input: &[u8]) {
    for _ in 0..CHANGES_MAX {
        let [file, change, high, low, length, rest @ ..] = input else { return };
        let (bytes, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        input = rest;
        let mut files = runtime::fs::list(dir).await.expect("the log's directory");
        files.retain(|entry| !entry.is_dir);
        files.sort_by(|a, b| a.name.cmp(&b.name));
        if files.is_empty() {
            return;
        }
        let path = dir.join(&files[usize::from(*file) % files.len()].name);
        let mut contents = runtime::fs::read(&path).await.expect("a file of the log");
        let at = usize::from(u16::from_be_bytes([*high, *low])).min(contents.len());
        match change % 6 {
            0 => contents.truncate(at),
            1 => contents[at..].fill(0),
            2 => contents.splice(at..at, bytes.iter().copied()).for_each(drop),
            3 => contents = bytes.to_vec(),
            4 => {
                runtime::fs::remove_file(&path).await.expect("a file can be removed");
                continue;
            }
            _ => {
                let end = contents.len().min(at + bytes.len());
                contents[at..end].copy_from_slice(&bytes[..end - at]);
            }
        }
        runtime::fs::write_atomic(&path, &contents).await.expect("a file can be replaced");
    }
}

/// Reads everything; says whether it was there to the end.
async fn compare(log: &Log, written: &[Bytes]) -> bool {
    let (mut offset, end) = (log.log_start_offset(), log.committed_end());
    assert!(end <= RECORDS, "there were only {RECORDS} records and the log ends at {end}");
    while offset < end {
        // A damaged batch may be refused; it must not be given out.
        let Ok(chunk) = log.read(offset, 1 << 20, end, true).await else { return false };
        assert!(chunk.next_offset > offset, "a read from {offset} gave nothing");
        let bytes: Vec<u8> = chunk.slices.iter().flat_map(|slice| slice.to_vec()).collect();
        for item in Batches::of(bytes.into()) {
            let (header, batch) = item.expect("whole batches are given out");
            assert_eq!(header.base_offset, offset, "a hole");
            assert_eq!(batch, written[offset as usize], "offset {offset} is not what was written");
            offset += 1;
        }
        assert_eq!(offset, chunk.next_offset);
    }
    true
}

async fn lookups(log: &Log) {
    for timestamp in [0, NOW_MS, NOW_MS + 5, NOW_MS + RECORDS, i64::MAX] {
        if let Ok(Some(found)) = log.offset_for_timestamp(timestamp, log.committed_end()).await {
            assert!(found.timestamp >= timestamp && found.offset < log.log_end_offset());
        }
    }
    if let Ok(Some(largest)) = log.max_timestamp().await {
        assert!(largest.offset < log.log_end_offset());
    }
}
