//! The offline tools on logs that a broker wrote: every flipped byte is named, a repaired log
//! opens again, and what is lost is said.

#![expect(clippy::unwrap_used, reason = "a scenario ends where its world does not work")]

#[expect(dead_code, reason = "shared with the scenarios of the log")]
mod harness;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use harness::{assert_whole, batch_at, create, open, read_all, run, storage};
use protocol::batch::compression::Compression;
use protocol::batch::{BatchBuilder, Codec};
use storage::offline::{
    CLEAN_STOP_FILE_NAME, DumpLine, DumpOptions, FaultKind, LOCK_FILE_NAME, OfflineError,
    VerifyOptions, VerifyReport, dump, repair, verify,
};
use storage::{LogOptions, OpenError, Storage};

const BATCHES: u64 = 120;

fn small_segments() -> LogOptions {
    LogOptions { segment_bytes: 16 << 10, index_interval_bytes: 1000, ..LogOptions::default() }
}

fn log_dir(dir: &Path) -> PathBuf {
    dir.join("orders-0")
}

/// Several sealed segments and one in use, from several producers under three leader epochs.
async fn write_log(storage: &Storage, clean: bool) {
    let log = create(storage, small_segments()).await;
    let mut sequences = [0; 5];
    for number in 0..BATCHES {
        if number % 50 == 0 {
            log.begin_epoch((number / 50) as i32 + 3);
        }
        let timestamp = harness::NOW_MS + (number as i64 * 7919) % 100_000;
        let sent = match number % 3 {
            0 => batch_at(number * 4, 4, 100 + (number as usize * 37) % 300, timestamp),
            _ => {
                let id = number as usize % 5;
                let builder = BatchBuilder::new(Compression::of(Codec::Lz4));
                let builder = builder.producer(id as i64, 0, sequences[id]);
                sequences[id] += 4;
                harness::built(builder, number * 4, 4, 200, timestamp)
            }
        };
        log.append(&sent, log.latest_epoch(), harness::NOW_MS).await.unwrap();
    }
    log.committed(log.log_end_offset()).await.unwrap();
    if clean {
        log.close().await;
    }
}

fn verified(dir: &Path) -> VerifyReport {
    verify(&log_dir(dir), VerifyOptions::default()).unwrap()
}

fn files_of(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(log_dir(dir)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

#[test]
fn a_log_that_was_closed_in_order_is_sound() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        let report = verify(&log_dir(&dir), VerifyOptions { deep: true, gaps: false }).unwrap();
        assert!(report.is_sound(), "{report}");
        assert!(report.segments >= 3, "{report}");
        assert_eq!((report.logs, report.batches, report.records), (1, BATCHES, BATCHES * 4));
        let all = verify(&dir, VerifyOptions::default()).unwrap();
        assert_eq!(all, report, "the data directory holds nothing else");
    });
}

#[test]
fn a_log_that_was_not_closed_is_sound_as_well() {
    run(|dir| async move {
        write_log(&storage(&dir), false).await;
        let report = verified(&dir);
        assert!(!report.needs_repair(), "{report}");
        assert_eq!(report.records, BATCHES * 4);
    });
}

#[test]
fn each_of_a_thousand_random_flips_is_named() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        // It takes longer than a core may be kept.
        runtime::task::blocking(move || flip_a_thousand(&dir)).await;
    });
}

fn flip_a_thousand(dir: &Path) {
    let files = files_of(dir);
    assert!(files.len() >= 12, "{} files", files.len());
    let mut random = Random(20);
    let mut kinds = BTreeSet::new();
    let mut flips = 0;
    while flips < 1_000 {
        // Every kind of file gets its share, whatever its size.
        let (path, bytes) = &files[random.below(files.len() as u64) as usize];
        if bytes.is_empty() {
            continue;
        }
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(bytes.len(), |at| at + 1);
        let reach = if random.below(4) == 0 { bytes.len() } else { used };
        let at = random.below(reach as u64) as usize;
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << random.below(8);
        fs::write(path, &flipped).unwrap();
        assert_named(dir, path, at, flips);
        kinds.insert(path.extension().map(|extension| extension.to_owned()));
        fs::write(path, bytes).unwrap();
        flips += 1;
    }
    assert!(verified(dir).is_sound());
    assert!(kinds.len() >= 5, "flips in {kinds:?}");
}

