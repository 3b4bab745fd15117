//! Durable writes as the broker makes them: O_DIRECT and O_DSYNC, space allocated ahead, one write
//! in flight per file.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use hdrhistogram::Histogram;
use runtime::file::{AlignedBuf, File, Mode};
use runtime::time::{Instant, now};

use super::{Finding, Place};
use crate::stage::{Group, run_once};
use crate::tally::{Latency, latency};

pub(super) fn measure(place: &Place, folder: &Path) -> anyhow::Result<Vec<Finding>> {
    let seconds = place.seconds;
    let folder = folder.to_owned();
    run_once(place.broker(), move || {
        let folder = folder.clone();
        async move {
            let mut found = Vec::new();
            for (name, bytes, files) in CASES {
                let (written, took) = write(&folder, *bytes, *files, seconds).await?;
                let title = format!("durable writes of {name}, {files} files at once");
                let rate = written as f64 / seconds.as_secs_f64();
                found.push(Finding::new(format!("{title}, commits"), rate, "1/s"));
                let speed = rate * *bytes as f64 / 1e6;
                found.push(Finding::new(format!("{title}, bytes"), speed, "MB/s"));
                let median = took.value_at_quantile(0.5) as f64 / 1e6;
                found.push(Finding::new(format!("{title}, p50"), median, "ms"));
            }
            Ok(found)
        }
    })
}

/// Writes until the time is over: how many, and how long each took.
async fn write(
    folder: &Path,
    bytes: usize,
    files: usize,
    duration: Duration,
) -> anyhow::Result<(u64, Latency)> {
    let end = now() + duration;
    let group = Group::default();
    let results = Rc::new(std::cell::RefCell::new(Vec::new()));
    let mut opened = Vec::new();
    for index in 0..files {
        let path = folder.join(format!("{bytes}-{index}"));
        let file = File::create_new(&path, Mode::DirectSync).await?;
        file.preallocate(LAP_BYTES).await?;
        opened.push((path, file));
    }
    let opened_count = opened.len();
    let mut paths = Vec::new();
    for (path, file) in opened {
        paths.push(path);
        let results = Rc::clone(&results);
        group.spawn(async move {
            let result = write_one(file, bytes, end).await;
            results.borrow_mut().push(result);
        });
    }
    group.join().await;
    remove(paths).await?;
    let mut sum = latency();
    for result in results.take() {
        sum.add(result?)?;
    }
    debug_assert!(opened_count == files);
    Ok((sum.len(), sum))
}

async fn write_one(file: File, bytes: usize, end: Instant) -> anyhow::Result<Histogram<u64>> {
    let mut took = latency();
    let mut buffer = AlignedBuf::zeroed(bytes);
    buffer.fill(7);
    let block = buffer.freeze();
    let mut offset = 0;
    let mut allocated = LAP_BYTES;
    while now() < end {
        if offset + bytes as u64 > allocated {
            allocated += LAP_BYTES;
            file.preallocate(allocated).await?;
        }
        let begun = now();
        file.write_at(offset, block.clone()).await?;
        took.saturating_record(now().since(begun).as_nanos() as u64);
        offset += bytes as u64;
    }
    file.close().await?;
    Ok(took)
}

async fn remove(paths: Vec<PathBuf>) -> anyhow::Result<()> {
    for path in paths {
        runtime::fs::remove_file(path).await?;
    }
    Ok(())
}

const CASES: &[(&str, usize, usize)] = &[
    ("4 KiB", 4 << 10, 1),
    ("4 KiB", 4 << 10, 64),
    ("16 KiB", 16 << 10, 1),
    ("16 KiB", 16 << 10, 16),
    ("64 KiB", 64 << 10, 8),
    ("256 KiB", 256 << 10, 8),
    ("1 MiB", 1 << 20, 1),
    ("1 MiB", 1 << 20, 4),
];
/// Space allocated at a time.
const LAP_BYTES: u64 = 16 << 20;
