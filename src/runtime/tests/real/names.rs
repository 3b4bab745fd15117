//! Directories, renames, locks, and what a directory is on.

use std::io;

use runtime::fs;

use crate::{TempDir, on_core};

#[test]
fn directories_list_rename_and_remove() {
    let dir = TempDir::on_disk("names");
    let path = dir.0.clone();
    on_core(move || {
        let path = path.clone();
        async move {
            fs::create_dir_all(path.join("a/b")).await.unwrap();
            fs::write_atomic(path.join("a/z"), b"12345").await.unwrap();
            fs::write_atomic(path.join("a/c"), b"1").await.unwrap();
            fs::sync_dir(&path).await.unwrap();
            let entries = fs::list(path.join("a")).await.unwrap();
            let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
            assert_eq!(names, ["b", "c", "z"]);
            assert!(entries[0].is_dir && !entries[2].is_dir);
            assert_eq!(entries[2].len, 5);
            fs::rename(path.join("a/z"), path.join("a/y")).await.unwrap();
            assert!(!fs::exists(path.join("a/z")).await.unwrap());
            assert_eq!(fs::read(path.join("a/y")).await.unwrap(), b"12345");
            fs::remove_file(path.join("a/y")).await.unwrap();
            let error = fs::read(path.join("a/y")).await.unwrap_err();
            assert_eq!((error.op, error.kind()), ("read", io::ErrorKind::NotFound));
            fs::remove_dir_all(path.join("a")).await.unwrap();
            assert!(fs::list(&path).await.unwrap().is_empty());
            assert!(fs::sync_dir(path.join("a")).await.is_err());
        }
    });
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let dir = TempDir::on_disk("replace");
    let path = dir.0.clone();
    on_core(move || {
        let path = path.clone();
        async move {
            for contents in [&b"first, and longer"[..], b"second", b""] {
                fs::write_atomic(path.join("state"), contents).await.unwrap();
                assert_eq!(fs::read(path.join("state")).await.unwrap(), contents);
                assert_eq!(fs::list(&path).await.unwrap().len(), 1);
            }
        }
    });
}

#[test]
fn a_lock_has_one_holder_and_says_who() {
    let dir = TempDir::on_disk("lock");
    let path = dir.join(".lock");
    on_core(move || {
        let path = path.clone();
        async move {
            let guard = fs::lock(&path).await.unwrap();
            let refused = fs::lock(&path).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
            let holder = format!("process {}", std::process::id());
            assert!(refused.to_string().contains(&holder), "{refused}");
            drop(guard);
            drop(fs::lock(&path).await.unwrap());
        }
    });
}

#[test]
fn a_disk_is_described() {
    let dir = TempDir::on_disk("info");
    let path = dir.0.clone();
    on_core(move || {
        let path = path.clone();
        async move {
            let info = fs::info(&path).await.unwrap();
            assert!(info.total > 0 && info.free <= info.total, "{info:?}");
            assert!(info.logical_sector >= 512 && info.logical_sector.is_power_of_two());
            assert!(info.physical_sector >= info.logical_sector, "{info:?}");
            assert!(fs::list(&path).await.unwrap().is_empty(), "the probe leaves nothing");
            let memory = fs::info("/dev/shm").await.unwrap();
            assert_eq!((memory.kind.as_str(), memory.direct_io), ("tmpfs", false));
            assert!(fs::info(path.join("missing")).await.is_err());
        }
    });
}
