//! Appending, replacing, compacting, and finding it all again.

use storage::entry_log::{EntryLog, EntryLogDamageKind, EntryLogOpenError};

use crate::{Folder, OPTIONS, entries, entry, load, on_a_core, open};

#[test]
fn what_was_appended_is_found_again_over_many_files() {
    let folder = Folder::new("append");
    let dir = folder.path().to_owned();
    on_a_core(move || {
        let dir = dir.clone();
        async move {
            let mut log = EntryLog::create(&dir, OPTIONS, 1).await.expect("an empty folder");
            for index in 1..=100 {
                log.append(&entries(index..=index)).await.expect("it is appended");
            }
            log.close().await.expect("it closes");
            let (mut log, loaded) = open(&dir, 0).await.expect("it is sound");
            assert_eq!((loaded.entries, loaded.torn), (entries(1..=100), None));
            log.append(&entries(101..=140)).await.expect("a group over several files");
            assert_eq!(log.last_index(), 140);
            drop(log);
            assert_eq!(load(&dir, 0).await.expect("it is sound").entries, entries(1..=140));
            assert_eq!(load(&dir, 130).await.expect("sound").entries, entries(131..=140));
        }
    });
    assert!(folder.contents().len() > 10, "several files of {} bytes", OPTIONS.file_bytes);
}

#[test]
fn spare_files_are_used_before_others_are_made() {
    let folder = Folder::new("spare");
    let dir = folder.path().to_owned();
    on_a_core(move || {
        let dir = dir.clone();
        async move {
            let names = async |ending: &str| {
                let entries = runtime::fs::list(&dir).await.expect("listed");
                entries.iter().filter(|entry| entry.name.ends_with(ending)).count()
            };
            // Of a release with other sizes.
            runtime::fs::write_atomic(dir.join("spare-1.blank"), b"short").await.expect("written");
            let mut log = EntryLog::create(&dir, OPTIONS, 1).await.expect("an empty folder");
            assert_eq!(names(".blank").await, 0);
            log.keep_spares().await.expect("there is room");
            assert_eq!((names(".blank").await, names(".entries").await), (2, 1));
            let mut next = 1;
            for (spares, files) in [(1, 2), (0, 3), (0, 4)] {
                while names(".entries").await < files {
                    log.append(&entries(next..=next)).await.expect("appended");
                    next += 1;
                }
                assert_eq!(names(".blank").await, spares);
            }
            log.keep_spares().await.expect("there is room");
            log.append(&[entry(next, &"large".repeat(200))]).await.expect("a file of its own");
            assert_eq!(names(".blank").await, 2, "too small for that one");
            log.close().await.expect("closed");
            let (mut log, loaded) = open(&dir, 0).await.expect("sound");
            assert_eq!(loaded.entries.len() as u64, next);
            log.append(&entries(next + 1..=next + 60)).await.expect("appended");
            assert_eq!(names(".blank").await, 0, "those of the life before were used");
            log.close().await.expect("closed");
            assert_eq!(load(&dir, 0).await.expect("sound").entries.len() as u64, next + 60);
        }
    });
}

#[test]
fn opening_again_and_again_changes_nothing() {
    let folder = Folder::new("again");
    let dir = folder.path().to_owned();
    on_a_core(move || {
        let dir = dir.clone();
        async move {
            let mut log = EntryLog::create(&dir, OPTIONS, 1).await.expect("an empty folder");
            log.append(&entries(1..=3)).await.expect("appended");
            log.close().await.expect("closed");
        }
    });
    let before = folder.contents();
    let dir = folder.path().to_owned();
    on_a_core(move || {
        let dir = dir.clone();
        async move {
            for _ in 0..3 {
                assert_eq!(load(&dir, 0).await.expect("sound").entries, entries(1..=3));
            }
        }
    });
    assert_eq!(folder.contents(), before);
}

