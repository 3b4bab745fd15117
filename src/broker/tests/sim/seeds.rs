//! Many seeds on all cores, and the comparison of two runs of one seed.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use runtime::sim::SKIP_DIRECTORY_SYNC;

use super::scenario::{Report, play, play_damaged};

/// Seeds when nothing else was asked for.
const SEEDS_DEFAULT: u64 = 40;

/// One seed in so many is run twice.
const TWICE_EVERY: u64 = 20;

/// Real time after which a seed is taken to hang.
const SEED_TIME_MAX: Duration = Duration::from_secs(60);

/// Failing seeds after which the search ends.
const FAILURES_MAX: usize = 8;

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[derive(Default)]
struct Totals {
    failures: Vec<(u64, Vec<String>)>,
    reached: BTreeMap<String, u64>,
}

type Play = fn(u64) -> Report;

fn guarded(play: impl Fn() -> Report) -> Result<Report, Vec<String>> {
    catch_unwind(AssertUnwindSafe(play)).map_err(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| text.to_string()));
        vec![format!("panicked: {}", text.unwrap_or_default())]
    })
}

fn examine(play: Play, seed: u64, totals: &Mutex<Totals>) {
    let findings = match guarded(|| play(seed)) {
        Err(findings) => findings,
        Ok(report) => {
            let mut totals = totals.lock().unwrap();
            for what in report.reached.keys() {
                *totals.reached.entry(what.clone()).or_default() += 1;
            }
            drop(totals);
            let mut findings = report.findings;
            if findings.is_empty() && seed.is_multiple_of(TWICE_EVERY) {
                match guarded(|| play(seed)) {
                    Ok(again) if again.trace_hash == report.trace_hash => {}
                    Ok(_) => findings.push("a second run went another way".to_owned()),
                    Err(panicked) => findings = panicked,
                }
            }
            findings
        }
    };
    if !findings.is_empty() {
        eprintln!("seed {seed} fails; CORETIDE_SIM_SEED={seed} replays it:");
        for finding in &findings {
            eprintln!("    {finding}");
        }
        totals.lock().unwrap().failures.push((seed, findings));
    }
}

fn run_seeds(play: Play, first: u64, count: u64) -> Totals {
    let totals = Mutex::new(Totals::default());
    let next = AtomicU64::new(first);
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (totals, next) = (&totals, &next);
            scope.spawn(move || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let enough = totals.lock().unwrap().failures.len() >= FAILURES_MAX;
                    if seed >= first + count || enough {
                        return;
                    }
                    let (done, is_done) = mpsc::channel::<()>();
                    scope.spawn(move || watch(seed, &is_done));
                    examine(play, seed, totals);
                    drop(done);
                }
            });
        }
    });
    totals.into_inner().unwrap()
}

/// A poll that never returns cannot be interrupted: the test ends with the seed's name.
fn watch(seed: u64, done: &mpsc::Receiver<()>) {
    if done.recv_timeout(SEED_TIME_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
        eprintln!("seed {seed} hangs; CORETIDE_SIM_SEED={seed} replays it");
        std::process::abort();
    }
}

fn report_totals(count: u64, totals: &Totals) {
    eprintln!("{count} seeds");
    for (what, seeds) in &totals.reached {
        eprintln!("    {what}: in {seeds} seeds");
    }
}

#[test]
fn acknowledged_records_survive_whatever_happens() {
    let (first, count) = asked_for(1);
    let totals = run_seeds(|seed| play(seed, None), first, count);
    report_totals(count, &totals);
    check_reached(count, &totals.reached);
    let seeds: Vec<u64> = totals.failures.iter().map(|(seed, _)| *seed).collect();
    assert!(seeds.is_empty(), "seeds {seeds:?} failed; CORETIDE_SIM_SEED=<seed> replays one");
}

/// The first seed to run and how many: one by its number, or one in `one_in` of a range.
fn asked_for(one_in: u64) -> (u64, u64) {
    if std::env::var_os("CORETIDE_SIM_LOG").is_some() {
        broker::logs::init(broker::logs::LogFormat::Text);
    }
    match number_from("CORETIDE_SIM_SEED") {
        Some(seed) => (seed, 1),
        None => (
            number_from("CORETIDE_SIM_FIRST_SEED").unwrap_or(0),
            number_from("CORETIDE_SIM_SEEDS").unwrap_or(SEEDS_DEFAULT) / one_in,
        ),
    }
}

