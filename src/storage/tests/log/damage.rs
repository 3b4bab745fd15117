//! Torn writes and rotten bytes: the first are cut, the second are never passed over.

use std::path::Path;

use storage::{Log, LogOptions, OpenError, ReadError, RecoveryReport, Storage};

use crate::harness::{
    NOW_MS, TOPIC_ID, append, assert_whole, batch, create, damage, open, options, read_all, run,
    segment, storage,
};

const SECTOR: usize = 512;

/// A log with some commits of several batches each, and its bytes before and after the last one.
async fn commits(storage: &Storage, dir: &Path) -> (Vec<u8>, Vec<u8>) {
    let log = create(storage, LogOptions::default()).await;
    let path = segment(dir, 0);
    let mut number = 0;
    for _ in 0..5 {
        number = commit(&log, number, 3).await;
    }
    let before = runtime::fs::read(&path).await.unwrap();
    commit(&log, number, 4).await;
    let after = runtime::fs::read(&path).await.unwrap();
    (before, after)
}

/// Appends so many batches in one write.
async fn commit(log: &Log, mut number: u64, batches: u64) -> u64 {
    for _ in 0..batches {
        log.append(&batch(number, 1, 700 + number as usize * 13), 0, NOW_MS).await.unwrap();
        number += 1;
    }
    log.committed(number as i64).await.unwrap();
    number
}

async fn try_open(storage: &Storage) -> Result<(Log, RecoveryReport), OpenError> {
    storage.open_log("orders", 0, TOPIC_ID, options()).await
}

/// A6: whatever subset of the last write's sectors reached the disk, the log opens, nothing that
/// was acknowledged before that write is missing, and what is there is whole.
#[test]
fn a_torn_write_is_cut_at_a_batch_whatever_sectors_are_missing() {
    run(|dir| async move {
        let storage = storage(&dir);
        let (before, after) = commits(&storage, &dir).await;
        let path = segment(&dir, 0);
        let changed: Vec<usize> = (0..after.len() / SECTOR)
            .filter(|n| before[n * SECTOR..][..SECTOR] != after[n * SECTOR..][..SECTOR])
            .collect();
        assert!(changed.len() > 6);
        let mut random = 1_u64;
        let subsets = changed.len() * 2 + 40;
        for subset in 0..subsets {
            let mut torn = before.clone();
            for (number, sector) in changed.iter().enumerate() {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let new = match subset {
                    _ if subset < changed.len() => number < subset,
                    _ if subset < changed.len() * 2 => number != subset - changed.len(),
                    _ => random >> 63 == 1,
                };
                if new {
                    let at = sector * SECTOR;
                    torn[at..at + SECTOR].copy_from_slice(&after[at..at + SECTOR]);
                }
            }
            damage(&path, |bytes| *bytes = torn).await;
            let (log, report) = try_open(&storage).await.unwrap();
            let end = log.log_end_offset();
            assert!((15..=19).contains(&end), "subset {subset}: ends at {end}");
            assert_whole(&read_all(&log, 0).await, 0, end);
            assert_eq!(report.possibly_short, report.cut_bytes > 0);
            // It goes on there, and what was cut does not come back.
            append(&log, &batch(100, 1, 10)).await;
            log.give_up().await;
            let (log, report) = try_open(&storage).await.unwrap();
            assert_eq!((log.log_end_offset(), report.cut_bytes), (end + 1, 0));
            log.delete().await.unwrap();
            commits_again(&storage, &dir, &before).await;
        }
    });
}

/// What a start has cut is gone from the disk: the next one may know of a later leader epoch, and
/// would take it for damage.
#[test]
fn a_torn_write_does_not_outlast_the_start_that_cuts_it() {
    run(|dir| async move {
        let storage = storage(&dir);
        let (before, after) = commits(&storage, &dir).await;
        let mut torn = before.clone();
        let first = before.iter().zip(&after).position(|(old, new)| old != new).unwrap();
        let from = first.next_multiple_of(SECTOR) + SECTOR;
        torn[from..].copy_from_slice(&after[from..]);
        damage(&segment(&dir, 0), |bytes| *bytes = torn).await;

        let (log, report) = try_open(&storage).await.unwrap();
        let end = log.log_end_offset();
        assert!(report.cut_bytes > 0);
        log.give_up().await;
        let (log, report) = try_open(&storage).await.unwrap();
        assert_eq!((log.log_end_offset(), report.cut_bytes), (end, 0));
    });
}

/// The directory as it was before the last write, with an empty checkpoint.
async fn commits_again(storage: &Storage, dir: &Path, bytes: &[u8]) {
    let log = create(storage, LogOptions::default()).await;
    append(&log, &batch(0, 1, 10)).await;
    log.give_up().await;
    damage(&segment(dir, 0), |file| *file = bytes.to_vec()).await;
}

