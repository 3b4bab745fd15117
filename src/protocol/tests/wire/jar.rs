//! Gets Kafka's client jar and reads the schemas out of it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = "4.4.0";
const FOLDER: &str = "common/message/";

/// The texts of all message schemas.
pub fn schema_texts() -> Vec<String> {
    let path = path();
    let jar = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let texts = unzip(&jar, |name| name.starts_with(FOLDER) && name.ends_with(".json"));
    assert!(texts.len() > 150, "{} holds only {} schemas", path.display(), texts.len());
    texts
}

fn path() -> PathBuf {
    if let Some(path) = std::env::var_os("CORETIDE_KAFKA_CLIENTS_JAR") {
        return path.into();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let jar = folder.join(format!("kafka-clients-{VERSION}.jar"));
    if !jar.exists() {
        fetch(folder);
    }
    jar
}

/// Has Maven put the jar beside its final place, and moves it there once it is whole.
fn fetch(folder: &Path) {
    let name = format!("kafka-clients-{VERSION}.jar");
    let arriving = folder.join(format!("arriving-{}", std::process::id()));
    let status = Command::new("mvn")
        .args(["-q", "-B", "dependency:copy"])
        .arg(format!("-Dartifact=org.apache.kafka:kafka-clients:{VERSION}"))
        .arg(format!("-DoutputDirectory={}", arriving.display()))
        .status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "mvn could not fetch kafka-clients {VERSION} ({status:?}): \
         set CORETIDE_KAFKA_CLIENTS_JAR to the path of that jar",
    );
    std::fs::rename(arriving.join(&name), folder.join(&name)).expect("the jar that mvn copied");
    std::fs::remove_dir_all(&arriving).expect("the folder that mvn made");
}

/// The texts of those files of a zip archive whose names `wanted` likes.
fn unzip(archive: &[u8], wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let number = |at: usize, bytes: usize| {
        archive[at..at + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let end = archive.windows(4).rposition(|bytes| bytes == b"PK\x05\x06").expect("a zip archive");
    let (count, mut at) = (number(end + 10, 2), number(end + 16, 4));
    let mut texts = Vec::new();
    for _ in 0..count {
        let (method, packed) = (number(at + 10, 2), number(at + 20, 4));
        let (name, extra, comment) = (number(at + 28, 2), number(at + 30, 2), number(at + 32, 2));
        let file = number(at + 42, 4);
        let name_text = std::str::from_utf8(&archive[at + 46..at + 46 + name]).unwrap();
        if wanted(name_text) {
            let data = file + 30 + number(file + 26, 2) + number(file + 28, 2);
            texts.push(inflate(&archive[data..data + packed], method));
        }
        at += 46 + name + extra + comment;
    }
    texts
}

fn inflate(packed: &[u8], method: usize) -> String {
    let mut text = String::new();
    let read = match method {
        0 => { packed }.read_to_string(&mut text),
        8 => flate2::read::DeflateDecoder::new(packed).read_to_string(&mut text),
        _ => panic!("compression method {method}"),
    };
    read.expect("a text file");
    text
}
