//! Descriptors, memory and space.

use std::cell::RefCell;
use std::rc::Rc;

use runtime::file::{File, Mode};
use storage::open_files::{FileRole, OpenFiles};
use storage::{LogOptions, OPEN_FILES_MIN, Storage, StorageConfig};

use crate::harness::{NOW_MS, TOPIC_ID, assert_whole, batch, eventually, options, read_all, run};

#[test]
fn few_descriptors_suffice_for_many_logs() {
    run(|dir| async move {
        let budget = runtime::local::Budget::new(64 << 20);
        let mut config = StorageConfig::new(dir.clone(), budget);
        config.open_files_max = OPEN_FILES_MIN;
        let storage = Storage::new(config);
        let mut logs = Vec::new();
        for partition in 0..60 {
            let log = storage.create_log("many", partition, TOPIC_ID, options()).await.unwrap();
            logs.push(log);
        }
        for round in 0..3 {
            for log in &logs {
                let appended = log.append(&batch(round, 1, 500), 0, NOW_MS).await.unwrap();
                assert_eq!(appended.base_offset, round as i64);
            }
            for log in &logs {
                log.committed(round as i64 + 1).await.unwrap();
            }
            storage.relieve(usize::MAX);
            for log in &logs {
                assert_whole(&read_all(log, 0).await, 0, round as i64 + 1);
            }
            assert!(storage.files_open() <= OPEN_FILES_MIN);
        }
        for log in &logs {
            log.close().await;
        }
        assert_eq!(storage.files_open(), 0);
    });
}

/// Such a file keeps its contents until its last user is done.
#[test]
fn a_forgotten_file_is_in_use_until_its_last_user_is_done() {
    run(|dir| async move {
        let files = OpenFiles::new(OPEN_FILES_MIN);
        let path = dir.join("0.log");
        File::create_new(&path, Mode::Buffered).await.unwrap().close().await.unwrap();
        let key = (1, FileRole::Segment(0));
        let used = files.get(key, &path, Mode::Buffered).await.unwrap();
        assert!(!files.closed_in_use());
        files.forget(key);
        let other = used.share();
        drop(used);
        assert!(files.closed_in_use());
        drop(other);
        assert!(!files.closed_in_use());
    });
}

/// It may have lost its name meanwhile: then it is its user's only, and goes with him.
#[test]
fn a_file_that_is_forgotten_while_it_is_opened_is_not_kept() {
    run(|dir| async move {
        let files = Rc::new(OpenFiles::new(OPEN_FILES_MIN));
        let path = dir.join("0.log");
        File::create_new(&path, Mode::Buffered).await.unwrap().close().await.unwrap();
        let key = (1, FileRole::Segment(0));
        let opened = Rc::new(RefCell::new(None));
        runtime::task::spawn({
            let (files, opened) = (files.clone(), opened.clone());
            async move {
                let used = files.get(key, &path, Mode::Buffered).await.unwrap();
                *opened.borrow_mut() = Some(used);
            }
        });
        runtime::task::yield_now().await;
        assert!(opened.borrow().is_none() && !files.closed_in_use(), "it is being opened");
        files.forget(key);
        assert!(files.closed_in_use());
        eventually("it is open", async || opened.borrow().is_some()).await;
        assert!(files.closed_in_use());
        assert_eq!(files.count(), 0);
        drop(opened.take());
        assert!(!files.closed_in_use());
    });
}

#[test]
fn what_was_opened_for_many_at_once_is_closed_when_they_are_done() {
    run(|dir| async move {
        let files = OpenFiles::new(OPEN_FILES_MIN);
        let mut used = Vec::new();
        for number in 0..3 * OPEN_FILES_MIN {
            let path = dir.join(number.to_string());
            File::create_new(&path, Mode::Buffered).await.unwrap().close().await.unwrap();
            let key = (number as u64, FileRole::Checkpoint);
            used.push(files.get(key, &path, Mode::Buffered).await.unwrap());
        }
        assert_eq!(files.count(), 3 * OPEN_FILES_MIN, "a file in use is not closed");
        used.truncate(OPEN_FILES_MIN / 2);
        assert_eq!(files.count(), OPEN_FILES_MIN);
        assert!(used.iter().all(|file| file.path().starts_with(&dir)));
    });
}

#[test]
fn closing_a_log_gives_its_memory_back() {
    run(|dir| async move {
        let budget = runtime::local::Budget::new(64 << 20);
        let storage = Storage::new(StorageConfig::new(dir.clone(), budget.clone()));
        for partition in 0..10 {
            let options = LogOptions { segment_bytes: 100_000, ..LogOptions::default() };
            let log =
                storage.create_log("some", partition, TOPIC_ID, options.into()).await.unwrap();
            for number in 0..50 {
                log.append(&batch(number, 1, 10_000), 0, NOW_MS).await.unwrap();
            }
            log.committed(50).await.unwrap();
            assert!(budget.used() > 0);
            log.close().await;
            assert_eq!(storage.cached_bytes(), 0);
        }
        assert_eq!(budget.used(), 0);
    });
}

#[test]
fn what_is_read_of_small_segments_takes_little_memory() {
    run(|dir| async move {
        let budget = runtime::local::Budget::new(64 << 20);
        let storage = Storage::new(StorageConfig::new(dir.clone(), budget.clone()));
        let mut logs = Vec::new();
        for partition in 0..20 {
            let log = storage.create_log("small", partition, TOPIC_ID, options()).await.unwrap();
            log.append(&batch(0, 1, 500), 0, NOW_MS).await.unwrap();
            log.committed(1).await.unwrap();
            logs.push(log);
        }
        storage.relieve(usize::MAX);
        for log in &logs {
            assert_whole(&read_all(log, 0).await, 0, 1);
        }
        assert_eq!(storage.stats().window_reads.get(), 20);
        assert!((20 * 4096..=20 * 8192).contains(&storage.cached_bytes()));
        storage.relieve(usize::MAX);
        assert_eq!(storage.cached_bytes(), 0);
        // What has come since is read, too.
        for log in &logs {
            log.append(&batch(1, 1, 9000), 0, NOW_MS).await.unwrap();
            log.committed(2).await.unwrap();
            storage.relieve(usize::MAX);
            assert_whole(&read_all(log, 0).await, 0, 2);
        }
    });
}
