//! The vote and the snapshot: whole or refused.

use std::fs;

use storage::entry_log::{SealedFileError, SnapshotFile, StateFile};

use crate::{Folder, on_a_core};

#[test]
fn a_state_is_what_was_last_stored() {
    let folder = Folder::new("state");
    let path = folder.path().join("vote");
    on_a_core(move || {
        let path = path.clone();
        async move {
            let file = StateFile::at(path.clone());
            assert_eq!(file.load().await.expect("there is none"), None);
            for state in [&b"one"[..], b"", b"three"] {
                file.store(state).await.expect("stored");
                assert_eq!(file.load().await.expect("sound").as_deref(), Some(state));
            }
            let snapshot = SnapshotFile::at(path);
            assert!(snapshot.load().await.is_err(), "a vote is not a snapshot");
        }
    });
}

#[test]
fn every_damaged_byte_is_refused_and_never_taken_for_absence() {
    let folder = Folder::new("snapshot");
    let path = folder.path().join("metadata.snapshot");
    on_a_core(move || {
        let path = path.clone();
        async move {
            let file = SnapshotFile::at(path.clone());
            file.store(b"every topic there is").await.expect("stored");
            let sound = fs::read(&path).expect("it is there");
            for at in 0..sound.len() {
                let mut flipped = sound.clone();
                flipped[at] ^= 4;
                for damaged in [&flipped[..], &sound[..at]] {
                    fs::write(&path, damaged).expect("written");
                    let loaded = file.load().await;
                    let refused = matches!(loaded, Err(SealedFileError::Refused { .. }));
                    assert!(refused, "byte {at}: {loaded:?}");
                }
            }
        }
    });
}
