//! Fault A10 on the entry log: every byte of every file, shortened, emptied, deleted.

use std::path::{Path, PathBuf};

use storage::entry_log::{Entry, EntryLog, EntryLogOpenError, Loaded};

use crate::{Folder, OPTIONS, entries, load, on_a_core, open};

type Contents = Vec<(PathBuf, Vec<u8>)>;

const LAST: u64 = 25;
const MARK_BYTES: usize = 17;
const HOLE_BYTES: usize = 64;

fn written_end(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// A closed log of several files, with a replaced tail in it.
fn written(name: &str) -> (Folder, Contents) {
    let folder = Folder::new(name);
    let dir = folder.path().to_owned();
    on_a_core(move || {
        let dir = dir.clone();
        async move {
            let mut log = EntryLog::create(&dir, OPTIONS, 1).await.expect("an empty folder");
            log.append(&entries(1..=9)).await.expect("appended");
            log.append(&entries(6..=20)).await.expect("replaced");
            for index in 21..=LAST {
                log.append(&entries(index..=index)).await.expect("appended");
            }
            log.close().await.expect("closed");
        }
    });
    let contents = folder.contents();
    assert!(contents.len() >= 3, "{} files", contents.len());
    (folder, contents)
}

/// All that was acknowledged, or a refusal that leaves every byte as it is.
async fn assert_nothing_is_lost(dir: &Path, what: &str) -> bool {
    match load(dir, 0).await {
        Ok(Loaded { entries: found, .. }) => {
            assert_eq!(found, entries(1..=LAST), "{what}: acknowledged entries are gone");
            true
        }
        Err(EntryLogOpenError::Damaged(damage)) => {
            assert!(damage.path.starts_with(dir), "{what}: {damage} names no file");
            false
        }
        Err(other) => panic!("{what}: {other}"),
    }
}

/// Applies `change` to each file at each position and opens what comes of it.
fn try_all(name: &str, change: impl Fn(&mut Vec<u8>, usize) + Clone + Send + 'static) -> [u32; 2] {
    let (folder, contents) = written(name);
    let (folder, contents) = (std::sync::Arc::new(folder), std::sync::Arc::new(contents));
    on_a_core(move || {
        let (folder, contents, change) = (folder.clone(), contents.clone(), change.clone());
        async move {
            let mut outcomes = [0, 0];
            for number in 0..contents.len() {
                for at in 0..contents[number].1.len() {
                    let mut changed = Contents::clone(&contents);
                    change(&mut changed[number].1, at);
                    if changed == *contents {
                        continue;
                    }
                    folder.restore(&changed);
                    let what = format!("{name} file {number} at {at}", name = "damage in");
                    let whole = assert_nothing_is_lost(folder.path(), &what).await;
                    outcomes[usize::from(whole)] += 1;
                    if !whole {
                        assert_eq!(folder.contents(), changed, "{what}: a refusal changed a file");
                    }
                }
            }
            outcomes
        }
    })
}

#[test]
fn a_flipped_bit_anywhere_loses_nothing_silently() {
    let [refused, whole] = try_all("flip", |bytes, at| bytes[at] ^= 1 << (at % 8));
    // Bits of acknowledged entries are most of what was written; the zeros behind do no harm.
    assert!(refused > 800, "{refused} flips were refused, {whole} did no harm");
}

#[test]
fn a_file_shortened_to_any_length_is_refused() {
    let [_, whole] = try_all("shorten", |bytes, at| bytes.truncate(at));
    assert_eq!(whole, 0);
}

#[test]
fn bytes_that_became_zero_lose_nothing_silently() {
    let [refused, _] = try_all("zero", |bytes, at| {
        let end = bytes.len().min(at + HOLE_BYTES);
        // The last entries and the mark that covers them, both gone, are as if never written.
        let last_mark = written_end(bytes) - MARK_BYTES;
        if end <= last_mark || at >= last_mark {
            bytes[at..end].fill(0);
        }
    });
    assert!(refused > 800);
}

#[test]
fn a_missing_file_is_refused() {
    let (folder, contents) = written("delete");
    for number in 0..contents.len() {
        let mut fewer = contents.clone();
        let (gone, _) = fewer.remove(number);
        folder.restore(&fewer);
        let dir = folder.path().to_owned();
        let refused = on_a_core(move || {
            let dir = dir.clone();
            async move { load(&dir, 0).await.is_err() }
        });
        assert!(refused, "{} was not missed", gone.display());
    }
}

#[test]
fn a_torn_append_is_dropped_wherever_it_tore_and_the_log_goes_on() {
    let (folder, before) = written("torn");
    let dir = folder.path().to_owned();
    let group = entries(LAST + 1..=LAST + 3);
    on_a_core({
        let (dir, group) = (dir.clone(), group.clone());
        move || {
            let (dir, group) = (dir.clone(), group.clone());
            async move {
                let (mut log, _) = open(&dir, 0).await.expect("sound");
                log.append(&group).await.expect("appended");
            }
        }
    });
    let after = folder.contents();
    let torn = torn_states(&before, &after);
    assert!(torn.len() > 100);
    let folder = std::sync::Arc::new(folder);
    on_a_core(move || {
        let (folder, torn, group) = (folder.clone(), torn.clone(), group.clone());
        async move {
            for (number, state) in torn.iter().enumerate() {
                folder.restore(state);
                reopen_and_go_on(folder.path(), number, &group).await;
            }
        }
    });
}

/// The append reached the disk up to some byte, or all but the bytes around some position.
fn torn_states(before: &Contents, after: &Contents) -> Vec<Contents> {
    assert_eq!(before.len(), after.len(), "the append fits the file in use");
    let last = before.len() - 1;
    let (old, new) = (&before[last].1, &after[last].1);
    let first = (0..old.len()).find(|at| old[*at] != new[*at]).expect("something was written");
    // The mark at the end is only written when the rest is durable.
    let entries_end = written_end(new) - MARK_BYTES;
    let state = |bytes: Vec<u8>| {
        let mut contents = before.clone();
        contents[last].1 = bytes;
        contents
    };
    let mut states = Vec::new();
    for cut in first..entries_end {
        let mut prefix = new.clone();
        prefix[cut..].copy_from_slice(&old[cut..]);
        states.push(state(prefix));
        let mut hole = new.clone();
        hole[entries_end..].fill(0);
        let hole_end = entries_end.min(cut + 16);
        hole[cut..hole_end].copy_from_slice(&old[cut..hole_end]);
        states.push(state(hole));
    }
    states
}

async fn reopen_and_go_on(dir: &Path, number: usize, group: &[Entry]) {
    let (mut log, loaded) = open(dir, 0).await.expect("a torn write is not damage");
    let kept = loaded.entries.len() - LAST as usize;
    assert_eq!(loaded.entries[..LAST as usize], entries(1..=LAST), "state {number}");
    assert_eq!(loaded.entries[LAST as usize..], group[..kept], "state {number}");
    let next = log.last_index() + 1;
    log.append(&entries(next..=next)).await.expect("it goes on");
    drop(log);
    let again = load(dir, 0).await.expect("sound").entries;
    assert_eq!(again.len() as u64, next, "state {number}");
}
