//! Faults A1 to A7 and A22 on a partition's log: kills and losses of power at any moment, also
//! while it recovers. What was acknowledged is there, byte for byte; what was under way is there
//! in part, in order, or not; nothing else is; and the log is never taken offline by a crash.
//!
//! `SEED` plays one seed, `SEEDS` the first so many instead of those that always are.

#![cfg(sim)]
#![expect(clippy::unwrap_used, reason = "a scenario ends where its world does not work")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use protocol::Uuid;
use protocol::batch::compression::Compression;
use protocol::batch::{BatchBuilder, Codec, NewRecord, ValidBatch};
use runtime::local::Budget;
use runtime::sim::{Options, SimHost, Simulation};
use runtime::{Config, Core, Exit, time};
use storage::{JournalConfig, Log, LogOptions, Owners, Storage, StorageConfig};

const TOPIC_ID: Uuid = Uuid([3; 16]);
const PRODUCER: i64 = 77;

/// What the outside world knows of the log.
#[derive(Default)]
struct Known {
    /// Every batch that may be in the log, by base offset, as it would be stored.
    batches: BTreeMap<i64, Bytes>,
    /// Behind the last acknowledged batch.
    acknowledged: i64,
    log_start: i64,
    /// A log start or a cut that was asked for and not answered.
    log_start_asked: i64,
    cut_asked: Option<i64>,
    /// It was asked to be deleted and made again, and that was not answered.
    deletion_asked: bool,
    next_sequence: i32,
    lives: u64,
    cut_bytes: u64,
    failure: Option<String>,
}

type Shared = Arc<Mutex<Known>>;

fn with<T>(known: &Shared, change: impl FnOnce(&mut Known) -> T) -> T {
    change(&mut known.lock().unwrap())
}

#[derive(Clone, Copy)]
struct World {
    relaxed: bool,
    power_loss: bool,
    /// Two slots with journals, between which the log moves.
    journal: bool,
}

fn options(world: World) -> Rc<LogOptions> {
    Rc::new(LogOptions {
        segment_bytes: 60_000,
        index_interval_bytes: 700,
        file_delete_delay_ms: 5,
        flush_messages: if world.relaxed { 50 } else { 1 },
        ..LogOptions::default()
    })
}

fn storage(world: World) -> Storage {
    let budget = Budget::new(4 << 20);
    let mut config = StorageConfig::new(PathBuf::from("/data"), budget);
    config.journal = world.journal.then_some(JournalConfig {
        bytes: 256 << 10,
        commit_bytes_max: 8000,
        memory_bytes_max: 200 << 10,
        prewrite_after: 3,
    });
    // Less than a file of the journal holds: a replay goes in several steps.
    config.replay_bytes_max = 10_000;
    Storage::new(config)
}

/// The slots' storages, after what their journals held is in the segments.
async fn storages(world: World) -> Result<Vec<Storage>, String> {
    let storages: Vec<Storage> =
        (0..1 + u32::from(world.journal)).map(|_| storage(world)).collect();
    let replayed = storages[0].replay_journals(Owners::new()).await.map_err(|e| e.to_string())?;
    if !replayed.damaged.is_empty() || !replayed.offline.is_empty() {
        return Err(format!("replayed: {replayed:?}"));
    }
    for (slot, storage) in storages.iter().enumerate() {
        storage.open_journal(slot as u32).await.map_err(|e| e.to_string())?;
    }
    Ok(storages)
}

/// The batch with this number: its producer's sequence, its epoch.
fn numbered(sequence: i32, draw: u64) -> ValidBatch {
    let size = match draw % 10 {
        0 => 20_000,
        1..4 => 3000,
        _ => 100,
    };
    let count = 1 + (draw >> 8) % 3;
    let mut builder =
        BatchBuilder::new(Compression::of(Codec::None)).producer(PRODUCER, 0, sequence);
    for number in 0..count {
        let mut value = vec![0; size as usize / count as usize];
        let mut state = draw.wrapping_add(number) | 1;
        // Some values have long runs of zeros, which look like sectors never written.
        let zeros = draw >> 20 & 3 == 0;
        for byte in value.iter_mut().filter(|_| !zeros) {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *byte = (state >> 56) as u8;
        }
        builder.append(&NewRecord { timestamp: 5, value: Some(&value), ..NewRecord::default() });
    }
    ValidBatch::built_here(builder.build()).unwrap()
}

