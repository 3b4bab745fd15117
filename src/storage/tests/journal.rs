//! The slot's journal from outside: what goes there, what a start makes of it, and what becomes of
//! logs whose journal is lost. A crash is a copy of the data directory while everything is open:
//! every acknowledged byte is on disk then, and nothing was closed.

#![cfg(not(sim))]
#![expect(clippy::unwrap_used, reason = "a scenario ends where its world does not work")]

#[path = "harness/mod.rs"]
#[expect(dead_code, reason = "shared by several test programs, each of which uses a part")]
mod harness;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use harness::{append, batch, eventually, options, read_all, run};
use protocol::Uuid;
use protocol::batch::ValidBatch;
use runtime::local::Budget;
use storage::offline::{VerifyOptions, repair, verify};
use storage::{JournalConfig, Log, OpenError, Owners, Replayed, Storage, StorageConfig};

const CONFIG: JournalConfig = JournalConfig {
    bytes: 1 << 20,
    commit_bytes_max: 16 << 10,
    memory_bytes_max: 8 << 20,
    prewrite_after: 1,
};

fn storage_with(dir: &Path, journal: Option<JournalConfig>) -> Storage {
    let mut config = StorageConfig::new(dir.to_path_buf(), Budget::new(64 << 20));
    config.journal = journal;
    Storage::new(config)
}

/// A slot's storage as a start makes it, and what the replay did.
async fn start(dir: &Path, slot: u32) -> (Storage, Replayed) {
    let storage = storage_with(dir, Some(CONFIG));
    let replayed = storage.replay_journals(Owners::new()).await.unwrap();
    storage.open_journal(slot).await.unwrap();
    (storage, replayed)
}

/// Less than what a journal holds.
const REPLAY_BYTES: usize = 32 << 10;

async fn start_with_little_memory(dir: &Path) -> (Storage, Replayed) {
    let mut config = StorageConfig::new(dir.to_path_buf(), Budget::new(64 << 20));
    config.replay_bytes_max = REPLAY_BYTES;
    let storage = Storage::new(config);
    let replayed = storage.replay_journals(Owners::new()).await.unwrap();
    (storage, replayed)
}

fn topic_id(number: u8) -> Uuid {
    Uuid([number; 16])
}

async fn create(storage: &Storage, number: u8) -> Log {
    let topic = format!("topic{number}");
    storage.create_log(&topic, 0, topic_id(number), options()).await.unwrap()
}

async fn open(storage: &Storage, number: u8) -> Result<Log, OpenError> {
    let topic = format!("topic{number}");
    let opened = storage.open_log(&topic, 0, topic_id(number), options()).await;
    opened.map(|(log, _)| log)
}

/// The journal takes what comes from now on.
async fn warm_up(storage: &Storage, log: &Log) -> u64 {
    let mut number = 0;
    let journaled = || storage.stats().journaled_commits.get();
    while journaled() == 0 {
        append(log, &batch(number, 1, 100)).await;
        number += 1;
        runtime::task::yield_now().await;
    }
    number
}

/// The same to each of them, committed together.
async fn append_to_all(logs: &[Log], batch: &ValidBatch) {
    let mut appended = Vec::new();
    for log in logs {
        appended.push(log.append(batch, 0, 0).await.unwrap());
    }
    for (log, appended) in logs.iter().zip(&appended) {
        log.committed(appended.last_offset + 1).await.unwrap();
    }
}

/// The data directory of a scenario; its images lie beside it.
async fn live(root: &Path) -> PathBuf {
    let dir = root.join("live");
    runtime::fs::create_dir_all(&dir).await.unwrap();
    dir
}

/// Copies the data directory as it is on disk now.
fn crash(dir: &Path, name: &str) -> PathBuf {
    let to = dir.with_file_name(name);
    assert!(!to.exists(), "each image has a name of its own");
    copy(dir, &to);
    to
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Journal files that hold a record, by when they were written to first.
fn written_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = (0..8)
        .map(|number| dir.join("journal/0").join(format!("{number:02}.journal")))
        .filter(|path| std::fs::read(path).unwrap()[4096..4104] == *b"\xffctjrec\n")
        .collect();
    files.sort();
    files
}

async fn offsets(log: &Log) -> Vec<i64> {
    read_all(log, 0).await.iter().map(|(header, _)| header.base_offset).collect()
}

