//! Faults A1 to A7 on a log that is being cut, by its owner or by a recovery: the process is
//! killed at any moment of the cut, the next one opens what it finds, and then the power goes.
//! What a start no longer had never comes back, also when that start closed the log in order; and
//! the log goes on where it ended.

#![cfg(sim)]
#![expect(clippy::unwrap_used, reason = "a scenario ends where its world does not work")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::Uuid;
use protocol::batch::compression::Compression;
use protocol::batch::{BatchBuilder, Batches, Codec, NewRecord, ValidBatch};
use runtime::local::Budget;
use runtime::sim::{Ending, Options, SimHost, Simulation};
use runtime::{Config, Core, Exit};
use storage::{Log, LogOptions, Storage, StorageConfig};

const TOPIC_ID: Uuid = Uuid([3; 16]);
/// Six batches of three records, two to a segment.
const RECORDS: i64 = 18;

/// A cut that leaves `to` as the end of the log, which begins at `log_start` and ends at `from`,
/// perhaps by another cut.
#[derive(Clone, Copy, Debug)]
struct Cut {
    from: i64,
    log_start: i64,
    to: i64,
}

const CUTS: [Cut; 6] = [
    // Within the active segment, the whole of it, and with segments before it.
    Cut { from: RECORDS, log_start: 0, to: 15 },
    Cut { from: RECORDS, log_start: 0, to: 12 },
    Cut { from: RECORDS, log_start: 0, to: 3 },
    // The log begins inside the batch that goes: nothing is left.
    Cut { from: RECORDS, log_start: 13, to: 13 },
    Cut { from: RECORDS, log_start: 4, to: 4 },
    // In a segment that was sealed when it was longer.
    Cut { from: 9, log_start: 7, to: 7 },
];

/// What one life does once the log is open.
#[derive(Clone, Copy)]
enum Work {
    Cut(Cut),
    /// Appends to several segments, and waits for none of it.
    Hurry,
    Look,
    Close,
    Append,
}

#[derive(Default)]
struct Told {
    begun: bool,
    /// The work is done, and the log ends here.
    end: Option<i64>,
    failure: Option<String>,
}

type Telling = Arc<Mutex<Told>>;

fn batch(sequence: i32, bytes: usize) -> ValidBatch {
    let mut builder = BatchBuilder::new(Compression::of(Codec::None)).producer(77, 0, sequence);
    let value: Vec<u8> = (0..bytes).map(|at| (at as i32 * 7 + sequence) as u8 | 1).collect();
    for _ in 0..3 {
        builder.append(&NewRecord { timestamp: 5, value: Some(&value), ..NewRecord::default() });
    }
    ValidBatch::built_here(builder.build()).unwrap()
}

async fn open() -> Result<Log, String> {
    runtime::fs::create_dir_all("/data").await.map_err(|e| e.to_string())?;
    runtime::fs::sync_dir("/").await.map_err(|e| e.to_string())?;
    let storage = Storage::new(StorageConfig::new(PathBuf::from("/data"), Budget::new(4 << 20)));
    let options =
        LogOptions { segment_bytes: 50_000, file_delete_delay_ms: 1, ..LogOptions::default() };
    let opened = storage.open_or_create("t", 0, TOPIC_ID, Rc::new(options)).await;
    opened.map(|(log, _)| log).map_err(|error| format!("does not open: {error}"))
}

/// Appends a batch, each to a segment of it in a leader epoch of its own. Returns where the log
/// ends with it.
async fn append(log: &Log, bytes: usize) -> Result<i64, String> {
    let last = log.producers().first().map_or(-1, |producer| producer.last_sequence);
    let batch = batch(last + 1, bytes);
    let epoch = log.latest_epoch().max(1 + (log.log_end_offset() / 6) as i32);
    let appended = log.append(&batch, epoch, 0).await.map_err(|e| e.to_string())?;
    Ok(appended.last_offset + 1)
}

