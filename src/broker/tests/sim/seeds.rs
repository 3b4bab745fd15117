//! Many seeds on all cores, and the comparison of two runs of one seed.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use super::scenario::{Report, play};

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

fn guarded(seed: u64) -> Result<Report, Vec<String>> {
    catch_unwind(AssertUnwindSafe(|| play(seed))).map_err(|cause| {
        let text = cause.downcast_ref::<String>().cloned();
        let text = text.or_else(|| cause.downcast_ref::<&str>().map(|text| text.to_string()));
        vec![format!("panicked: {}", text.unwrap_or_default())]
    })
}

fn examine(seed: u64, totals: &Mutex<Totals>) {
    let findings = match guarded(seed) {
        Err(findings) => findings,
        Ok(report) => {
            let mut totals = totals.lock().unwrap();
            for what in report.reached.keys() {
                *totals.reached.entry(what.clone()).or_default() += 1;
            }
            drop(totals);
            let mut findings = report.findings;
            if findings.is_empty() && seed.is_multiple_of(TWICE_EVERY) {
                match guarded(seed) {
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

fn run_seeds(first: u64, count: u64) -> Totals {
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
                    examine(seed, totals);
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

#[test]
fn acknowledged_records_survive_whatever_happens() {
    let (first, count) = match number_from("CORETIDE_SIM_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number_from("CORETIDE_SIM_SEEDS").unwrap_or(SEEDS_DEFAULT)),
    };
    let start = std::time::Instant::now();
    let totals = run_seeds(first, count);
    eprintln!("{count} seeds in {:.1} s", start.elapsed().as_secs_f64());
    for (what, seeds) in &totals.reached {
        eprintln!("    {what}: in {seeds} seeds");
    }
    let seeds: Vec<u64> = totals.failures.iter().map(|(seed, _)| *seed).collect();
    assert!(seeds.is_empty(), "seeds {seeds:?} failed; CORETIDE_SIM_SEED=<seed> replays one");
}