#[test]
fn small_commits_of_many_logs_share_a_write_and_come_back_after_a_crash() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let mut logs = Vec::new();
        for number in 1..=20 {
            logs.push(create(&storage, number).await);
        }
        warm_up(&storage, &logs[0]).await;
        for log in &logs {
            append(log, &batch(9, 1, 300)).await;
        }
        let writes = storage.stats().journal_writes.get();
        for round in 0..5 {
            append_to_all(&logs, &batch(round, 1, 300)).await;
        }
        let writes = storage.stats().journal_writes.get() - writes;
        assert!(writes <= 10, "{writes} writes for 100 commits");
        assert!(storage.undestaged_bytes() > 30_000);
        let expected = offsets(&logs[0]).await;
        let image = crash(&dir, "image");
        let (again, replayed) = start(&image, 0).await;
        assert_eq!((replayed.logs, replayed.dropped), (20, 0), "{replayed:?}");
        for number in 1..=20 {
            let log = open(&again, number).await.unwrap();
            assert_eq!(log.log_end_offset(), logs[usize::from(number) - 1].log_end_offset());
        }
        assert_eq!(offsets(&open(&again, 1).await.unwrap()).await, expected);
        // A second crash finds nothing to do.
        let (_, replayed) = start(&crash(&image, "again"), 0).await;
        assert_eq!((replayed.logs, replayed.bytes), (0, 0));
    });
}

#[test]
fn a_close_leaves_everything_in_the_segments() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let log = create(&storage, 1).await;
        warm_up(&storage, &log).await;
        append(&log, &batch(0, 3, 500)).await;
        assert!(storage.undestaged_bytes() > 0);
        let end = log.log_end_offset();
        log.close().await;
        assert_eq!(storage.undestaged_bytes(), 0);
        storage.close_journal().await;
        // Even without the journal.
        std::fs::remove_dir_all(dir.join("journal")).unwrap();
        let (again, replayed) = start(&dir, 0).await;
        assert_eq!(replayed, Replayed::default());
        assert_eq!(open(&again, 1).await.unwrap().log_end_offset(), end);
    });
}

#[test]
fn a_large_commit_takes_what_only_the_journal_had_along() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let log = create(&storage, 1).await;
        warm_up(&storage, &log).await;
        append(&log, &batch(0, 1, 500)).await;
        assert!(storage.undestaged_bytes() > 0);
        append(&log, &batch(1, 1, 40_000)).await;
        assert_eq!(storage.undestaged_bytes(), 0);
        assert_eq!(storage.stats().destage_writes.get(), 0);
    });
}

#[test]
fn a_log_waits_to_be_destaged_until_it_is_and_not_longer() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let mut logs = Vec::new();
        for number in 1..=40 {
            logs.push(create(&storage, number).await);
        }
        warm_up(&storage, &logs[0]).await;
        for log in &logs {
            append(log, &batch(0, 1, 300)).await;
        }
        assert_eq!(storage.undestaged_logs(), 40);
        // The oldest stays; of the others a large commit takes everything along.
        for log in &logs[1..] {
            append(log, &batch(0, 1, 40_000)).await;
        }
        assert_eq!(storage.undestaged_logs(), 1);
        // They come again, behind it.
        append(&logs[7], &batch(0, 1, 300)).await;
        assert_eq!(storage.undestaged_logs(), 2);
        logs[0].close().await;
        assert_eq!(storage.undestaged_logs(), 1);
        logs[7].close().await;
        assert_eq!((storage.undestaged_logs(), storage.undestaged_bytes()), (0, 0));
    });
}

#[test]
fn the_files_are_used_over_and_over_and_memory_is_bounded() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let log = create(&storage, 1).await;
        warm_up(&storage, &log).await;
        for round in 0..1500 {
            append(&log, &batch(round, 1, 3000)).await;
        }
        let stats = storage.stats();
        assert!(stats.journal_bytes.get() > 3 << 20, "three times around");
        assert!(stats.destage_writes.get() < stats.journaled_commits.get() / 4);
        let image = crash(&dir, "image");
        let (again, _) = start(&image, 0).await;
        let opened = open(&again, 1).await.unwrap();
        assert_eq!(opened.log_end_offset(), log.log_end_offset());
        read_all(&opened, 0).await;
    });
}