/// The log knows the epoch of each batch that it has.
async fn check_epochs(log: &Log) -> Result<(), String> {
    let (mut offset, end) = (log.log_start_offset(), log.log_end_offset());
    while offset < end {
        let chunk = log.read(offset, 1 << 20, end, true).await.map_err(|e| e.to_string())?;
        let joined: Vec<u8> = chunk.slices.iter().flat_map(|s| s.iter().copied()).collect();
        for batch in Batches::of(joined.into()) {
            let (header, _) = batch.map_err(|e| e.to_string())?;
            let (base, epoch) = (header.base_offset, header.partition_leader_epoch);
            let known = log.epoch_at(base.max(offset));
            if known != Some(epoch) {
                return Err(format!("epoch {epoch} at {base} is known as {known:?}"));
            }
        }
        offset = chunk.next_offset;
    }
    Ok(())
}

async fn live(telling: &Telling, work: Work) -> Result<i64, String> {
    let log = open().await?;
    check_epochs(&log).await?;
    match work {
        Work::Cut(Cut { from, log_start, to }) => {
            while append(&log, 7000).await? < RECORDS {}
            log.committed(RECORDS).await.map_err(|e| e.to_string())?;
            log.truncate_to(from).await.map_err(|e| e.to_string())?;
            log.delete_records(log_start).await.map_err(|e| e.to_string())?;
            telling.lock().unwrap().begun = true;
            log.truncate_to(to).await.map_err(|e| e.to_string())?;
        }
        Work::Hurry => {
            telling.lock().unwrap().begun = true;
            while append(&log, 7000).await? < RECORDS {}
        }
        Work::Look => {}
        Work::Close => log.close().await,
        Work::Append => {
            let end = append(&log, 30).await?;
            log.committed(end).await.map_err(|e| e.to_string())?;
        }
    }
    Ok(log.log_end_offset())
}

fn start(simulation: &Simulation, host: &SimHost, work: Work) -> Telling {
    let telling = Telling::default();
    let told = Arc::clone(&telling);
    simulation.start(host, Config::new(vec![0]), move |_: Core<()>| {
        let telling = Arc::clone(&telling);
        async move {
            let result = live(&telling, work).await;
            {
                let told = &mut *telling.lock().unwrap();
                match result {
                    Ok(end) => told.end = Some(end),
                    Err(failure) => told.failure = Some(failure),
                }
            }
            std::future::pending::<()>().await;
            Exit::Clean
        }
    });
    told
}

/// One life, up to where its work is done. Returns where the log ends then.
fn play(simulation: &Simulation, host: &SimHost, work: Work) -> Result<i64, String> {
    let told = start(simulation, host, work);
    let over = |_: &Simulation| {
        let told = told.lock().unwrap();
        told.end.is_some() || told.failure.is_some() || simulation.exited(host).is_some()
    };
    assert!(simulation.run_until(over, LIFE_MAX), "a life does not end");
    let told = &mut *told.lock().unwrap();
    match (told.end, told.failure.take()) {
        (Some(end), None) => Ok(end),
        (_, Some(failure)) => Err(failure),
        (None, None) => Err(format!("{:?}", simulation.exited(host))),
    }
}

/// A host that has just begun its work.
fn begin(seed: u64, work: Work) -> (Simulation, SimHost, Telling) {
    let simulation = Simulation::new(seed, Options::default());
    let host = simulation.add_host("host");
    let told = start(&simulation, &host, work);
    let begun = |_: &Simulation| told.lock().unwrap().begun;
    assert!(simulation.run_until(begun, LIFE_MAX), "seed {seed} begins nothing");
    (simulation, host, told)
}

/// How long the cut takes when it is left alone.
fn duration_of(seed: u64, cut: Cut) -> Duration {
    let (simulation, _, told) = begin(seed, Work::Cut(cut));
    let begun = simulation.now();
    let done = |_: &Simulation| told.lock().unwrap().end == Some(cut.to);
    assert!(simulation.run_until(done, LIFE_MAX), "seed {seed}: the cut does not end");
    simulation.now().since(begun)
}

