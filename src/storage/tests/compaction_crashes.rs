//! Crashes of a log that is being compacted, at any moment and at every step of an exchange, by a
//! kill and by a loss of power: the newest record of every key stays, and nothing comes back
//! changed, twice or out of order (checker 23, faults of the compaction swap).

#![cfg(sim)]
#![expect(clippy::unwrap_used, reason = "a scenario ends where its world does not work")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::Uuid;
use protocol::batch::compression::Compression;
use protocol::batch::{
    BatchBuilder, Batches, Codec, HEADER_BYTES, NewRecord, RecordIter, ValidBatch, decompress,
};
use runtime::local::Budget;
use runtime::sim::{Ending, Options, SimHost, Simulation};
use runtime::{Config, Core, Exit, time};
use storage::{CleanError, Cleaner, Log, LogOptions, Storage, StorageConfig};

const TOPIC_ID: Uuid = Uuid([3; 16]);
const NOW_MS: i64 = 1_700_000_000_000;
const KEYS: u64 = 16;

/// The steps at which a round can be cut short.
const POINTS: [&str; 13] = [
    "clean: keys mapped",
    "clean: chunk read",
    "clean: batches durable",
    "clean: segment made",
    "exchange: ordered",
    "exchange: batches renamed",
    "exchange: indexes renamed",
    "exchange: old segments renamed",
    "exchange: register written",
    "exchange: order removed",
    "exchange: done",
    "exchange: taken up by a start",
    "clean: round done",
];

/// Key and value; none for a tombstone.
type Record = (u64, Option<u64>);

#[derive(Default)]
struct Known {
    written: BTreeMap<i64, Record>,
    acknowledged: i64,
    log_start: i64,
    log_start_asked: i64,
    /// Up to here a round may have cleaned.
    cleaning_asked: i64,
    rounds: u64,
    thinned: u64,
    failure: Option<String>,
}

type Shared = Arc<Mutex<Known>>;

fn with<T>(known: &Shared, change: impl FnOnce(&mut Known) -> T) -> T {
    change(&mut known.lock().unwrap())
}

fn options() -> Rc<LogOptions> {
    Rc::new(LogOptions {
        segment_bytes: 6_000,
        index_interval_bytes: 300,
        file_delete_delay_ms: 5,
        cleanup_delete: false,
        cleanup_compact: true,
        // No tombstone may go.
        delete_retention_ms: i64::MAX,
        ..LogOptions::default()
    })
}

fn storage() -> Storage {
    Storage::new(StorageConfig::new(PathBuf::from("/data"), Budget::new(4 << 20)))
}

async fn read(log: &Log) -> Result<BTreeMap<i64, Record>, String> {
    let (start, end) = (log.log_start_offset(), log.committed_end());
    let (mut found, mut offset) = (BTreeMap::new(), start);
    while offset < end {
        let chunk = log.read(offset, 1 << 20, end, true).await.map_err(|e| e.to_string())?;
        let joined: Vec<u8> = chunk.slices.iter().flat_map(|s| s.iter().copied()).collect();
        for batch in Batches::of(joined.into()) {
            let (header, bytes) = batch.map_err(|e| e.to_string())?;
            let body = match header.count {
                0 => Vec::new(),
                _ => decompress(header.compression().unwrap(), &bytes[HEADER_BYTES..], 1 << 20)
                    .map_err(|e| e.to_string())?,
            };
            for record in RecordIter::new(&body, header.count) {
                let record = record.map_err(|e| e.to_string())?;
                let number = |bytes: &[u8]| u64::from_be_bytes(*bytes.first_chunk().unwrap());
                let at = header.base_offset + i64::from(record.offset_delta);
                let last = found.last_key_value().map_or(-1, |(last, _)| *last);
                if at >= start && at <= last {
                    return Err(format!("{at} comes behind {last}"));
                }
                found.insert(at, (number(record.key.unwrap()), record.value.map(number)));
            }
        }
        if chunk.next_offset <= offset {
            return Err(format!("nothing at {offset} of {end}"));
        }
        offset = chunk.next_offset;
    }
    found.retain(|offset, _| *offset >= start);
    Ok(found)
}

