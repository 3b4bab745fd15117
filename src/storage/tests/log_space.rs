//! A full disk (A12) and a failing one (A13, A14), simulated.

#![cfg(sim)]
#![expect(clippy::unwrap_used, reason = "a scenario ends where its world does not work")]

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use protocol::Uuid;
use protocol::batch::compression::Compression;
use protocol::batch::{BatchBuilder, Codec, NewRecord, ValidBatch};
use runtime::local::Budget;
use runtime::sim::{DiskOp, Options, SimDisk, SimHost, Simulation};
use runtime::{Config, Core, Exit, time};
use storage::{AppendError, JournalConfig, JournalError, Log, LogOptions, Storage, StorageConfig};

const TOPIC_ID: Uuid = Uuid([3; 16]);
const EIO: i32 = 5;

#[derive(Clone, Default)]
struct Seen {
    committed: i64,
    refused: u64,
    refused_in_a_row: u64,
    reads_while_full: u64,
    deleted: u64,
}

fn batch(number: u64) -> ValidBatch {
    let mut builder = BatchBuilder::new(Compression::of(Codec::None));
    let value: Vec<u8> = (0..5000).map(|at| (at as u64 * 7 + number) as u8 | 1).collect();
    builder.append(&NewRecord { timestamp: 5, value: Some(&value), ..NewRecord::default() });
    ValidBatch::built_here(builder.build()).unwrap()
}

async fn open() -> (Storage, Log) {
    runtime::fs::create_dir_all("/data").await.unwrap();
    runtime::fs::sync_dir("/").await.unwrap();
    let config = StorageConfig::new(PathBuf::from("/data"), Budget::new(4 << 20));
    let storage = Storage::new(config);
    let options =
        LogOptions { segment_bytes: 100_000, file_delete_delay_ms: 1, ..LogOptions::default() };
    let opened = storage.open_or_create("t", 0, TOPIC_ID, Rc::new(options)).await;
    let log = opened.unwrap().0;
    (storage, log)
}