/// What many seeds together must have come across, or they test less than they seem to.
const REACHED: [&str; 55] = [
    "a sync failed",
    "a write failed",
    "batch resent",
    "checkpoint written",
    "clean: round done",
    "commit: begun",
    "commit: written",
    "connections reset",
    "consumer group: a member fell silent",
    "consumer group: an outdated commit refused",
    "consumer group: fenced",
    "consumer group: read to the end",
    "consumer group: reconciled",
    "crashed at a point",
    "deleted segments: renamed",
    "derived file damaged",
    "disk full",
    "disk slow",
    "duplicate answered",
    "fetch out of range",
    "group: a committed offset was read",
    "group: a member fell silent",
    "group: an outdated commit refused",
    "group: synced",
    "groups: a batch appended",
    "groups: loaded",
    "killed",
    "leader epoch grew",
    "link cut",
    "log deleted: durable",
    "log made: files durable",
    "log start: one copy raised",
    "move: acted on",
    "move: committed",
    "move: let go",
    "partition moved",
    "power lost",
    "produce refused",
    "produce refused behind a gap",
    "producer began anew after a loss",
    "read from disk",
    "reads failed",
    "records deleted",
    "recovery point: moved",
    "recovery: batches read",
    "recovery: closed in order",
    "recovery: derived files made again",
    "recovery: torn write cut",
    "relaxed log synced",
    "seal: one index written",
    "removal: a file",
    "removal: a file was cut",
    "segment rolled",
    "stopped in order",
    "table compacted",
];

/// Seeds from which on everything must have been reached.
const SEEDS_THAT_REACH_ALL: u64 = 1000;

fn check_reached(seeds: u64, reached: &BTreeMap<String, u64>) {
    if seeds < SEEDS_THAT_REACH_ALL {
        return;
    }
    let seldom = |what: &&&str| reached.get(**what).copied().unwrap_or(0) < seeds / 500;
    let missed: Vec<_> = REACHED.iter().filter(seldom).collect();
    assert!(missed.is_empty(), "hardly any of {seeds} seeds reached {missed:?}");
}

/// Of how many seeds with damage one is run.
const DAMAGED_ONE_IN: u64 = 4;

#[test]
fn a_flipped_bit_is_never_served_and_takes_nothing_else_along() {
    let (first, count) = asked_for(DAMAGED_ONE_IN);
    let totals = run_seeds(play_damaged, first, count);
    report_totals(count, &totals);
    let seeds: Vec<u64> = totals.failures.iter().map(|(seed, _)| *seed).collect();
    assert!(seeds.is_empty(), "seeds {seeds:?} failed");
}

/// Seeds among which one has to notice a broken guarantee.
const SEEDS_TO_NOTICE: u64 = 1000;

fn is_noticed(sabotage: &'static str) {
    for seed in 0..SEEDS_TO_NOTICE {
        let findings = match guarded(|| play(seed, Some(sabotage))) {
            Ok(report) => report.findings,
            Err(panicked) => panicked,
        };
        let Some(finding) = findings.first() else { continue };
        eprintln!("{sabotage}: noticed by seed {seed}: {finding}");
        let sound = guarded(|| play(seed, None)).is_ok_and(|report| report.findings.is_empty());
        assert!(sound, "seed {seed} fails without sabotage, too");
        return;
    }
    panic!("{sabotage}: not noticed by any of {SEEDS_TO_NOTICE} seeds");
}

#[test]
fn a_skipped_directory_fsync_is_noticed() {
    is_noticed(SKIP_DIRECTORY_SYNC);
}

#[test]
fn an_acknowledgement_before_it_is_durable_is_noticed() {
    is_noticed("acknowledge before durable");
}

#[test]
fn an_index_that_is_trusted_is_noticed() {
    is_noticed("trust the index");
}

#[test]
fn an_outdated_generation_that_commits_is_noticed() {
    is_noticed("accept an outdated generation");
}

#[test]
fn committed_offsets_that_are_not_replayed_are_noticed() {
    is_noticed("forget committed offsets");
}

#[test]
fn a_move_without_draining_is_noticed() {
    is_noticed("move without draining");
}

#[test]
fn a_tombstone_that_is_dropped_early_is_noticed() {
    is_noticed("drop tombstones early");
}