/// A8: one flipped bit in what was acknowledged is damage, wherever it is, and says where.
#[test]
fn a_flipped_bit_behind_the_recovery_point_takes_the_log_offline() {
    run(|dir| async move {
        let storage = storage(&dir);
        let (_, whole) = commits(&storage, &dir).await;
        let end = whole.iter().rposition(|byte| *byte != 0).unwrap();
        let path = segment(&dir, 0);
        let batches_end = batches_end(&whole);
        for at in (0..batches_end).step_by(37) {
            // The leader epoch is outside of the checksum, and a newer one is no contradiction
            // that could be seen without a later batch.
            damage(&path, |bytes| {
                bytes.clone_from(&whole);
                bytes[at] ^= 1 << (at % 8);
            })
            .await;
            match try_open(&storage).await {
                Err(OpenError::Damaged { file, position, .. }) => {
                    assert_eq!(file, path);
                    assert!(position <= at as u64, "found at {position}, is at {at}");
                }
                Err(error) => panic!("byte {at}: {error}"),
                Ok((log, _)) => {
                    assert!(is_leader_epoch(&whole, at), "byte {at} went unnoticed");
                    log.give_up().await;
                }
            }
            let unchanged = runtime::fs::read(&path).await.unwrap();
            assert!(unchanged[..at] == whole[..at], "a refused log keeps its bytes");
        }
        // Behind the last batch there is nothing to lose: the mark and zeros.
        for at in [batches_end, batches_end + 100, end, end - 20] {
            damage(&path, |bytes| {
                bytes.clone_from(&whole);
                bytes[at] ^= 1;
            })
            .await;
            let (log, _) = try_open(&storage).await.unwrap();
            assert_eq!(log.log_end_offset(), 19);
            assert_whole(&read_all(&log, 0).await, 0, 19);
        }
    });
}

fn batches_end(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Ok(header) = protocol::batch::BatchHeader::parse(&bytes[at..]) {
        at += header.size_in_bytes();
    }
    at
}

fn is_leader_epoch(bytes: &[u8], position: usize) -> bool {
    let mut at = 0;
    while let Ok(header) = protocol::batch::BatchHeader::parse(&bytes[at..]) {
        if (at + 12..at + 16).contains(&position) {
            return true;
        }
        at += header.size_in_bytes();
    }
    false
}

/// A7: valid batches of an earlier life of the file are not taken for the log's next ones.
#[test]
fn stale_batches_behind_the_end_are_not_resurrected() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        for number in 0..10 {
            log.append(&batch(number, 1, 700), 5, NOW_MS).await.unwrap();
        }
        log.committed(10).await.unwrap();
        log.give_up().await;
        let path = segment(&dir, 0);
        let end = batches_end(&runtime::fs::read(&path).await.unwrap());
        let stale = [
            // The right offset under an older epoch; the right epoch at a lower offset.
            batch(50, 1, 300).to_bytes(10, 4),
            batch(50, 1, 300).to_bytes(9, 5),
            batch(50, 1, 300).to_bytes(0, 5),
        ];
        for old in stale {
            damage(&path, |bytes| bytes[end..end + old.len()].copy_from_slice(&old)).await;
            match try_open(&storage).await {
                Ok((log, _)) => assert_eq!(log.log_end_offset(), 10),
                Err(OpenError::Damaged { position, .. }) => assert_eq!(position, end as u64),
                Err(error) => panic!("{error}"),
            }
        }
    });
}

/// A9: a damaged batch of a segment that nobody scans any more is not served, the others are.
#[test]
fn a_flipped_bit_in_an_old_segment_is_never_served() {
    run(|dir| async move {
        let storage = storage(&dir);
        let options = LogOptions { segment_bytes: 64 << 10, ..LogOptions::default() };
        let log = create(&storage, options.clone()).await;
        for number in 0..100 {
            append(&log, &batch(number, 1, 2000)).await;
        }
        log.close().await;
        let whole = runtime::fs::read(segment(&dir, 0)).await.unwrap();
        let one = batch(0, 1, 2000).size_in_bytes();
        for at in (0..whole.len()).step_by(311) {
            damage(&segment(&dir, 0), |bytes| {
                bytes.clone_from(&whole);
                bytes[at] ^= 1 << (at % 8);
            })
            .await;
            let (log, _) = open(&storage, options.clone()).await;
            let hit = (at / one) as i64;
            let refused = log.read(hit, 1, 100, true).await;
            match refused {
                Err(ReadError::Corrupt { position, .. }) => {
                    assert_eq!(position, (hit * one as i64) as u64, "byte {at}");
                }
                Ok(_) if (12..16).contains(&(at % one)) => {}
                other => panic!("byte {at}: {other:?}"),
            }
            if hit > 0 {
                // What comes before it is served up to it.
                let chunk = log.read(hit - 1, 1 << 20, 100, true).await.unwrap();
                assert_eq!(chunk.base_offset, hit - 1);
            }
            let chunk = log.read(50, 1 << 20, 100, true).await.unwrap();
            assert_eq!(chunk.base_offset, 50);
            log.close().await;
        }
    });
}