/// Compares the log with what is known. Returns what is wrong.
async fn check(known: &Shared, log: &Log, world: World) -> Result<(), String> {
    let end = log.log_end_offset();
    let (acknowledged, log_start, asked, cut) = with(known, |known| {
        (known.acknowledged, known.log_start, known.log_start_asked, known.cut_asked)
    });
    let floor = cut.map_or(acknowledged, |cut| cut.min(acknowledged));
    let may_lose = world.relaxed && world.power_loss;
    if end < floor && !may_lose {
        return Err(format!("ends at {end}, {floor} was acknowledged"));
    }
    let start = log.log_start_offset();
    if start < log_start || start > asked.max(log_start) {
        return Err(format!("starts at {start}, not in {log_start}..={asked}"));
    }
    let mut offset = start;
    while offset < end {
        let chunk = log.read(offset, 1 << 20, end, true).await.map_err(|e| e.to_string())?;
        if chunk.bytes == 0 {
            return Err(format!("nothing at {offset} of {end}"));
        }
        let joined: Vec<u8> = chunk.slices.iter().flat_map(|s| s.iter().copied()).collect();
        for batch in protocol::batch::Batches::of(joined.into()) {
            let (header, bytes) = batch.map_err(|e| e.to_string())?;
            let expected = with(known, |known| known.batches.get(&header.base_offset).cloned());
            if expected.as_ref() != Some(&bytes) {
                return Err(format!("another batch at {}", header.base_offset));
            }
        }
        offset = chunk.next_offset;
    }
    if offset != end {
        return Err(format!("reads end at {offset}, the log at {end}"));
    }
    Ok(())
}

/// What is there now is all there is: the unknown is settled.
fn settle(known: &Shared, log: &Log) {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    with(known, |known| {
        known.batches.split_off(&end);
        known.acknowledged = end;
        known.log_start = start;
        known.log_start_asked = start;
        known.cut_asked = None;
        let remembered = log.producers().first().map(|producer| producer.last_sequence);
        let last = known.batches.range(start..).next_back();
        if let Some((_, bytes)) = last {
            let header = protocol::batch::BatchHeader::parse(bytes).unwrap();
            assert_eq!(remembered, Some(header.last_sequence()), "of the last batch");
        }
        known.next_sequence = remembered.map_or(0, |last| last + 1);
        known.lives += 1;
    });
}

/// One life of the process: open, check, then work until the end.
async fn live(known: Shared, world: World) -> Result<(), String> {
    runtime::fs::create_dir_all("/data").await.map_err(|e| e.to_string())?;
    runtime::fs::sync_dir("/").await.map_err(|e| e.to_string())?;
    let storages = storages(world).await?;
    let mut owner = if world.journal { time::random_u64() as usize % storages.len() } else { 0 };
    let storage = &storages[owner];
    let opened = storage.open_or_create("t", 0, TOPIC_ID, options(world)).await;
    let (mut log, report) = opened.map_err(|error| format!("does not open: {error}"))?;
    with(&known, |known| known.cut_bytes += report.cut_bytes);
    settle_deletion(&known, &log);
    check(&known, &log, world).await?;
    settle(&known, &log);
    assert_remembered(&known, &log).await?;
    loop {
        let draw = time::random_u64();
        match draw % 100 {
            0..80 => append_some(&known, &log, draw >> 8).await?,
            80..84 => {
                let end = log.committed_end();
                let to = log.log_start_offset().max(end - (draw >> 8) as i64 % 40);
                with(&known, |known| known.log_start_asked = to);
                let start = log.delete_records(to).await.map_err(|e| e.to_string())?;
                with(&known, |known| (known.log_start, known.log_start_asked) = (start, start));
            }
            84..88 => cut(&known, &log, draw >> 8).await?,
            88..91 => {
                log.close().await;
                owner = (draw >> 8) as usize % storages.len();
                let opened = storages[owner].open_log("t", 0, TOPIC_ID, options(world)).await;
                let (again, report) = opened.map_err(|e| format!("does not open again: {e}"))?;
                if !report.clean {
                    return Err("a closed log is not clean".to_owned());
                }
                log = again;
            }
            91..96 => check(&known, &log, world).await?,
            96 => storages[owner].relieve(usize::MAX),
            97 if world.journal && draw >> 8 & 7 == 0 => {
                with(&known, |known| known.deletion_asked = true);
                log.delete().await.map_err(|e| e.to_string())?;
                owner = (draw >> 16) as usize % storages.len();
                let made = storages[owner].create_log("t", 0, TOPIC_ID, options(world)).await;
                log = made.map_err(|e| format!("is not made again: {e}"))?;
                settle_deletion(&known, &log);
            }
            _ => time::sleep(Duration::from_millis(draw >> 8 & 0x1fff)).await,
        }
    }
}

