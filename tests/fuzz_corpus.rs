//! Runs the fuzz targets' bodies over their committed corpora: what the fuzzer once found, and
//! the seeds it starts from, hold with every ordinary test run.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use runtime::{Config, Exit};

#[path = "fuzz/bodies/batches.rs"]
mod batches;
#[path = "fuzz/bodies/frames.rs"]
mod frames;
#[path = "fuzz/bodies/groups.rs"]
mod groups;
#[path = "fuzz/bodies/recovery.rs"]
mod recovery;

/// The inputs of a target, with their files.
fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut inputs = Vec::new();
    for entry in fs::read_dir(&folder).expect("a corpus") {
        let path = entry.expect("a readable folder").path();
        let input = fs::read(&path).expect("a readable input");
        inputs.push((path, input));
    }
    assert!(inputs.len() > 5, "{} has only {} inputs", folder.display(), inputs.len());
    inputs
}

#[test]
fn frames_of_the_corpus_are_survived() {
    for (path, input) in corpus("frames") {
        println!("{}", path.display());
        frames::run(&input);
    }
}

#[test]
fn batches_of_the_corpus_are_survived() {
    for (path, input) in corpus("batches") {
        println!("{}", path.display());
        batches::run(&input);
    }
}

#[test]
fn group_records_of_the_corpus_are_survived() {
    for (path, input) in corpus("groups") {
        println!("{}", path.display());
        groups::run(&input);
    }
}

#[test]
fn damaged_logs_of_the_corpus_are_survived() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz-corpus");
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("an earlier run can be removed");
    }
    let exit = runtime::run::<(), _, _>(Config::new(vec![0]), move |_core| {
        let folder = folder.clone();
        async move {
            for (path, input) in corpus("recovery") {
                println!("{}", path.display());
                let data_dir = folder.join(path.file_name().unwrap_or_default());
                fs::create_dir_all(&data_dir).expect("a folder for the log");
                recovery::run(data_dir, input).await;
            }
            Exit::Clean
        }
    });
    assert_eq!(exit, Exit::Clean);
}