/// Appends as fast as it goes, for ever; on a full disk it reads, and at times deletes.
async fn produce(seen: Arc<Mutex<Seen>>, deletes: bool) {
    let (_storage, log) = open().await;
    assert!(log.committed_end() >= seen.lock().unwrap().committed, "acknowledged ones are there");
    let mut number = 0;
    loop {
        number += 1;
        match log.append(&batch(number), 0, 0).await {
            Ok(appended) => {
                log.committed(appended.last_offset + 1).await.unwrap();
                let mut seen = seen.lock().unwrap();
                seen.committed = appended.last_offset + 1;
                seen.refused_in_a_row = 0;
            }
            Err(AppendError::NoSpace { .. }) => {
                let end = log.committed_end();
                let start = log.log_start_offset();
                if start < end {
                    assert!(log.read(start, 1, end, true).await.unwrap().bytes > 0);
                    assert!(log.read(end - 1, 1, end, true).await.unwrap().bytes > 0);
                }
                {
                    let mut seen = seen.lock().unwrap();
                    seen.refused += 1;
                    seen.refused_in_a_row += 1;
                    seen.reads_while_full += 1;
                }
                if deletes && end - start > 60 {
                    log.delete_records(end - 30).await.unwrap();
                    seen.lock().unwrap().deleted += 1;
                }
                time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn start(simulation: &Simulation, host: &SimHost, seen: &Arc<Mutex<Seen>>, deletes: bool) {
    let seen = seen.clone();
    simulation.start(host, Config::new(vec![0]), move |_: Core<()>| {
        let seen = seen.clone();
        async move {
            produce(seen, deletes).await;
            Exit::Clean
        }
    });
}

const JOURNAL_BYTES: u64 = 1 << 20;

/// A slot that wants a journal, with small appends for as long as it runs. What became of the
/// journal is put into `told`.
async fn produce_journaled(told: Arc<Mutex<Option<String>>>, commits: Arc<Mutex<(u64, u64)>>) {
    runtime::fs::create_dir_all("/data").await.unwrap();
    let mut config = StorageConfig::new(PathBuf::from("/data"), Budget::new(4 << 20));
    config.journal = Some(JournalConfig {
        bytes: JOURNAL_BYTES,
        commit_bytes_max: 8000,
        memory_bytes_max: 200 << 10,
        prewrite_after: 3,
    });
    let storage = Storage::new(config);
    let opened = match storage.open_journal(0).await {
        Ok(()) => "open".to_owned(),
        Err(JournalError::NoRoom { dir, needed, .. }) => {
            format!("{} needs {needed}", dir.display())
        }
        Err(error) => panic!("{error}"),
    };
    *told.lock().unwrap() = Some(opened);
    let made = storage.open_or_create("t", 0, TOPIC_ID, Rc::new(LogOptions::default())).await;
    let log = made.unwrap().0;
    for number in 0..40 {
        let appended = log.append(&batch(number), 0, 0).await.unwrap();
        log.committed(appended.last_offset + 1).await.unwrap();
        time::sleep(Duration::from_millis(20)).await;
    }
    let stats = storage.stats();
    *commits.lock().unwrap() = (stats.commits.get(), stats.journaled_commits.get());
    log.close().await;
    storage.close_journal().await;
}

/// Plays it to its end. Returns what became of the journal, and the commits that went there.
fn run_journaled(simulation: &Simulation, host: &SimHost) -> (String, u64) {
    let (told, commits) = (Arc::default(), Arc::default());
    let (tell, count) = (Arc::clone(&told), Arc::clone(&commits));
    simulation.start(host, Config::new(vec![0]), move |_: Core<()>| {
        let (told, commits) = (Arc::clone(&tell), Arc::clone(&count));
        async move {
            produce_journaled(told, commits).await;
            Exit::Clean
        }
    });
    simulation.run_until(|_| simulation.exited(host).is_some(), MINUTE);
    assert_eq!(simulation.exited(host), Some(Exit::Clean));
    let (all, journaled) = *commits.lock().unwrap();
    assert!(all >= 40, "{all} commits");
    (told.lock().unwrap().take().unwrap(), journaled)
}

fn journal_files(simulation: &Simulation, host: &SimHost) -> usize {
    let files = simulation.disk(host).files();
    files.iter().filter(|(path, _)| path.extension().is_some_and(|it| it == "journal")).count()
}

/// It is told what is missing, and leaves nothing of a journal on the disk; the next start with
/// room has one.
#[test]
fn without_room_for_its_journal_a_slot_goes_on_without_one() {
    let no_room = format!("/data/journal/0 needs {JOURNAL_BYTES}");
    let full: [&dyn Fn(&SimDisk); 2] = [
        &|disk| disk.set_free(JOURNAL_BYTES * 9 / 10),
        // Someone else takes it meanwhile.
        &|disk| disk.fail_after(DiskOp::Allocate, "05.journal", 0, ENOSPC),
    ];
    for (seed, make_full) in (0..).zip(full) {
        let simulation = Simulation::new(seed, Options::default());
        let host = simulation.add_host("host");
        make_full(&simulation.disk(&host));
        assert_eq!(run_journaled(&simulation, &host), (no_room.clone(), 0));
        assert_eq!(journal_files(&simulation, &host), 0);
        simulation.disk(&host).set_free(32 << 20);
        let (told, journaled) = run_journaled(&simulation, &host);
        assert!(told == "open" && journaled > 20, "{told}, {journaled}");
        assert_eq!(journal_files(&simulation, &host), 8);
    }
}

/// Where space cannot be allocated ahead, it is missing only when it is written to.
#[test]
fn a_journal_that_cannot_be_written_in_full_is_given_up() {
    let simulation = Simulation::new(3, Options::default());
    let host = simulation.add_host("host");
    simulation.disk(&host).fail_after(DiskOp::Write, "05.journal", 1, ENOSPC);
    assert_eq!(run_journaled(&simulation, &host), ("open".to_owned(), 0));
    assert_eq!(simulation.disk(&host).planned_faults(), 0);
    assert_eq!(journal_files(&simulation, &host), 0);
    let (told, journaled) = run_journaled(&simulation, &host);
    assert!(told == "open" && journaled > 20, "{told}, {journaled}");
}

const ENOSPC: i32 = 28;
const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_full_disk_refuses_appends_and_nothing_else_until_there_is_room() {
    for seed in 0..20 {
        let simulation = Simulation::new(seed, Options::default());
        let host = simulation.add_host("host");
        let seen = Arc::new(Mutex::new(Seen::default()));
        start(&simulation, &host, &seen, false);
        for round in 1..6 {
            let reached =
                simulation.run_until(|_| seen.lock().unwrap().committed > round * 40, MINUTE);
            assert!(reached, "seed {seed}: it appends");
            simulation.disk(&host).set_free(simulation.below(200_000));
            let full = simulation.run_until(|_| seen.lock().unwrap().refused_in_a_row > 5, MINUTE);
            assert!(full, "seed {seed}: the disk is full");
            simulation.run_for(Duration::from_secs(8));
            assert!(simulation.is_running(&host), "seed {seed}: a full disk ends nothing");
            if round % 2 == 0 {
                simulation.kill(&host);
                simulation.disk(&host).set_free(64 << 10);
                start(&simulation, &host, &seen, false);
                simulation.run_for(Duration::from_secs(1));
                assert!(simulation.is_running(&host), "seed {seed}: it starts without room");
            }
            simulation.disk(&host).set_free(32 << 20);
        }
        assert!(seen.lock().unwrap().reads_while_full > 20);
    }
}

#[test]
fn deleting_records_makes_room_and_appending_goes_on_by_itself() {
    let simulation = Simulation::new(1, Options::default());
    let host = simulation.add_host("host");
    let seen = Arc::new(Mutex::new(Seen::default()));
    start(&simulation, &host, &seen, true);
    simulation.run_for(Duration::from_millis(300));
    simulation.disk(&host).set_free(600_000);
    let done = simulation.run_until(
        |_| {
            let seen = seen.lock().unwrap();
            seen.committed > 2000 && seen.deleted > 5
        },
        10 * MINUTE,
    );
    assert!(done, "{} committed", seen.lock().unwrap().committed);
}

#[test]
fn a_failed_write_or_sync_ends_the_host_and_names_the_partition() {
    for (op, path) in [
        (DiskOp::Write, ".log"),
        (DiskOp::Sync, ".log"),
        (DiskOp::Write, "checkpoint"),
        (DiskOp::Sync, "t-0"),
    ] {
        let mut ended = 0;
        for after in [2, 7, 20] {
            let simulation = Simulation::new(u64::from(after), Options::default());
            let host = simulation.add_host("host");
            let seen = Arc::new(Mutex::new(Seen::default()));
            start(&simulation, &host, &seen, false);
            simulation.run_for(Duration::from_millis(50));
            simulation.disk(&host).fail_after(op, path, after, EIO);
            simulation.run_until(|_| simulation.exited(&host).is_some(), MINUTE);
            let Some(Exit::Failed(why)) = simulation.exited(&host) else { continue };
            assert!(why.contains("t-0"), "{why}");
            ended += 1;
            let committed = seen.lock().unwrap().committed;
            simulation.disk(&host).heal();
            start(&simulation, &host, &seen, false);
            let on = simulation.run_until(|_| seen.lock().unwrap().committed > committed, MINUTE);
            assert!(on, "it goes on after a start");
        }
        assert!(ended > 0, "{op:?} on {path} ended nothing");
    }
}