#[test]
fn a_lost_or_damaged_journal_takes_open_logs_offline_until_they_are_repaired() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let (open_log, closed) = (create(&storage, 1).await, create(&storage, 2).await);
        warm_up(&storage, &open_log).await;
        append(&closed, &batch(0, 1, 100)).await;
        closed.close().await;
        for round in 0..5 {
            append(&open_log, &batch(round, 1, 300)).await;
        }
        let state = |image: &Path| std::fs::remove_file(image.join("journal/0/state")).unwrap();
        let folder = |image: &Path| std::fs::remove_dir_all(image.join("journal")).unwrap();
        let file = |image: &Path| std::fs::remove_file(&written_files(image)[0]).unwrap();
        let first_record = |image: &Path| {
            let path = &written_files(image)[0];
            let mut bytes = std::fs::read(path).unwrap();
            bytes[4096 + 100] ^= 1;
            std::fs::write(path, bytes).unwrap();
        };
        let ways: [&dyn Fn(&Path); 4] = [&state, &folder, &file, &first_record];
        for (number, damage) in ways.into_iter().enumerate() {
            let image = crash(&dir, &format!("image-{number}"));
            damage(&image);
            let (again, replayed) = start(&image, 0).await;
            assert_eq!(replayed.offline.len(), 1, "{replayed:?}");
            assert!(replayed.offline[0].0 == "topic1-0", "{replayed:?}");
            let refused = open(&again, 1).await.err().unwrap().to_string();
            assert!(refused.contains("only the journal had"), "{refused}");
            assert_eq!(open(&again, 2).await.unwrap().log_end_offset(), 1);
            // It stays so.
            let (again, _) = start(&image, 0).await;
            assert!(open(&again, 1).await.is_err());
            let log_dir = image.join("topic1-0");
            let found = verify(&log_dir, VerifyOptions::default()).unwrap();
            assert!(found.needs_repair(), "{found}");
            let report = repair(&log_dir, VerifyOptions::default()).unwrap();
            assert!(report.cut.is_none());
            let (again, replayed) = start(&image, 0).await;
            assert_eq!(replayed.offline.len(), 0);
            append(&open(&again, 1).await.unwrap(), &batch(0, 1, 10)).await;
        }
    });
}

#[test]
fn a_torn_last_record_was_acknowledged_to_nobody() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let log = create(&storage, 1).await;
        warm_up(&storage, &log).await;
        append(&log, &batch(0, 1, 300)).await;
        let end = log.log_end_offset();
        let before: Vec<_> = written_files(&dir).iter().map(std::fs::read).collect();
        append(&log, &batch(1, 1, 300)).await;
        let image = crash(&dir, "image");
        // The last record's sector is still what it was.
        for (path, bytes) in written_files(&image).iter().zip(before) {
            std::fs::write(path, bytes.unwrap()).unwrap();
        }
        let (again, replayed) = start(&image, 0).await;
        assert!(replayed.offline.is_empty());
        assert_eq!(open(&again, 1).await.unwrap().log_end_offset(), end);
    });
}

#[test]
fn what_a_segment_has_must_be_what_the_journal_says_and_reach_up_to_it() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let log = create(&storage, 1).await;
        warm_up(&storage, &log).await;
        // Written to the segment, and in the journal as well.
        append(&log, &batch(0, 1, 300)).await;
        append(&log, &batch(1, 1, 40_000)).await;
        let journaled = append(&log, &batch(2, 1, 300)).await;
        let segment = |image: &Path| image.join("topic1-0/00000000000000000000.log");
        let gap = crash(&dir, "gap");
        let mut bytes = std::fs::read(segment(&gap)).unwrap();
        bytes[30_000..60_000].fill(0);
        std::fs::write(segment(&gap), bytes).unwrap();
        let (again, replayed) = start(&gap, 0).await;
        let why = &replayed.offline[0].1;
        assert!(why.contains(&format!("goes on at offset {}", journaled.base_offset)), "{why}");
        assert!(open(&again, 1).await.is_err());
        let short = crash(&dir, "short");
        let file = std::fs::OpenOptions::new().write(true).open(segment(&short)).unwrap();
        file.set_len(4096).unwrap();
        let (again, replayed) = start(&short, 0).await;
        assert!(replayed.offline[0].1.contains("bytes long"), "{replayed:?}");
        assert!(open(&again, 1).await.is_err());
    });
}

