//! A partition's directory: its name, what is in it, and whose it is.
//!
//! Law: a directory is used only when its identity file names the topic id asked for, in a format
//! this program knows. The identity is written before anything else is, so a directory without
//! one and without segments is a creation that a crash cut short, and one with segments is not
//! ours.

use std::path::{Path, PathBuf};

use protocol::Uuid;
use thiserror::Error;

/// Name of the identity file. Its lines are `format: 1`, `topic_id: <id>`, `partition: <n>`,
/// `checksum: <CRC-32C of the lines before, hexadecimal>`.
pub const IDENTITY_FILE_NAME: &str = "partition.metadata";
/// Where deleted partitions wait for their removal, in the data directory.
pub const DELETED_DIR_NAME: &str = "deleted";
/// Behind the name of a segment's file that is going to be removed.
pub const DELETED_SUFFIX: &str = ".deleted";

/// Whose directory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub topic_id: Uuid,
    pub partition: i32,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IdentityError {
    #[error("the identity file is missing")]
    Missing,
    #[error("the identity file is damaged")]
    Damaged,
    #[error("the directory has format {0}, this program knows {IDENTITY_FORMAT}")]
    Format(u32),
}

impl Identity {
    pub fn to_file(self) -> String {
        let Identity { topic_id, partition } = self;
        let lines =
            format!("format: {IDENTITY_FORMAT}\ntopic_id: {topic_id}\npartition: {partition}\n");
        let checksum = crc32c::crc32c(lines.as_bytes());
        format!("{lines}checksum: {checksum:08x}\n")
    }

    pub fn from_file(file: &[u8]) -> Result<Identity, IdentityError> {
        let text = std::str::from_utf8(file).map_err(|_| IdentityError::Damaged)?;
        let covered = text.find("checksum: ").ok_or(IdentityError::Damaged)?;
        let (lines, last) = text.split_at(covered);
        let checksum = crc32c::crc32c(lines.as_bytes());
        if last != format!("checksum: {checksum:08x}\n") {
            return Err(IdentityError::Damaged);
        }
        let field = |name: &str| lines.lines().find_map(|line| line.strip_prefix(name));
        let format = field("format: ").and_then(|value| value.parse::<u32>().ok());
        match format {
            Some(IDENTITY_FORMAT) => {}
            Some(newer) => return Err(IdentityError::Format(newer)),
            None => return Err(IdentityError::Damaged),
        }
        let topic_id = field("topic_id: ").and_then(|value| value.parse().ok());
        let partition = field("partition: ").and_then(|value| value.parse().ok());
        match (topic_id, partition) {
            (Some(topic_id), Some(partition)) => Ok(Identity { topic_id, partition }),
            _ => Err(IdentityError::Damaged),
        }
    }
}

/// `<topic>-<partition>`
pub fn log_dir_name(topic: &str, partition: i32) -> String {
    format!("{topic}-{partition}")
}

/// Topic and partition of a directory with the name of a log.
pub fn parse_log_dir_name(name: &str) -> Option<(&str, i32)> {
    let (topic, partition) = name.rsplit_once('-')?;
    let digits = !partition.is_empty() && partition.bytes().all(|byte| byte.is_ascii_digit());
    if topic.is_empty() || !digits {
        return None;
    }
    partition.parse().ok().map(|partition| (topic, partition))
}

/// Where a deleted partition's directory goes.
pub fn deleted_dir(data_dir: &Path, identity: Identity) -> PathBuf {
    let Identity { topic_id, partition } = identity;
    data_dir.join(DELETED_DIR_NAME).join(format!("{topic_id}-{partition}"))
}

/// A file of a segment, by its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SegmentFile {
    Log,
    OffsetIndex,
    TimeIndex,
}

impl SegmentFile {
    pub const ALL: [SegmentFile; 3] =
        [SegmentFile::Log, SegmentFile::OffsetIndex, SegmentFile::TimeIndex];

    fn ending(self) -> &'static str {
        match self {
            SegmentFile::Log => ".log",
            SegmentFile::OffsetIndex => ".index",
            SegmentFile::TimeIndex => ".timeindex",
        }
    }

    /// 20 digits of the base offset and the ending, as Kafka names them.
    pub fn name(self, base_offset: i64) -> String {
        format!("{base_offset:020}{}", self.ending())
    }

    /// Base offset and kind of the segment file with this name.
    pub fn parse(name: &str) -> Option<(i64, SegmentFile)> {
        let (digits, ending) = name.split_at_checked(20)?;
        let kind = SegmentFile::ALL.into_iter().find(|kind| kind.ending() == ending)?;
        let digits_only = digits.bytes().all(|byte| byte.is_ascii_digit());
        let base_offset = digits.parse().ok()?;
        digits_only.then_some((base_offset, kind))
    }
}

const IDENTITY_FORMAT: u32 = 1;