/// The newest record of each key.
fn newest(records: &BTreeMap<i64, Record>) -> BTreeMap<u64, (i64, Option<u64>)> {
    records.iter().map(|(offset, (key, value))| (*key, (*offset, *value))).collect()
}

async fn check(known: &Shared, log: &Log) -> Result<(), String> {
    let (start, end) = (log.log_start_offset(), log.log_end_offset());
    let (acknowledged, low, asked) =
        with(known, |known| (known.acknowledged, known.log_start, known.log_start_asked));
    if end < acknowledged {
        return Err(format!("ends at {end}, {acknowledged} was acknowledged"));
    }
    if start < low || start > asked.max(low) {
        return Err(format!("starts at {start}, not in {low}..={asked}"));
    }
    let found = read(log).await?;
    let written = with(known, |known| known.written.clone());
    let written: BTreeMap<i64, Record> = written.range(start..end).map(|(o, r)| (*o, *r)).collect();
    for (offset, record) in &found {
        if written.get(offset) != Some(record) {
            return Err(format!("another record at {offset}: {record:?}"));
        }
    }
    if newest(&found) != newest(&written) {
        return Err(format!(
            "the newest are {:?}, but should be {:?}",
            newest(&found),
            newest(&written)
        ));
    }
    let cleaned_to = log.cleanable(NOW_MS).await.map_err(|e| e.to_string())?.first_dirty;
    // A crash may have come before a round noted how far it had got.
    let cleaned_to = cleaned_to.max(with(known, |known| known.cleaning_asked));
    if found.range(cleaned_to..).count() != written.range(cleaned_to..).count() {
        return Err(format!("something behind {cleaned_to} is gone"));
    }
    let thinned = written.len() - found.len();
    with(known, |known| known.thinned = known.thinned.max(thinned as u64));
    Ok(())
}