/// A log that is empty although it was not is the one that was made again.
fn settle_deletion(known: &Shared, log: &Log) {
    with(known, |known| {
        if known.deletion_asked && log.log_end_offset() == 0 {
            known.batches.clear();
            (known.acknowledged, known.log_start, known.log_start_asked) = (0, 0, 0);
            (known.cut_asked, known.next_sequence) = (None, 0);
        }
        known.deletion_asked = false;
    });
}

async fn append_some(known: &Shared, log: &Log, draw: u64) -> Result<(), String> {
    let mut last = -1;
    for number in 0..1 + draw % 6 {
        let sequence = with(known, |known| known.next_sequence);
        let batch = numbered(sequence, draw.rotate_left(number as u32 * 11));
        let expected = log.log_end_offset();
        with(known, |known| {
            known.batches.insert(expected, batch.to_bytes(expected, 1));
            known.next_sequence += batch.record_count();
        });
        let appended = log.append(&batch, 1, 0).await.map_err(|e| e.to_string())?;
        if appended.base_offset != expected || appended.duplicate {
            return Err(format!("appended at {}, not {expected}", appended.base_offset));
        }
        last = appended.last_offset;
    }
    log.committed(last + 1).await.map_err(|e| e.to_string())?;
    with(known, |known| known.acknowledged = last + 1);
    Ok(())
}

async fn cut(known: &Shared, log: &Log, draw: u64) -> Result<(), String> {
    let to = log.log_start_offset().max(log.log_end_offset() - (draw % 30) as i64);
    with(known, |known| {
        let holder = known.batches.range(..=to).next_back();
        known.cut_asked = Some(holder.map_or(to, |(base, _)| *base).min(to));
    });
    log.truncate_to(to).await.map_err(|e| e.to_string())?;
    settle(known, log);
    Ok(())
}

/// The last batch is known again after any start.
async fn assert_remembered(known: &Shared, log: &Log) -> Result<(), String> {
    let last = with(known, |known| known.batches.values().next_back().cloned());
    let Some(last) = last else { return Ok(()) };
    let batch = ValidBatch::built_here(last.clone()).unwrap();
    if batch.header().base_offset < log.log_start_offset() {
        return Ok(());
    }
    let appended = log.append(&batch, 1, 0).await.map_err(|e| e.to_string())?;
    if !appended.duplicate || appended.base_offset != batch.header().base_offset {
        return Err(format!("a repeat was not recognised: {appended:?}"));
    }
    Ok(())
}

fn start(simulation: &Simulation, host: &SimHost, known: &Shared, world: World) {
    let known = known.clone();
    simulation.start(host, Config::new(vec![0]), move |_: Core<()>| {
        let known = known.clone();
        async move {
            let failure = live(known.clone(), world).await.err();
            with(&known, |known| known.failure = failure);
            Exit::Clean
        }
    });
}

/// One seed: many lives, each ended at a moment of its own.
fn run_seed(seed: u64, world: World, sabotage: Option<&'static str>) -> Outcome {
    let simulation = Simulation::new(seed, Options { sabotage, ..Options::default() });
    let host = simulation.add_host("host");
    let known: Shared = Shared::default();
    for _ in 0..12 {
        start(&simulation, &host, &known, world);
        // Often while it still recovers.
        let longest = if simulation.below(3) == 0 { 8_000 } else { 400_000 };
        simulation.run_for(Duration::from_micros(simulation.below(longest)));
        let failure = with(&known, |known| known.failure.take());
        let exit = simulation.exited(&host).map(|exit| format!("{exit:?}"));
        if let Some(failure) = failure.or(exit) {
            return Err(format!("seed {seed}: {failure}"));
        }
        if world.power_loss && simulation.below(2) == 0 {
            simulation.power_loss(&host);
        } else {
            simulation.kill(&host);
        }
    }
    let reached = simulation.reached();
    Ok(with(&known, |known| (known.lives, known.cut_bytes, reached)))
}