fn assert_named(dir: &Path, path: &Path, at: usize, number: usize) {
    match verify(&log_dir(dir), VerifyOptions::default()) {
        Ok(report) => {
            let named = report.faults.iter().any(|fault| fault.file == path);
            // A checkpoint that lies shows in what it lies about.
            assert!(named, "flip {number}: byte {at} of {}: {report}", path.display());
        }
        // A format that nobody knows is refused by name.
        Err(OfflineError::Newer { path: named, .. }) => assert_eq!(named, path),
        Err(error) => panic!("flip {number}: byte {at} of {}: {error}", path.display()),
    }
}

#[test]
fn an_index_that_lost_whole_entries_is_named() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        let is_index = |path: &Path| path.extension().is_some_and(|e| e == "index");
        for (path, bytes) in files_of(&dir).iter().filter(|(path, _)| is_index(path)) {
            fs::write(path, &bytes[..bytes.len() - 8]).unwrap();
            let report = verified(&dir);
            assert!(report.faults.iter().any(|fault| fault.file == *path), "{report}");
            assert!(!report.needs_repair(), "the batches give it back: {report}");
            fs::write(path, bytes).unwrap();
        }
    });
}

#[test]
fn one_fault_does_not_hide_another() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        let files = files_of(&dir);
        let logs: Vec<_> =
            files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "log")).collect();
        let (path, bytes) = logs[0];
        let mut flipped = bytes.clone();
        // The length of the first batch, a record, and a base offset near the end.
        for at in [8, 5_000, 12_000] {
            flipped[at] ^= 0x20;
        }
        fs::write(path, &flipped).unwrap();
        let report = verified(&dir);
        let here = report.faults.iter().filter(|fault| fault.file == *path).count();
        assert_eq!(here, 3, "{report}");
        assert!(report.needs_repair());
        let text = report.to_string();
        assert!(text.contains("position 0, offset 0: no batch stands here"), "{text}");
    });
}

#[test]
fn repair_cuts_at_the_damage_and_the_log_opens_again() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        let files = files_of(&dir);
        let logs: Vec<_> =
            files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "log")).collect();
        let (path, bytes) = logs[1];
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        fs::write(path, &flipped).unwrap();
        fs::write(dir.join(CLEAN_STOP_FILE_NAME), "1\n").unwrap();
        fs::write(dir.join(LOCK_FILE_NAME), "").unwrap();

        let report = repair(&log_dir(&dir), VerifyOptions::default()).unwrap();
        let cut = report.cut.clone().expect("a batch was damaged");
        assert_eq!((&cut.file, cut.to), (path, Some(BATCHES as i64 * 4 - 1)));
        assert!(cut.position <= bytes.len() as u64 / 2 && cut.from > 0);
        let text = report.to_string();
        assert!(text.contains(&format!("lost: offsets {} to 479", cut.from)), "{text}");
        assert!(!dir.join(CLEAN_STOP_FILE_NAME).exists(), "the next start begins new epochs");

        let (log, opened) = open(&storage(&dir), small_segments()).await;
        assert!(!opened.clean && log.is_possibly_short());
        assert_eq!(log.log_end_offset(), cut.from);
        assert_whole(&read_all(&log, 0).await, 0, cut.from);
        log.begin_epoch(9);
        log.append(&batch_at(1, 4, 100, harness::NOW_MS), 9, harness::NOW_MS).await.unwrap();
        log.close().await;
        let after = verified(&dir);
        assert!(after.is_sound(), "{after}");
        let again = repair(&log_dir(&dir), VerifyOptions::default()).unwrap();
        assert_eq!(again.cut, None, "a sound log is left as it is");
    });
}