#[test]
fn a_tail_is_replaced_also_across_files() {
    let folder = Folder::new("replace");
    let dir = folder.path().to_owned();
    on_a_core(move || {
        let dir = dir.clone();
        async move {
            let mut log = EntryLog::create(&dir, OPTIONS, 1).await.expect("an empty folder");
            log.append(&entries(1..=40)).await.expect("appended");
            log.append(&[entry(7, "another seventh")]).await.expect("replaced");
            assert_eq!(log.last_index(), 7);
            let mut expected = entries(1..=6);
            expected.push(entry(7, "another seventh"));
            assert_eq!(load(&dir, 0).await.expect("sound").entries, expected);
            log.cut(4).await.expect("cut");
            assert_eq!(load(&dir, 0).await.expect("sound").entries, entries(1..=3));
            log.cut(9).await.expect("there is nothing to cut");
            log.append(&entries(4..=30)).await.expect("appended");
            drop(log);
            assert_eq!(load(&dir, 0).await.expect("sound").entries, entries(1..=30));
        }
    });
}

#[test]
fn compaction_removes_whole_files_and_never_what_is_needed() {
    let folder = Folder::new("compact");
    let dir = folder.path().to_owned();
    on_a_core(move || {
        let dir = dir.clone();
        async move {
            let mut log = EntryLog::create(&dir, OPTIONS, 1).await.expect("an empty folder");
            log.append(&entries(1..=100)).await.expect("appended");
            let before = log.size_bytes();
            log.compact(60).await.expect("compacted");
            assert!(log.size_bytes() < before);
            assert_eq!(load(&dir, 60).await.expect("sound").entries, entries(61..=100));
            let missing = load(&dir, 10).await.map(|loaded| loaded.entries);
            let Err(EntryLogOpenError::Damaged(damage)) = missing else {
                panic!("entries behind 10 are gone, but: {missing:?}");
            };
            assert!(matches!(damage.kind, EntryLogDamageKind::EntriesMissing { from: 11, .. }));
            log.compact(1_000).await.expect("all but the file in use");
            assert_eq!(log.size_bytes(), OPTIONS.file_bytes);
            log.append(&entries(101..=110)).await.expect("appended");
            drop(log);
            assert_eq!(load(&dir, 100).await.expect("sound").entries, entries(101..=110));
        }
    });
}

#[test]
fn a_snapshot_ahead_of_the_log_starts_it_anew() {
    let folder = Folder::new("restart");
    let dir = folder.path().to_owned();
    on_a_core(move || {
        let dir = dir.clone();
        async move {
            let mut log = EntryLog::create(&dir, OPTIONS, 1).await.expect("an empty folder");
            log.append(&entries(1..=50)).await.expect("appended");
            log.restart_at(1_001).await.expect("the snapshot is at 1,000");
            assert_eq!((log.last_index(), log.size_bytes()), (1_000, OPTIONS.file_bytes));
            assert_eq!(load(&dir, 1_000).await.expect("sound").entries, []);
            log.append(&entries(1_001..=1_010)).await.expect("appended");
            drop(log);
            assert_eq!(load(&dir, 1_000).await.expect("sound").entries, entries(1_001..=1_010));
            assert!(load(&dir, 999).await.is_err(), "without that snapshot entries are missing");
        }
    });
}

#[test]
fn entries_larger_than_a_file_get_one_of_their_own() {
    let folder = Folder::new("large");
    let dir = folder.path().to_owned();
    on_a_core(move || {
        let dir = dir.clone();
        async move {
            let large = entry(2, &"x".repeat(100_000));
            let mut log = EntryLog::create(&dir, OPTIONS, 1).await.expect("an empty folder");
            log.append(&[entry(1, "small"), large.clone(), entry(3, "")]).await.expect("appended");
            drop(log);
            let found = load(&dir, 0).await.expect("sound").entries;
            assert_eq!(found, [entry(1, "small"), large, entry(3, "")]);
        }
    });
}

#[test]
fn a_log_that_is_not_there_is_not_an_empty_one() {
    let folder = Folder::new("missing");
    let dir = folder.path().to_owned();
    let missing = on_a_core(move || {
        let dir = dir.clone();
        async move { matches!(open(&dir, 0).await, Err(EntryLogOpenError::Missing { .. })) }
    });
    assert!(missing);
}