/// A11: a write that was acknowledged and never reached the disk.
#[test]
fn a_lost_write_is_damage_when_later_ones_are_there() {
    run(|dir| async move {
        let storage = storage(&dir);
        let log = create(&storage, LogOptions::default()).await;
        let path = segment(&dir, 0);
        append(&log, &batch(0, 1, 9000)).await;
        let first = runtime::fs::read(&path).await.unwrap();
        append(&log, &batch(1, 1, 9000)).await;
        let second = runtime::fs::read(&path).await.unwrap();
        append(&log, &batch(2, 1, 9000)).await;
        log.give_up().await;
        damage(&path, |bytes| {
            // The second write is undone, as far as the third did not write the same block again.
            for (at, byte) in bytes.iter_mut().enumerate().take(second.len()) {
                let again = at / 4096 == batches_end(&second) / 4096;
                if first[at] != second[at] && !again {
                    *byte = first[at];
                }
            }
        })
        .await;
        assert!(matches!(try_open(&storage).await, Err(OpenError::Damaged { .. })));
    });
}

#[test]
fn possibly_short_stays_until_someone_knows_better() {
    run(|dir| async move {
        let storage = storage(&dir);
        let (before, after) = commits(&storage, &dir).await;
        damage(&segment(&dir, 0), |bytes| {
            let torn = bytes.iter_mut().zip(before.iter().zip(&after)).enumerate();
            for (at, (byte, (old, new))) in torn {
                *byte = if at % 1024 < 512 { *new } else { *old };
            }
        })
        .await;
        let (log, report) = open(&storage, LogOptions::default()).await;
        assert!(report.possibly_short && log.is_possibly_short());
        assert_eq!(report.cut_at_offset, Some(log.log_end_offset()));
        log.close().await;
        let (log, report) = open(&storage, LogOptions::default()).await;
        assert!(report.clean && log.is_possibly_short());
        log.clear_possibly_short().await;
        log.close().await;
        let (log, _) = open(&storage, LogOptions::default()).await;
        assert!(!log.is_possibly_short());
    });
}

/// A batch may begin in the last bytes of a sector, with zeros of its offset, and a flipped length
/// may reach behind its commit: neither is a sector that was not written.
#[test]
fn an_acknowledged_batch_that_begins_or_seems_to_end_in_zeros_is_not_a_torn_write() {
    for (begin, flipped) in [(506, 2000), (506, LENGTH_BYTE), (300, LENGTH_BYTE)] {
        run(move |dir| async move {
            let storage = storage(&dir);
            let log = create(&storage, LogOptions::default()).await;
            let first = (1..).map(|size| batch(0, 1, size));
            let mut sized = first.skip_while(|batch| batch.to_bytes(0, 0).len() < begin);
            append(&log, &sized.next().unwrap()).await;
            append(&log, &batch(1, 1, 17_000)).await;
            log.give_up().await;
            let path = segment(&dir, 0);
            damage(&path, |bytes| bytes[begin + flipped] ^= 1).await;
            match try_open(&storage).await {
                Err(OpenError::Damaged { position, .. }) => assert_eq!(position, begin as u64),
                Err(error) => panic!("{error}"),
                Ok((_, report)) => panic!("{flipped} of {begin}: {} bytes cut", report.cut_bytes),
            }
        });
    }
}

/// Of a batch's length, the byte that counts 64 KiB.
const LENGTH_BYTE: usize = 9;

/// From its first write on it is known of a relaxed log that a power loss may leave anything of it.
#[test]
fn a_relaxed_log_is_cut_where_the_page_cache_left_a_hole() {
    for begins_strict in [false, true] {
        run(move |dir| async move {
            let storage = storage(&dir);
            let relaxed = LogOptions { flush_messages: i64::MAX, ..LogOptions::default() };
            let first = if begins_strict { LogOptions::default() } else { relaxed.clone() };
            let log = create(&storage, first).await;
            append(&log, &batch(0, 1, 2000)).await;
            log.set_options(relaxed.into());
            append(&log, &batch(1, 1, 2000)).await;
            let end = log.size_bytes() as usize;
            append(&log, &batch(2, 1, 2000)).await;
            log.give_up().await;
            damage(&segment(&dir, 0), |bytes| bytes[end - 100] ^= 1).await;
            let (log, report) = try_open(&storage).await.unwrap();
            assert!(report.cut_bytes > 0);
            assert_whole(&read_all(&log, 0).await, 0, 1);
        });
    }
}
