//! Starting again: what is read, what is refused, what is made again.

use protocol::Uuid;
use storage::{CreateError, LogOptions, OpenError};

use crate::harness::{
    NOW_MS, TOPIC_ID, append, assert_whole, batch, create, damage, eventually, file, files, open,
    options, read_all, run, segment, storage,
};

fn small_segments() -> LogOptions {
    LogOptions { segment_bytes: 64 << 10, ..LogOptions::default() }
}

#[test]
fn a_clean_start_reads_no_record_and_writes_nothing() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, small_segments()).await;
        for number in 0..200 {
            append(&log, &batch(number, 1, 2000)).await;
        }
        log.close().await;
        let checkpoint = runtime::fs::read(file(&dir, "checkpoint")).await.unwrap();
        for _ in 0..3 {
            let (log, report) = open(&storage, small_segments()).await;
            assert!(report.clean);
            assert_eq!((report.scanned_bytes, report.rebuilt.len()), (0, 0));
            assert_eq!(log.log_end_offset(), 200);
            log.close().await;
            assert_eq!(runtime::fs::read(file(&dir, "checkpoint")).await.unwrap(), checkpoint);
        }
    });
}

#[test]
fn an_empty_log_comes_back_as_it_was() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        log.give_up().await;
        let (log, report) = open(&storage, LogOptions::default()).await;
        assert!(report.clean);
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, 0));
        append(&log, &batch(0, 1, 10)).await;
        assert_whole(&read_all(&log, 0).await, 0, 1);
    });
}

#[test]
fn a_start_after_a_crash_reads_from_the_recovery_point_only() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..400 {
            log.append(&batch(number, 1, 100_000), 0, NOW_MS).await.unwrap();
        }
        log.committed(400).await.unwrap();
        // One says that the log is in use, two follow 16 MiB each.
        eventually("the recovery point has moved", async || storage.stats().checkpoints.get() >= 3)
            .await;
        log.give_up().await;
        let (log, report) = open(&storage, LogOptions::default()).await;
        assert!(!report.clean);
        assert!(report.scanned_bytes < 24 << 20, "read {} bytes", report.scanned_bytes);
        assert_whole(&read_all(&log, 0).await, 0, 400);
    });
}

#[test]
fn starting_again_and_again_without_a_close_changes_nothing() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, small_segments()).await;
        for number in 0..100 {
            append(&log, &batch(number, 1, 2000)).await;
        }
        let first = read_all(&log, 0).await;
        log.give_up().await;
        for round in 0..5 {
            let (log, report) = open(&storage, small_segments()).await;
            assert!(!report.possibly_short && report.cut_bytes == 0, "{round}: {report:?}");
            assert!(read_all(&log, 0).await == first);
        }
    });
}

#[test]
fn derived_files_are_made_again_whatever_became_of_them() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, small_segments()).await;
        for number in 0..200 {
            log.begin_epoch((number / 50) as i32);
            let appended = log.append(&batch(number, 1, 2000), (number / 50) as i32, NOW_MS).await;
            log.committed(appended.unwrap().last_offset + 1).await.unwrap();
        }
        let first = read_all(&log, 0).await;
        log.close().await;
        let names = files(&dir).await;
        let derived = names.iter().filter(|name| {
            [".index", ".timeindex", ".producers", "leader-epochs"]
                .iter()
                .any(|e| name.ends_with(e))
        });
        let mut tried = 0;
        for name in derived {
            let path = file(&dir, name);
            let whole = runtime::fs::read(&path).await.unwrap();
            for change in 0..5 {
                match change {
                    0 => runtime::fs::remove_file(&path).await.unwrap(),
                    1 => damage(&path, |bytes| bytes.clear()).await,
                    2 => damage(&path, |bytes| bytes.truncate(bytes.len() / 2 + 1)).await,
                    3 => damage(&path, |bytes| bytes.iter_mut().for_each(|b| *b = !*b)).await,
                    _ => damage(&path, |bytes| bytes.fill(0)).await,
                }
                let (log, _) = open(&storage, small_segments()).await;
                assert!(read_all(&log, 0).await == first, "{name}, change {change}");
                for epoch in 0..4 {
                    let end = log.end_offset_for_epoch(epoch).end_offset;
                    assert_eq!(end, (i64::from(epoch) + 1) * 50, "{name}, change {change}");
                }
                log.close().await;
                runtime::fs::write_atomic(&path, &whole).await.unwrap();
                tried += 1;
            }
        }
        assert!(tried >= 20, "{names:?}");
    });
}

/// Every byte of every index file of a sealed segment, one bit each: no read is wrong.
#[test]
fn a_flipped_bit_in_an_index_never_leads_to_a_wrong_read() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, small_segments()).await;
        for number in 0..60 {
            append(&log, &batch(number, 1, 2000)).await;
        }
        log.close().await;
        for ending in ["index", "timeindex"] {
            let path = segment(&dir, 0).with_extension(ending);
            let whole = runtime::fs::read(&path).await.unwrap();
            for at in 0..whole.len() {
                damage(&path, |bytes| bytes[at] ^= 1 << (at % 8)).await;
                let (log, _) = open(&storage, small_segments()).await;
                for offset in [0, 1, 7, 15, 29, 30] {
                    let chunk = log.read(offset, 1, 60, true).await.unwrap();
                    assert_eq!(chunk.base_offset, offset, "byte {at} of {ending}");
                }
                let found = log.offset_for_timestamp(NOW_MS, 60).await.unwrap().unwrap();
                assert_eq!(found.offset, 0, "byte {at} of {ending}");
                log.close().await;
                runtime::fs::write_atomic(&path, &whole).await.unwrap();
            }
        }
    });
}