async fn live(known: Shared) -> Result<(), String> {
    let storage = storage();
    runtime::fs::create_dir_all("/data").await.map_err(|e| e.to_string())?;
    runtime::fs::sync_dir("/").await.map_err(|e| e.to_string())?;
    let opened = storage.open_or_create("t", 0, TOPIC_ID, options()).await;
    let (mut log, _) = opened.map_err(|error| format!("does not open: {error}"))?;
    check(&known, &log).await?;
    with(&known, |known| {
        let end = log.log_end_offset();
        known.written.split_off(&end);
        known.acknowledged = end;
        (known.log_start, known.log_start_asked) = (log.log_start_offset(), log.log_start_offset());
    });
    loop {
        let draw = time::random_u64();
        match draw % 100 {
            0..70 => append(&known, &log, draw >> 8).await?,
            70..84 => {
                let to = log.cleanable(NOW_MS).await.map_err(|e| e.to_string())?.to;
                with(&known, |known| known.cleaning_asked = known.cleaning_asked.max(to));
                let keys = 4 + (draw >> 8) as usize % 40;
                match log.clean(&Cleaner::new(keys * 30, 1e9), NOW_MS).await {
                    Ok(_) => with(&known, |known| known.rounds += 1),
                    Err(CleanError::Stopped) => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
            84..88 => {
                let (start, end) = (log.log_start_offset(), log.committed_end());
                let to = start + (end - start) * ((draw >> 8) as i64 & 0xff) / 1000;
                with(&known, |known| known.log_start_asked = to);
                let start = log.delete_records(to).await.map_err(|e| e.to_string())?;
                with(&known, |known| (known.log_start, known.log_start_asked) = (start, start));
            }
            88..91 => {
                log.close().await;
                let opened = storage.open_log("t", 0, TOPIC_ID, options()).await;
                log = opened.map_err(|e| format!("does not open again: {e}"))?.0;
            }
            91..96 => check(&known, &log).await?,
            96 => storage.relieve(usize::MAX),
            _ => time::sleep(Duration::from_millis((draw >> 8) & 0xff)).await,
        }
    }
}

async fn append(known: &Shared, log: &Log, draw: u64) -> Result<(), String> {
    let codec = Codec::from_id((draw % 9) as u8).unwrap_or(Codec::None);
    let mut builder = BatchBuilder::new(Compression::of(codec));
    let base = log.log_end_offset();
    let count = 1 + (draw >> 4) % 5;
    for number in 0..count {
        let mixed = draw.wrapping_add(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (key, value) = ((mixed >> 8) & (KEYS - 1), ((mixed >> 20) & 7 > 0).then_some(mixed));
        let bytes = value.map(|value| value.to_be_bytes().repeat(60));
        builder.append(&NewRecord {
            timestamp: NOW_MS,
            key: Some(&key.to_be_bytes()),
            value: bytes.as_deref(),
            headers: &[],
        });
        with(known, |known| known.written.insert(base + number as i64, (key, value)));
    }
    let batch = ValidBatch::built_here(builder.build()).unwrap();
    let appended = log.append(&batch, 1, NOW_MS).await.map_err(|e| e.to_string())?;
    log.committed(appended.last_offset + 1).await.map_err(|e| e.to_string())?;
    with(known, |known| known.acknowledged = appended.last_offset + 1);
    Ok(())
}

fn start(simulation: &Simulation, host: &SimHost, known: &Shared) {
    let known = known.clone();
    simulation.start(host, Config::new(vec![0]), move |_: Core<()>| {
        let known = known.clone();
        async move {
            let failure = live(known.clone()).await.err();
            with(&known, |known| known.failure = failure);
            Exit::Clean
        }
    });
}

/// One seed: many lives, each ended at a moment of its own or at a step of a round.
fn run_seed(
    seed: u64,
    sabotage: Option<&'static str>,
) -> Result<(Known, Vec<&'static str>), String> {
    let simulation = Simulation::new(seed, Options { sabotage, ..Options::default() });
    let host = simulation.add_host("host");
    let known: Shared = Shared::default();
    for life in 0..16 {
        start(&simulation, &host, &known);
        let ending = if simulation.below(2) == 0 { Ending::PowerLoss } else { Ending::Exit };
        if simulation.below(3) > 0 {
            let point = POINTS[simulation.below(POINTS.len() as u64) as usize];
            simulation.crash_at(&host, point, simulation.below(3) as u32, ending);
        }
        simulation.run_for(Duration::from_micros(simulation.below(900_000)));
        if let Some(failure) = with(&known, |known| known.failure.take()) {
            return Err(format!("seed {seed}, life {life}: {failure}"));
        }
        if let Some(exit) = simulation.exited(&host) {
            return Err(format!("seed {seed}, life {life}: {exit:?}"));
        }
        simulation.call_off_crashes(&host);
        match ending {
            Ending::PowerLoss => simulation.power_loss(&host),
            _ => simulation.kill(&host),
        }
    }
    let reached = simulation.reached();
    let passed = POINTS.into_iter().filter(|point| reached.contains_key(point)).collect();
    let known = std::mem::take(&mut *known.lock().unwrap());
    Ok((known, passed))
}

#[test]
fn a_compacted_log_survives_a_crash_at_every_step() {
    let one = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = one.map_or(0..120, |seed| seed..seed + 1);
    let (mut rounds, mut thinned, mut passed) = (0, 0, std::collections::BTreeSet::new());
    for seed in seeds {
        let (known, points) = run_seed(seed, None).unwrap();
        rounds += known.rounds;
        thinned += u64::from(known.thinned > 0);
        passed.extend(points);
    }
    if one.is_none() {
        assert!(rounds > 200 && thinned > 60, "{rounds} rounds, {thinned} seeds that thin");
        let missed: Vec<_> = POINTS.into_iter().filter(|point| !passed.contains(point)).collect();
        assert!(missed.is_empty(), "never passed: {missed:?}");
    }
}

#[test]
fn a_tombstone_that_is_dropped_early_is_noticed() {
    let noticed = (0..100).find_map(|seed| run_seed(seed, Some("drop tombstones early")).err());
    assert!(noticed.is_some_and(|why| why.contains("the newest are")));
}
