//! Deleting a whole partition.

use storage::{AppendError, CommitError, LogOptions, ReadError, Unavailable};

use crate::harness::{NOW_MS, TOPIC_ID, append, batch, create, eventually, options, run, storage};

#[test]
fn a_deleted_log_is_out_of_the_way_at_once_and_gone_soon() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        append(&log, &batch(0, 1, 100)).await;
        let appended = log.append(&batch(1, 1, 100), 0, NOW_MS).await.unwrap();
        log.delete().await.unwrap();
        assert!(!runtime::fs::exists(dir.join("orders-0")).await.unwrap());
        assert_eq!(log.committed(appended.last_offset + 1).await, Ok(()));
        let late = log.committed(10).await;
        assert_eq!(late, Err(CommitError::Unavailable(Unavailable::Deleted)));
        let refused = log.append(&batch(2, 1, 100), 0, NOW_MS).await;
        assert!(matches!(refused, Err(AppendError::Unavailable(Unavailable::Deleted))));
        let refused = log.read(0, 1, 2, true).await;
        assert!(matches!(refused, Err(ReadError::Unavailable(Unavailable::Deleted))));
        log.delete().await.unwrap();

        // The name is free at once, for another topic id as well.
        let again = protocol::Uuid([9; 16]);
        let log = storage.create_log("orders", 0, again, options()).await.unwrap();
        append(&log, &batch(0, 1, 100)).await;
        eventually("the bytes are removed", async || {
            runtime::fs::list(dir.join("deleted")).await.unwrap().is_empty()
        })
        .await;
        assert_eq!(log.log_end_offset(), 1);
    });
}

#[test]
fn a_log_is_not_synced_any_more_once_it_is_gone() {
    run(|dir| async move {
        let storage = storage(&dir);
        let flush_ms = 100;
        let options = LogOptions { flush_messages: i64::MAX, flush_ms, ..LogOptions::default() };
        let log = create(&storage, options).await;
        append(&log, &batch(0, 1, 100)).await;
        let due = runtime::time::now() + std::time::Duration::from_millis(2 * flush_ms as u64);
        log.delete().await.unwrap();
        eventually("the bytes are removed", async || {
            runtime::fs::list(dir.join("deleted")).await.unwrap().is_empty()
        })
        .await;
        eventually("the sync was due", async || runtime::time::now() > due).await;
    });
}

#[test]
fn a_log_that_is_given_up_leaves_its_files_at_rest() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { segment_bytes: 32 << 10, ..LogOptions::default() };
        let mut next = 0;
        for _life in 0..20 {
            let (log, _) = storage
                .open_or_create("orders", 0, TOPIC_ID, std::rc::Rc::new(options.clone()))
                .await
                .unwrap();
            assert_eq!(log.log_end_offset() as u64, next);
            // Segments are being finished and space is being allocated when it goes.
            for _batch in 0..30 {
                log.append(&batch(next, 1, 5000), 0, NOW_MS).await.unwrap();
                next += 1;
            }
            log.give_up().await;
            assert_eq!(storage.files_open(), 0);
        }
    });
}

#[test]
fn what_a_crash_left_of_a_deletion_goes_at_the_next_start() {
    run(|dir| async move {
        let storage = storage(&dir);
        let left = dir.join("deleted").join(format!("{TOPIC_ID}-0"));
        runtime::fs::create_dir_all(&left).await.unwrap();
        runtime::fs::write_atomic(left.join("x.log"), b"bytes").await.unwrap();
        assert_eq!(storage.finish_deletions().await.unwrap(), 1);
        eventually("what was left is removed", async || {
            runtime::fs::list(dir.join("deleted")).await.unwrap().is_empty()
        })
        .await;
        assert_eq!(storage.finish_deletions().await.unwrap(), 0);
    });
}

#[test]
fn a_stray_directory_is_removed_only_when_it_is_the_one_meant() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        append(&log, &batch(0, 1, 100)).await;
        log.close().await;
        let other = protocol::Uuid([9; 16]);
        assert!(!storage.delete_stray("orders", 0, other).await.unwrap());
        assert!(!storage.delete_stray("orders", 1, TOPIC_ID).await.unwrap());
        assert!(storage.delete_stray("orders", 0, TOPIC_ID).await.unwrap());
        assert!(storage.list_logs().await.unwrap().is_empty());
    });
}

#[test]
fn readers_and_writers_at_work_do_not_disturb_a_deletion() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { segment_bytes: 64 << 10, ..LogOptions::default() };
        let log = create(&storage, options).await;
        for number in 0..200 {
            log.append(&batch(number, 1, 5000), 0, NOW_MS).await.unwrap();
        }
        storage.relieve(usize::MAX);
        let running = std::rc::Rc::new(std::cell::Cell::new(0));
        for task in 0..20 {
            let (log, running) = (log.clone(), running.clone());
            running.set(running.get() + 1);
            runtime::task::spawn(async move {
                let mut number = 1000 * task;
                loop {
                    number += 1;
                    let read = log.read(number as i64 % 100, 1 << 20, 100, true).await;
                    let appended = log.append(&batch(number, 1, 5000), 0, NOW_MS).await;
                    if read.is_err() && appended.is_err() {
                        break;
                    }
                }
                running.set(running.get() - 1);
            });
        }
        while log.committed_end() < 300 {
            log.advanced().listen().await;
        }
        log.delete().await.unwrap();
        eventually("all have noticed", async || running.get() == 0).await;
        assert!(!runtime::fs::exists(dir.join("orders-0")).await.unwrap());
    });
}