#[test]
fn the_checkpoint_survives_damage_to_either_of_its_copies_and_to_both() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, small_segments()).await;
        for number in 0..100 {
            append(&log, &batch(number, 1, 2000)).await;
        }
        log.delete_records(40).await.unwrap();
        let path = file(&dir, "checkpoint");
        log.close().await;
        let whole = runtime::fs::read(&path).await.unwrap();
        for at in (0..whole.len()).filter(|at| at % 4096 < 108) {
            damage(&path, |bytes| bytes[at] ^= 0x10).await;
            let (log, _) = open(&storage, small_segments()).await;
            assert_eq!(log.log_start_offset(), 40, "byte {at}");
            assert_whole(&read_all(&log, 40).await[..], 40, 100);
            log.close().await;
            runtime::fs::write_atomic(&path, &whole).await.unwrap();
        }
        damage(&path, |bytes| bytes.fill(0x55)).await;
        let (log, report) = open(&storage, small_segments()).await;
        assert!(report.rebuilt.contains(&"checkpoint"));
        assert_eq!(log.log_end_offset(), 100);
        log.close().await;
        let (_, report) = open(&storage, small_segments()).await;
        assert!(report.clean);
    });
}

#[test]
fn a_directory_of_another_topic_or_of_a_newer_format_is_refused_by_name() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        append(&log, &batch(0, 1, 10)).await;
        log.close().await;
        let other = Uuid([8; 16]);
        let refused = storage.open_log("orders", 0, other, options()).await;
        let Err(OpenError::Foreign { expected, found, .. }) = refused else {
            panic!("not refused")
        };
        assert_eq!((expected, found), (other, TOPIC_ID));
        assert!(matches!(
            storage.create_log("orders", 0, other, options()).await,
            Err(CreateError::Exists(_))
        ));

        let path = file(&dir, "partition.metadata");
        let whole = runtime::fs::read(&path).await.unwrap();
        let lines = format!("format: 2\ntopic_id: {TOPIC_ID}\npartition: 0\n");
        let newer = format!("{lines}checksum: {:08x}\n", crc32c::crc32c(lines.as_bytes()));
        runtime::fs::write_atomic(&path, newer.as_bytes()).await.unwrap();
        let refused = storage.open_log("orders", 0, TOPIC_ID, options()).await;
        let Err(error) = refused else { panic!("not refused") };
        assert!(error.to_string().contains("format 2"), "{error}");

        for at in 0..whole.len() {
            damage(&path, |bytes| *bytes = whole.clone()).await;
            damage(&path, |bytes| bytes[at] ^= 1).await;
            let refused = storage.open_log("orders", 0, TOPIC_ID, options()).await;
            assert!(matches!(refused, Err(OpenError::Identity { .. })), "byte {at}");
        }
        runtime::fs::remove_file(&path).await.unwrap();
        let refused = storage.open_log("orders", 0, TOPIC_ID, options()).await;
        assert!(matches!(refused, Err(OpenError::Identity { .. })));
        let Err(OpenError::Missing(_)) = storage.open_log("orders", 1, TOPIC_ID, options()).await
        else {
            panic!("there is no such log")
        };
    });
}

#[test]
fn a_creation_that_a_crash_cut_short_is_begun_again() {
    run(|dir| async move {
        let storage = storage(&dir);
        runtime::fs::create_dir_all(dir.join("orders-0")).await.unwrap();
        let log = storage.open_or_create("orders", 0, TOPIC_ID, options()).await.unwrap().0;
        append(&log, &batch(0, 1, 10)).await;
        log.close().await;
        // Only the identity was there, of whoever wanted to create it.
        let other = dir.join("orders-1");
        runtime::fs::create_dir_all(&other).await.unwrap();
        runtime::fs::write_atomic(other.join("partition.metadata"), b"half").await.unwrap();
        let (log, _) = storage.open_or_create("orders", 1, TOPIC_ID, options()).await.unwrap();
        append(&log, &batch(0, 1, 10)).await;
        assert_eq!(storage.list_logs().await.unwrap().len(), 2);
    });
}

#[test]
fn a_missing_segment_takes_the_log_offline() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, small_segments()).await;
        for number in 0..100 {
            append(&log, &batch(number, 1, 2000)).await;
        }
        assert!(log.segments() >= 3);
        log.close().await;
        let names = files(&dir).await;
        let last = names.iter().rfind(|name| name.ends_with(".log")).unwrap();
        for name in ["00000000000000000000.log", last] {
            let path = file(&dir, name);
            let aside = dir.join("aside");
            runtime::fs::rename(&path, &aside).await.unwrap();
            let refused = storage.open_log("orders", 0, TOPIC_ID, small_segments().into()).await;
            let Err(OpenError::Damaged { file, .. }) = refused else { panic!("{name} is missed") };
            assert_eq!(file, path);
            runtime::fs::rename(&aside, &path).await.unwrap();
        }
        let (log, _) = open(&storage, small_segments()).await;
        assert_whole(&read_all(&log, 0).await, 0, 100);
    });
}