#[test]
fn repair_of_any_damage_keeps_everything_before_it() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        let files = files_of(&dir);
        let mut random = Random(5);
        for number in 0..60 {
            let (path, bytes) = &files[random.below(files.len() as u64) as usize];
            if bytes.is_empty() {
                continue;
            }
            let at = random.below(bytes.len() as u64) as usize;
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << random.below(8);
            fs::write(path, &flipped).unwrap();
            let what = format!("repair {number}: byte {at} of {}", path.display());
            match repair(&log_dir(&dir), VerifyOptions::default()) {
                Ok(report) => {
                    let end = report.cut.as_ref().map_or(BATCHES as i64 * 4, |cut| cut.from);
                    let storage = storage(&dir);
                    let options = std::rc::Rc::new(small_segments());
                    let opened = storage.open_log("orders", 0, harness::TOPIC_ID, options).await;
                    let Ok((log, _)) = opened else {
                        panic!("{what}: {report}: {:?}", opened.err());
                    };
                    assert_eq!(log.log_end_offset(), end, "{what}: {report}");
                    assert_whole(&read_all(&log, 0).await, 0, end);
                    log.close().await;
                }
                Err(OfflineError::Newer { path: named, .. }) => assert_eq!(named, *path, "{what}"),
                Err(error) => panic!("{what}: {error}"),
            }
            for (path, _) in files_of(&dir) {
                fs::remove_file(path).unwrap();
            }
            for (path, bytes) in &files {
                fs::write(path, bytes).unwrap();
            }
        }
    });
}

#[test]
fn whatever_happened_to_the_files_a_repaired_log_opens() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        let files = files_of(&dir);
        for seed in 0..24 {
            let mut random = Random(seed);
            for _ in 0..=random.below(3) {
                ruin(&dir, &files, &mut random);
            }
            let ruined = dir.clone();
            let repaired = runtime::task::blocking(move || {
                let options = VerifyOptions { deep: true, gaps: false };
                let _ = verify(&log_dir(&ruined), options).map(|report| report.to_string());
                for (path, _) in files_of(&ruined) {
                    if let Ok(lines) = dump(&path, DumpOptions { deep: true, print_data: true }) {
                        lines.for_each(|line| drop(line.map(|line| line.to_string())));
                    }
                }
                repair(&log_dir(&ruined), VerifyOptions::default())
            });
            match repaired.await {
                Ok(report) => {
                    let storage = storage(&dir);
                    let options = std::rc::Rc::new(small_segments());
                    let opened = storage.open_log("orders", 0, harness::TOPIC_ID, options).await;
                    let Ok((log, _)) = opened else {
                        panic!("seed {seed}: {report}: {:?}", opened.err());
                    };
                    let (start, end) = (log.log_start_offset(), log.log_end_offset());
                    if start < end {
                        let from = read_all(&log, start).await[0].0.base_offset;
                        assert_whole(&read_all(&log, start).await, from, end);
                    }
                    log.close().await;
                }
                // Nobody can say any more whose directory it is.
                Err(OfflineError::Nameless(_) | OfflineError::Newer { .. }) => {}
                Err(error) => panic!("seed {seed}: {error}"),
            }
            for (path, _) in files_of(&dir) {
                let _ = fs::remove_file(path);
            }
            for (path, bytes) in &files {
                fs::write(path, bytes).unwrap();
            }
        }
    });
}

