//! Faults A1 to A7 and A22 on the entry log: kills and losses of power at any moment, also while
//! it recovers. What was acknowledged is there; what was under way is there in part or not.

#![cfg(sim)]
#![expect(clippy::expect_used, reason = "a test ends where something is not as expected")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use runtime::sim::{Options, SimHost, Simulation};
use runtime::{Config, Core, Exit, fs, time};
use storage::entry_log::{Entry, EntryLog, EntryLogOpenError, EntryLogOptions, SnapshotFile};

const DIR: &str = "/data/metadata";
const SNAPSHOT: &str = "/data/metadata/snapshot";
const OPTIONS: EntryLogOptions = EntryLogOptions { file_bytes: 8192, spare_files: 1 };

/// What the outside world knows of the log.
#[derive(Clone, Default)]
struct Known {
    /// Payloads of acknowledged entries; the first has index 1.
    acknowledged: Vec<u64>,
    /// The append that was begun and has not returned: the index it begins at, its payloads.
    under_way: Option<(u64, Vec<u64>)>,
    /// A snapshot up to here is stored.
    snapshot: u64,
    appends: u64,
    opened: u64,
    failure: Option<String>,
}

impl Known {
    /// Whether these are legal contents after a crash.
    fn explains(&self, found: &[u64]) -> bool {
        if found == self.acknowledged {
            return true;
        }
        let Some((first, payloads)) = &self.under_way else { return false };
        let kept = *first as usize - 1;
        found.len() >= kept
            && found[..kept] == self.acknowledged[..kept]
            && payloads.starts_with(&found[kept..])
    }
}

type Shared = Arc<Mutex<Known>>;

fn change<T>(known: &Shared, change: impl FnOnce(&mut Known) -> T) -> T {
    change(&mut known.lock().expect("nobody panicked"))
}

/// One life of the process: open, check, then append until the end.
async fn live(known: Shared) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let snapshot = SnapshotFile::at(SNAPSHOT.into());
    let stored = snapshot.load().await.map_err(|error| text(&error))?;
    let stored = stored.map_or(0, |bytes| bytes.len() as u64);
    let mut log = open(&known, stored).await?;
    change(&known, |known| known.opened += 1);
    loop {
        let draw = time::random_u64();
        let last = log.last_index();
        if draw % 16 == 0 && last > stored {
            let upto = change(&known, |known| known.acknowledged.len() as u64);
            snapshot.store(&vec![0; upto as usize]).await.map_err(|error| text(&error))?;
            change(&known, |known| known.snapshot = upto);
            log.compact(upto).await.map_err(|error| text(&error))?;
            continue;
        }
        log.keep_spares().await.map_err(|error| text(&error))?;
        let covered = change(&known, |known| known.snapshot);
        let back = if draw % 8 == 1 { (draw >> 8) % 4 } else { 0 };
        let first = last + 1 - back.min(last - covered);
        let count = 1 + (draw >> 16) % 12;
        let payloads: Vec<u64> = (0..count).map(|n| draw.wrapping_add(n)).collect();
        change(&known, |known| known.under_way = Some((first, payloads.clone())));
        let entries: Vec<Entry> = (first..)
            .zip(&payloads)
            .map(|(index, payload)| Entry { index, payload: payload_bytes(*payload) })
            .collect();
        log.append(&entries).await.map_err(|error| text(&error))?;
        change(&known, |known| {
            known.acknowledged.truncate(first as usize - 1);
            known.acknowledged.extend(payloads);
            known.under_way = None;
            known.appends += 1;
        });
    }
}

/// Payloads of quite different lengths.
fn payload_bytes(payload: u64) -> Bytes {
    payload.to_be_bytes().repeat(1 + (payload % 97) as usize).into()
}

async fn open(known: &Shared, stored: u64) -> Result<EntryLog, String> {
    let dir = Path::new(DIR);
    fs::create_dir_all(dir).await.map_err(|error| error.to_string())?;
    for parent in ["/", "/data"] {
        fs::sync_dir(parent).await.map_err(|error| error.to_string())?;
    }
    let opened = EntryLog::open(dir, OPTIONS, stored).await;
    let (log, loaded) = match opened {
        Ok(opened) => opened,
        Err(EntryLogOpenError::Missing { .. }) => {
            if change(known, |known| known.appends > 0) {
                return Err("the log is gone".to_owned());
            }
            let created = EntryLog::create(dir, OPTIONS, 1).await;
            return created.map_err(|error| error.to_string());
        }
        Err(error) => return Err(error.to_string()),
    };
    change(known, |known| {
        let mut found: Vec<u64> = known.acknowledged[..stored as usize].to_vec();
        for Entry { index, payload } in &loaded.entries {
            let number = u64::from_be_bytes(payload[..8].try_into().expect("8 bytes"));
            if *index != found.len() as u64 + 1 || *payload != payload_bytes(number) {
                return Err(format!("entry {index} is not what was appended"));
            }
            found.push(number);
        }
        if !known.explains(&found) {
            return Err(format!("{} of {:?} found", found.len(), known.acknowledged.len()));
        }
        known.acknowledged = found;
        known.under_way = None;
        Ok(log)
    })
}

fn start(simulation: &Simulation, host: &SimHost, known: &Shared) {
    let known = Arc::clone(known);
    simulation.start(host, Config::new(vec![0]), move |_: Core<()>| {
        let known = Arc::clone(&known);
        async move {
            match live(Arc::clone(&known)).await {
                Ok(()) => Exit::Clean,
                Err(failure) => {
                    change(&known, |known| known.failure = Some(failure.clone()));
                    Exit::Failed(failure)
                }
            }
        }
    });
}

#[test]
fn crashes_at_any_moment_lose_nothing_acknowledged() {
    let (mut appends, mut opened) = (0, 0);
    for seed in 0..1_000 {
        let simulation = Simulation::new(seed, Options::default());
        let host = simulation.add_host("host");
        let known = Shared::default();
        for life in 0..8 {
            start(&simulation, &host, &known);
            // Some lives end while they still recover.
            let micros = 1 + simulation.below(if life % 3 == 0 { 2_000 } else { 60_000 });
            simulation.run_for(Duration::from_micros(micros));
            let failure = change(&known, |known| known.failure.take());
            assert_eq!(failure, None, "seed {seed}, life {life}");
            match simulation.below(2) {
                0 => simulation.kill(&host),
                _ => simulation.power_loss(&host),
            }
        }
        appends += change(&known, |known| known.appends);
        opened += change(&known, |known| known.opened);
    }
    assert!(appends > 15_000 && opened > 2_000, "{appends} appends in {opened} lives");
}