/// A kill at a moment of the cut, another life, and then losses of power. Returns where the log
/// ended behind the kill, or what went wrong.
fn run_seed(seed: u64, cut: Cut, then: Work) -> Result<i64, String> {
    let longest = duration_of(seed, cut);
    let (simulation, host, _) = begin(seed, Work::Cut(cut));
    simulation.run_for(longest.mul_f64(seed as f64 / SEEDS as f64));
    simulation.kill(&host);
    let found = play(&simulation, &host, then)?;
    if found < cut.to || found > cut.from {
        return Err(format!("ends at {found}"));
    }
    goes_on(&simulation, &host, found)?;
    Ok(found)
}

/// A log that was found to end there does so over losses of power.
fn goes_on(simulation: &Simulation, host: &SimHost, found: i64) -> Result<(), String> {
    simulation.power_loss(host);
    let again = play(simulation, host, Work::Append)?;
    if again != found + 3 {
        return Err(format!("ended at {found}, and then at {again} with three records more"));
    }
    simulation.power_loss(host);
    match play(simulation, host, Work::Look)? {
        end if end == again => Ok(()),
        end => Err(format!("{again} was acknowledged, ends at {end}")),
    }
}

fn run_seeds(then: Work) {
    for cut in CUTS {
        let mut ends = BTreeSet::new();
        for seed in 0..SEEDS {
            let played = run_seed(seed, cut, then);
            ends.insert(played.unwrap_or_else(|why| panic!("{cut:?}, seed {seed}: {why}")));
        }
        assert!(ends.contains(&cut.to) && ends.contains(&cut.from), "{cut:?} led to {ends:?}");
    }
}

#[test]
fn what_a_killed_cut_took_away_does_not_come_back_over_losses_of_power() {
    run_seeds(Work::Look);
}

#[test]
fn a_log_that_is_closed_behind_a_killed_cut_goes_on_over_losses_of_power() {
    run_seeds(Work::Close);
}

/// Points of a recovery that takes away what a loss of power left of unacknowledged batches.
const POINTS: [&str; 4] = [
    "recovery: batches synced",
    "recovery: segment taken away",
    "recovery: segment dropped",
    "recovery: torn write removed",
];

/// A loss of power under many appends, a recovery that ends at `point`, and lives behind it.
fn run_recovery(seed: u64, point: &str, ending: Ending, then: Work) -> Result<(), String> {
    let (simulation, host, _) = begin(seed, Work::Hurry);
    simulation.run_for(Duration::from_micros(simulation.below(HURRY_MICROS)));
    simulation.power_loss(&host);
    simulation.crash_at(&host, point, 0, ending);
    let told = start(&simulation, &host, Work::Look);
    let over = |_: &Simulation| !simulation.is_running(&host) || told.lock().unwrap().end.is_some();
    assert!(simulation.run_until(over, LIFE_MAX), "seed {seed}: a recovery does not end");
    if let Some(failure) = told.lock().unwrap().failure.take() {
        return Err(failure);
    }
    simulation.call_off_crashes(&host);
    simulation.kill(&host);
    let found = play(&simulation, &host, then)?;
    goes_on(&simulation, &host, found)
}

#[test]
fn a_recovery_that_is_cut_short_is_begun_again() {
    for (number, point) in POINTS.iter().enumerate() {
        for seed in 0..SEEDS {
            let ending = if seed & 1 == 0 { Ending::Exit } else { Ending::PowerLoss };
            let then = if seed & 2 == 0 { Work::Look } else { Work::Close };
            let played = run_recovery(seed + number as u64 * SEEDS, point, ending, then);
            played.unwrap_or_else(|why| panic!("{point}, seed {seed}: {why}"));
        }
    }
}

/// Each has its own moment of the cut.
const SEEDS: u64 = 600;
/// Longer than most of the appends take.
const HURRY_MICROS: u64 = 8000;
const LIFE_MAX: Duration = Duration::from_secs(60);