/// Something that no disk should do.
fn ruin(dir: &Path, files: &[(PathBuf, Vec<u8>)], random: &mut Random) {
    let (path, _) = &files[random.below(files.len() as u64) as usize];
    let Ok(mut bytes) = fs::read(path) else { return };
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let length = (random.below(6_000) as usize).min(bytes.len() - at);
    match random.below(6) {
        0 => bytes[at..at + length].fill(0),
        1 => bytes[at..at + length].iter_mut().for_each(|byte| *byte = random.below(256) as u8),
        2 => bytes.truncate(at),
        3 => bytes.extend(std::iter::repeat_n(7, length + 1)),
        4 => bytes.copy_within(at.., at / 2),
        _ => {
            // One file's content under another one's name, or nowhere.
            let (other, _) = &files[random.below(files.len() as u64) as usize];
            let _ = fs::copy(path, other);
            if random.below(2) == 0 {
                let _ = fs::remove_file(path);
            }
            return;
        }
    }
    assert!(path.starts_with(dir));
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_missing_segment_is_named_and_cut_at() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        let logs: Vec<PathBuf> = files_of(&dir)
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .collect();
        fs::remove_file(&logs[1]).unwrap();
        let report = verified(&dir);
        let missing = |kind: &FaultKind| matches!(kind, FaultKind::OffsetsMissing { .. });
        assert!(report.faults.iter().any(|fault| missing(&fault.kind)), "{report}");
        let cut = repair(&log_dir(&dir), VerifyOptions::default()).unwrap().cut.unwrap();
        let (log, _) = open(&storage(&dir), small_segments()).await;
        assert_eq!(log.log_end_offset(), cut.from);
        assert_whole(&read_all(&log, 0).await, 0, cut.from);
    });
}

#[test]
fn a_lost_identity_comes_back_from_the_checkpoint() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        fs::write(log_dir(&dir).join("partition.metadata"), "what?").unwrap();
        let refused = storage(&dir)
            .open_log("orders", 0, harness::TOPIC_ID, std::rc::Rc::new(small_segments()))
            .await;
        assert!(matches!(refused.err(), Some(OpenError::Identity { .. })));
        let report = repair(&log_dir(&dir), VerifyOptions::default()).unwrap();
        assert!(report.identity_restored && report.cut.is_none(), "{report}");
        let (log, _) = open(&storage(&dir), small_segments()).await;
        assert_whole(&read_all(&log, 0).await, 0, BATCHES as i64 * 4);
    });
}

#[test]
fn nothing_is_touched_while_a_broker_holds_the_lock() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        let _held = runtime::fs::lock(dir.join(LOCK_FILE_NAME)).await.unwrap();
        let refused = verify(&log_dir(&dir), VerifyOptions::default()).unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, OfflineError::InUse { .. }));
        assert!(text.contains(&std::process::id().to_string()), "{text}");
        let repaired = repair(&log_dir(&dir), VerifyOptions::default());
        assert!(matches!(repaired, Err(OfflineError::InUse { .. })));
        let segment = log_dir(&dir).join(format!("{:020}.log", 0));
        assert!(matches!(dump(&segment, DumpOptions::default()), Err(OfflineError::InUse { .. })));
    });
}

#[test]
fn a_dump_shows_every_batch_and_record_under_kafkas_names() {
    run(|dir| async move {
        write_log(&storage(&dir), true).await;
        let segment = log_dir(&dir).join(format!("{:020}.log", 0));
        let options = DumpOptions { deep: true, print_data: false };
        let lines: Vec<DumpLine> = dump(&segment, options).unwrap().map(|l| l.unwrap()).collect();
        let is_batch = |line: &&DumpLine| matches!(line, DumpLine::Batch { valid: true, .. });
        let batches = lines.iter().filter(is_batch).count();
        let records = lines.iter().filter(|line| matches!(line, DumpLine::Record(_))).count();
        assert!(batches > 10 && records == batches * 4);
        assert_eq!(lines[1].to_string(), "Log starting offset: 0");
        let first = lines[2].to_string();
        assert!(
            first.starts_with("baseOffset: 0 lastOffset: 3 count: 4 baseSequence: -1"),
            "{first}"
        );
        assert!(first.contains("partitionLeaderEpoch: 3 isTransactional: false isControl: false"));
        assert!(first.ends_with("isvalid: true"), "{first}");
        let record = lines[3].to_string();
        let expected = "| offset: 0 CreateTime: 1700000000000 keySize: -1 valueSize: 100 \
                        sequence: -1 headerKeys: []";
        assert_eq!(record, expected);
        let index = log_dir(&dir).join(format!("{:020}.index", 0));
        let entries: Vec<String> =
            dump(&index, options).unwrap().map(|line| line.unwrap().to_string()).collect();
        assert!(entries.len() > 5 && entries[1].starts_with("offset: "), "{entries:?}");
    });
}