#[test]
fn a_replay_has_no_more_in_memory_than_it_may() {
    run(|root| async move {
        let dir = live(&root).await;
        let storage = storage_with(&dir, Some(JournalConfig { bytes: 2 << 20, ..CONFIG }));
        storage.open_journal(0).await.unwrap();
        let mut logs = Vec::new();
        for number in 1..=10 {
            logs.push(create(&storage, number).await);
        }
        warm_up(&storage, &logs[0]).await;
        for round in 0..40 {
            append_to_all(&logs, &batch(round, 1, 1000)).await;
        }
        let (image, whole) = (crash(&dir, "image"), crash(&dir, "whole"));
        let (_, at_once) = start(&whole, 0).await;
        assert!(at_once.held_bytes_max > 400_000, "{at_once:?}");
        let (again, replayed) = start_with_little_memory(&image).await;
        // As much as there may be, and then what is in one more file.
        let most = REPLAY_BYTES + (256 << 10);
        assert!((1..most).contains(&replayed.held_bytes_max), "{replayed:?}");
        assert_eq!(
            Replayed { held_bytes_max: 0, ..replayed },
            Replayed { held_bytes_max: 0, ..at_once }
        );
        for (number, log) in (1..).zip(&logs) {
            assert_eq!(
                read_all(&open(&again, number).await.unwrap(), 0).await,
                read_all(log, 0).await
            );
        }
    });
}

const SEGMENT: &str = "topic1-0/00000000000000000000.log";

/// Takes from the segment what a replay goes on from, so that its log is refused; gives its path
/// and its bytes as they were.
fn cut_short(image: &Path) -> (PathBuf, Vec<u8>) {
    let segment = image.join(SEGMENT);
    let bytes = std::fs::read(&segment).unwrap();
    std::fs::OpenOptions::new().write(true).open(&segment).unwrap().set_len(4096).unwrap();
    (segment, bytes)
}

#[test]
fn what_is_refused_in_pieces_is_kept_as_a_whole() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let log = create(&storage, 1).await;
        warm_up(&storage, &log).await;
        for round in 0..200 {
            append(&log, &batch(round, 1, 1000)).await;
        }
        let image = crash(&dir, "image");
        let (segment, bytes) = cut_short(&image);
        let (again, replayed) = start_with_little_memory(&image).await;
        assert_eq!(replayed.offline.len(), 1, "{replayed:?}");
        assert!(open(&again, 1).await.is_err());
        // As it was, the segment takes all of it.
        std::fs::write(&segment, bytes).unwrap();
        let opened = open(&again, 1).await.unwrap();
        assert_eq!(read_all(&opened, 0).await, read_all(&log, 0).await);
    });
}

/// Batches that one start could not bring in are nowhere else when their journal is lost at a later
/// one.
#[test]
fn what_an_earlier_start_left_over_outlives_the_journal() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let log = create(&storage, 1).await;
        warm_up(&storage, &log).await;
        for round in 0..20 {
            append(&log, &batch(round, 1, 1000)).await;
        }
        let image = crash(&dir, "image");
        let (_, bytes) = cut_short(&image);
        let (_, replayed) = start(&image, 0).await;
        assert_eq!(replayed.offline.len(), 1, "{replayed:?}");
        let kept = std::fs::read(image.join("topic1-0/undestaged")).unwrap();
        let lost = crash(&image, "lost");
        std::fs::remove_dir_all(lost.join("journal")).unwrap();
        let damaged = crash(&image, "damaged");
        std::fs::write(damaged.join("journal/0/state"), b"nothing that can be read").unwrap();
        for image in [lost, damaged] {
            let (again, replayed) = start(&image, 0).await;
            let why = &replayed.offline[0].1;
            assert!(why.contains("journal of slot 0"), "{why}");
            assert!(why.contains("what an earlier start left over stays"), "{why}");
            assert_eq!(std::fs::read(image.join("topic1-0/undestaged")).unwrap(), kept);
            assert!(open(&again, 1).await.is_err());
            std::fs::write(image.join(SEGMENT), &bytes).unwrap();
            let opened = open(&again, 1).await.unwrap();
            assert_eq!(read_all(&opened, 0).await, read_all(&log, 0).await);
        }
    });
}

/// Far more than may be in memory, of one log.
#[test]
fn what_is_refused_is_not_all_in_memory_while_it_is_kept() {
    run(|root| async move {
        let dir = live(&root).await;
        let storage = storage_with(&dir, Some(JournalConfig { bytes: 4 << 20, ..CONFIG }));
        storage.open_journal(0).await.unwrap();
        let log = create(&storage, 1).await;
        warm_up(&storage, &log).await;
        for round in 0..100 {
            append(&log, &batch(round, 1, 6000)).await;
        }
        let image = crash(&dir, "image");
        let (segment, bytes) = cut_short(&image);
        let (again, replayed) = start_with_little_memory(&image).await;
        assert_eq!(replayed.offline.len(), 1, "{replayed:?}");
        // As much as there may be, and then what is in one more file.
        let most = REPLAY_BYTES + (512 << 10);
        let kept = std::fs::metadata(image.join("topic1-0/undestaged")).unwrap().len();
        assert!(kept as usize > most, "{kept}");
        assert!((1..most).contains(&replayed.held_bytes_max), "{replayed:?}");
        assert!(!image.join("topic1-0/undestaged.tmp").exists());
        assert!(open(&again, 1).await.is_err());
        std::fs::write(&segment, bytes).unwrap();
        let opened = open(&again, 1).await.unwrap();
        assert_eq!(read_all(&opened, 0).await, read_all(&log, 0).await);
    });
}

