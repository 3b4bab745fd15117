//! Writes the seeds of the corpora: a few inputs that lead the fuzzer to every branch quickly.

use std::fs;
use std::path::Path;

use protocol::batch::{BatchBuilder, Codec, Compression, NewRecord};

#[path = "bodies/frames.rs"]
mod frames;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    batches(&corpus.join("batches"))?;
    damages(&corpus.join("recovery"))?;
    empty_messages(&corpus.join("frames"))
}

fn batches(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for codec in Codec::ALL {
        for count in [1, 4] {
            let mut builder = BatchBuilder::new(Compression::of(codec)).producer(7, 1, 5);
            for index in 0..count {
                builder.append(&NewRecord {
                    timestamp: 1_700_000_000_000 - index,
                    key: (index > 0).then_some(b"key"),
                    value: Some(b"value value value"),
                    headers: &[("header", Some(b"x")), ("none", None)],
                });
            }
            // Rules: keep the producer's codec. Repairs: all of them.
            let input = [&[7, 7], &builder.build()[..]].concat();
            fs::write(folder.join(format!("{}-{count}", codec.name())), input)?;
        }
    }
    Ok(())
}

/// One change to each kind of file, and the whole log untouched.
fn damages(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("untouched"), [])?;
    for file in 0..8 {
        for change in [0, 4, 5] {
            let input = [file, change, 1, 44, 3, 0xff, 0, 1];
            fs::write(folder.join(format!("file-{file}-change-{change}")), input)?;
        }
    }
    Ok(())
}

/// Some messages in their newest version, empty: the others are one changed byte away.
fn empty_messages(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for (number, case) in frames::cases::all().iter().enumerate() {
        let api = case.name.trim_end_matches("Request").trim_end_matches("Response");
        if SEEDED.contains(&api) {
            let version = case.versions.max;
            let body = (case.encode_default)(version);
            let step = (version - case.versions.min) as u8;
            let input = [&[1, number as u8, step], &body[..]].concat();
            fs::write(folder.join(case.name), input)?;
        }
    }
    // A whole request: Metadata, version 1, correlation id 9, client "c", no topics.
    let request = [0, 0, 3, 0, 1, 0, 0, 0, 9, 0, 1, b'c', 0, 0, 0, 0];
    fs::write(folder.join("frame-metadata-1"), request)?;
    // ApiVersions, version 3, with tagged fields in its header.
    let request = [0, 0, 18, 0, 3, 0, 0, 0, 9, 0, 1, b'c', 0, 2, b'n', 2, b'1', 0];
    fs::write(folder.join("frame-api-versions-3"), request)
}

const SEEDED: [&str; 12] = [
    "AddPartitionsToTxn",
    "ApiVersions",
    "ConsumerGroupHeartbeat",
    "CreateTopics",
    "DescribeConfigs",
    "Fetch",
    "JoinGroup",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "Produce",
    "SyncGroup",
];
