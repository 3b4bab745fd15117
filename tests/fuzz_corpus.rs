//! Runs the fuzz targets' bodies over their committed corpora: what the fuzzer once found, and
//! the seeds it starts from, hold with every ordinary test run.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

#[path = "fuzz/bodies/batches.rs"]
mod batches;
#[path = "fuzz/bodies/frames.rs"]
mod frames;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(&folder).expect("a corpus") {
        let path = entry.expect("a readable folder").path();
        let input = fs::read(&path).expect("a readable input");
        println!("{}", path.display());
        run(&input);
        inputs += 1;
    }
    assert!(inputs > 5, "{} has only {inputs} inputs", folder.display());
}

#[test]
fn frames_of_the_corpus_are_survived() {
    replay("frames", frames::run);
}

#[test]
fn batches_of_the_corpus_are_survived() {
    replay("batches", batches::run);
}