/// Lives, bytes that were cut, points of the code that were passed; or what went wrong.
type Outcome = Result<(u64, u64, BTreeMap<&'static str, u64>), String>;

fn run_seeds(world: World, count: u64) {
    let asked = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let count = asked("SEEDS").unwrap_or(count);
    let (seeds, few) = match asked("SEED") {
        Some(seed) => (seed..seed + 1, true),
        None => (0..count, false),
    };
    let (mut lives, mut cut) = (0, 0);
    let mut reached: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in seeds {
        let (more, bytes, points) =
            run_seed(seed, world, None).unwrap_or_else(|why| panic!("{why}"));
        lives += more;
        cut += u64::from(bytes > 0);
        points.into_keys().for_each(|point| *reached.entry(point).or_default() += 1);
    }
    let missed = JOURNAL_POINTS.iter().filter(|point| !reached.contains_key(**point));
    let missed: Vec<_> = missed.filter(|_| world.journal && !few).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
    assert!(few || reached.contains_key("removal: a file was cut"));
    assert!(few || lives > count * 4, "{lives} lives are too few");
    assert!(few || !world.power_loss || cut > 0, "no write was ever torn");
}

#[test]
fn a_strict_log_keeps_what_it_acknowledged_over_kills() {
    run_seeds(World { relaxed: false, power_loss: false, journal: false }, 60);
}

#[test]
fn a_strict_log_keeps_what_it_acknowledged_over_losses_of_power() {
    run_seeds(World { relaxed: false, power_loss: true, journal: false }, 300);
}

#[test]
fn a_relaxed_log_keeps_what_it_acknowledged_over_kills() {
    run_seeds(World { relaxed: true, power_loss: false, journal: false }, 60);
}

#[test]
fn a_relaxed_log_loses_only_its_end_over_losses_of_power() {
    run_seeds(World { relaxed: true, power_loss: true, journal: false }, 60);
}

#[test]
fn a_journaled_log_keeps_what_it_acknowledged_over_kills() {
    run_seeds(World { relaxed: false, power_loss: false, journal: true }, 60);
}

#[test]
fn a_journaled_log_keeps_what_it_acknowledged_over_losses_of_power() {
    run_seeds(World { relaxed: false, power_loss: true, journal: true }, 400);
}

/// What the seeds of a journaled log must have come across between them.
const JOURNAL_POINTS: [&str; 8] = [
    "journal: file recycled",
    "journal: fenced",
    "journal: one copy of the state written",
    "journal: one file written in full",
    "journal: one piece replayed",
    "journal: ready",
    "journal: reset",
    "journal: written",
];

/// Seeds among which one has to notice a broken guarantee.
const SEEDS_TO_NOTICE: u64 = 1000;

fn is_noticed(sabotage: &'static str) {
    let world = World { relaxed: false, power_loss: true, journal: true };
    let broken = |seed| {
        let played = std::panic::catch_unwind(|| run_seed(seed, world, Some(sabotage)));
        played.unwrap_or_else(|_| Err(format!("seed {seed} panicked"))).err()
    };
    let noticed = (0..SEEDS_TO_NOTICE).find_map(|seed| Some((seed, broken(seed)?)));
    let (seed, why) = noticed.unwrap_or_else(|| panic!("{sabotage}: not noticed by any seed"));
    eprintln!("{sabotage}: noticed by {why}");
    let sound = run_seed(seed, world, None);
    assert!(sound.is_ok(), "seed {seed} fails without sabotage, too");
}

#[test]
fn a_file_recycled_before_it_is_destaged_is_noticed() {
    is_noticed("recycle before destaged");
}

#[test]
fn the_replay_of_a_cut_tail_is_noticed() {
    is_noticed("replay a cut tail");
}

#[test]
fn the_replay_of_a_deleted_topic_is_noticed() {
    is_noticed("replay a deleted topic");
}
