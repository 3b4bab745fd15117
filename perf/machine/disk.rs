//! The disk by size and queue depth: durable writes as the broker makes them (O_DIRECT and O_DSYNC,
//! space allocated ahead) and direct reads, over several files and several at once in one.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use runtime::file::{AlignedBuf, Block, File, Mode};
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
            for case in CASES {
                let done = run(&folder, case, seconds).await?;
                let title = case.title();
                let rate = done.len() as f64 / seconds.as_secs_f64();
                found.push(Finding::new(format!("{title}, operations"), rate, "1/s"));
                let speed = rate * case.bytes as f64 / 1e6;
                found.push(Finding::new(format!("{title}, bytes"), speed, "MB/s"));
                let median = done.value_at_quantile(0.5) as f64 / 1e6;
                found.push(Finding::new(format!("{title}, p50"), median, "ms"));
            }
            Ok(found)
        }
    })
}

/// The few numbers about a disk that flags depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiskSpeed {
    /// Median time of one durable write of 4 KiB with nothing beside it.
    pub commit_millis: f64,
    /// Such writes a second, one after the other and over 16 files at once.
    pub commits_alone: f64,
    pub commits_at_once: f64,
    pub write_megabytes: f64,
    pub read_megabytes: f64,
}

/// Measures below `folder` for about `duration`, on `cpu`; leaves nothing behind.
pub fn disk_speed(cpu: usize, folder: &Path, duration: Duration) -> anyhow::Result<DiskSpeed> {
    let scratch = folder.join("tune-scratch");
    std::fs::create_dir_all(&scratch)?;
    let (step, place) = (duration / TUNE_CASES.len() as u32, scratch.clone());
    let measured = run_once(runtime::Config::new(vec![cpu]), move || {
        let place = place.clone();
        async move {
            let mut done = Vec::new();
            for case in TUNE_CASES {
                done.push(run(&place, case, step).await?);
            }
            Ok(done)
        }
    });
    std::fs::remove_dir_all(&scratch)?;
    let measured = measured?;
    let rate = |at: usize| measured[at].len() as f64 / step.as_secs_f64();
    let speed = |at: usize| rate(at) * TUNE_CASES[at].bytes as f64 / 1e6;
    Ok(DiskSpeed {
        commit_millis: measured[0].value_at_quantile(0.5) as f64 / 1e6,
        commits_alone: rate(0),
        commits_at_once: rate(1),
        write_megabytes: speed(2),
        read_megabytes: speed(3),
    })
}

const TUNE_CASES: &[Case] = &[
    Case::new(What::Write, 4 << 10, 1, 1),
    Case::new(What::Write, 4 << 10, 16, 1),
    Case::new(What::Write, 1 << 20, 4, 1),
    Case::new(What::Read, 1 << 20, 1, 4),
];

/// What is done at a time, and how much of it at once.
struct Case {
    what: What,
    bytes: usize,
    files: usize,
    /// Operations in flight for one file.
    depth: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Write,
    Read,
}

impl Case {
    const fn new(what: What, bytes: usize, files: usize, depth: usize) -> Case {
        Case { what, bytes, files, depth }
    }

    fn title(&self) -> String {
        let what = if self.what == What::Write { "durable writes" } else { "reads" };
        let files =
            if self.files == 1 { "1 file".to_owned() } else { format!("{} files", self.files) };
        format!("{what} of {} KiB, {files}, {} at once in each", self.bytes >> 10, self.depth)
    }
}

/// Goes on until the time is over: how long each operation took.
async fn run(folder: &Path, case: &Case, duration: Duration) -> anyhow::Result<Latency> {
    let group = Group::default();
    let results = Rc::new(RefCell::new(Vec::new()));
    let mut opened = Vec::new();
    for index in 0..case.files {
        let path = folder.join(index.to_string());
        let file = File::create_new(&path, Mode::DirectSync).await?;
        file.preallocate(LAP_BYTES).await?;
        if case.what == What::Read {
            fill(&file).await?;
        }
        opened.push((path, Rc::new(Lane { file, next: Cell::new(0) })));
    }
    let end = now() + duration;
    for (_, lane) in &opened {
        for _ in 0..case.depth {
            let (lane, results) = (Rc::clone(lane), Rc::clone(&results));
            let (what, bytes) = (case.what, case.bytes);
            group.spawn(async move {
                let result = lane.run(what, bytes, end).await;
                results.borrow_mut().push(result);
            });
        }
    }
    group.join().await;
    for (path, _) in opened {
        runtime::fs::remove_file(path).await?;
    }
    let mut sum = latency();
    for result in results.take() {
        sum.add(result?)?;
    }
    Ok(sum)
}

async fn fill(file: &File) -> anyhow::Result<()> {
    let block = filled(FILL_BYTES);
    for offset in (0..LAP_BYTES).step_by(FILL_BYTES) {
        file.write_at(offset, block.clone()).await?;
    }
    Ok(())
}

fn filled(bytes: usize) -> Block {
    let mut buffer = AlignedBuf::zeroed(bytes);
    buffer.fill(7);
    buffer.freeze()
}

/// One file and how far it was gone through.
struct Lane {
    file: File,
    next: Cell<u64>,
}

impl Lane {
    /// Writes into fresh space, lap by lap; reads go round.
    async fn run(&self, what: What, bytes: usize, end: Instant) -> anyhow::Result<Latency> {
        let mut took = latency();
        let block = filled(bytes);
        while now() < end {
            let offset = self.next.get();
            self.next.set(offset + bytes as u64);
            let begun = now();
            if what == What::Read {
                self.file.read_at(offset % LAP_BYTES, bytes).await?;
            } else {
                if offset.is_multiple_of(LAP_BYTES) {
                    self.file.preallocate(offset + 2 * LAP_BYTES).await?;
                }
                self.file.write_at(offset, block.clone()).await?;
            }
            took.saturating_record(now().since(begun).as_nanos() as u64);
        }
        Ok(took)
    }
}

const CASES: &[Case] = &[
    Case::new(What::Write, 4 << 10, 1, 1),
    Case::new(What::Write, 4 << 10, 1, 4),
    Case::new(What::Write, 4 << 10, 16, 1),
    Case::new(What::Write, 4 << 10, 64, 1),
    Case::new(What::Write, 16 << 10, 1, 1),
    Case::new(What::Write, 16 << 10, 16, 1),
    Case::new(What::Write, 64 << 10, 1, 1),
    Case::new(What::Write, 64 << 10, 8, 1),
    Case::new(What::Write, 256 << 10, 1, 1),
    Case::new(What::Write, 256 << 10, 8, 1),
    Case::new(What::Write, 1 << 20, 1, 1),
    Case::new(What::Write, 1 << 20, 4, 1),
    Case::new(What::Read, 4 << 10, 1, 16),
    Case::new(What::Read, 256 << 10, 1, 1),
    Case::new(What::Read, 256 << 10, 1, 4),
    Case::new(What::Read, 1 << 20, 1, 4),
];
/// Space allocated at a time; a multiple of every size above.
const LAP_BYTES: u64 = 16 << 20;
const FILL_BYTES: usize = 1 << 20;