#[test]
fn entries_of_a_log_that_is_gone_are_dropped() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let (one, two) = (create(&storage, 1).await, create(&storage, 2).await);
        warm_up(&storage, &one).await;
        append(&two, &batch(0, 1, 300)).await;
        let image = crash(&dir, "image");
        std::fs::remove_dir_all(image.join("topic2-0")).unwrap();
        // Another topic under the same name.
        let (again, replayed) = start(&image, 0).await;
        assert_eq!(replayed.dropped, 1);
        let log = again.create_log("topic2", 0, topic_id(9), options()).await.unwrap();
        assert_eq!(log.log_end_offset(), 0);
    });
}

#[test]
fn a_directory_that_cannot_say_whose_it_is_gets_what_is_its_own() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 0).await;
        let log = create(&storage, 1).await;
        warm_up(&storage, &log).await;
        append(&log, &batch(0, 1, 300)).await;
        let end = log.log_end_offset();
        let image = crash(&dir, "image");
        let identity = image.join("topic1-0/partition.metadata");
        let told = std::fs::read(&identity).unwrap();
        std::fs::write(&identity, b"nothing that can be read").unwrap();
        let again = storage_with(&image, Some(CONFIG));
        let owners = Owners::from([(("topic1".to_owned(), 0), topic_id(1))]);
        let replayed = again.replay_journals(owners).await.unwrap();
        assert_eq!((replayed.logs, replayed.dropped), (1, 0), "{replayed:?}");
        again.open_journal(0).await.unwrap();
        assert!(open(&again, 1).await.is_err());
        std::fs::write(&identity, told).unwrap();
        assert_eq!(open(&again, 1).await.unwrap().log_end_offset(), end);
    });
}

#[test]
fn slots_and_sizes_may_change_between_starts_and_the_journal_may_go() {
    run(|root| async move {
        let dir = live(&root).await;
        let (storage, _) = start(&dir, 3).await;
        let log = create(&storage, 1).await;
        warm_up(&storage, &log).await;
        append(&log, &batch(0, 1, 300)).await;
        let end = log.log_end_offset();
        let image = crash(&dir, "image");
        // Another slot leads it now, with a larger journal.
        let larger = JournalConfig { bytes: 4 << 20, ..CONFIG };
        let again = storage_with(&image, Some(larger));
        again.replay_journals(Owners::new()).await.unwrap();
        again.open_journal(0).await.unwrap();
        let opened = open(&again, 1).await.unwrap();
        assert_eq!(opened.log_end_offset(), end);
        warm_up(&again, &opened).await;
        let end = opened.log_end_offset();
        let second = crash(&image, "second");
        let without = storage_with(&second, None);
        without.replay_journals(Owners::new()).await.unwrap();
        without.open_journal(0).await.unwrap();
        let opened = open(&without, 1).await.unwrap();
        assert_eq!(opened.log_end_offset(), end);
        append(&opened, &batch(0, 1, 300)).await;
        let third = crash(&second, "third");
        std::fs::remove_dir_all(third.join("journal")).unwrap();
        let (again, replayed) = start(&third, 0).await;
        assert!(replayed.offline.is_empty(), "it was written without a journal: {replayed:?}");
        assert_eq!(open(&again, 1).await.unwrap().log_end_offset(), end + 1);
    });
}

#[test]
fn without_direct_io_there_is_no_journal() {
    run(|root| async move {
        let dir = live(&root).await;
        let mut config = StorageConfig::new(dir.to_path_buf(), Budget::new(64 << 20));
        config.journal = Some(CONFIG);
        config.direct_io = false;
        let storage = Storage::new(config);
        storage.open_journal(0).await.unwrap();
        let log = Rc::new(create(&storage, 1).await);
        append(&log, &batch(0, 1, 300)).await;
        assert!(!dir.join("journal").exists());
        assert_eq!(storage.stats().journaled_commits.get(), 0);
        let is_idle = async || storage.undestaged_bytes() == 0;
        eventually("nothing is undestaged", is_idle).await;
    });
}
