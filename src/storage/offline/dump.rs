//! `log dump`: what Kafka's own dump tool shows of a segment or an index, line by line.
//!
//! Law: a line at a time, whatever the size of the file. Lines have the fields of Kafka's tool, in
//! its order and under its names, so that what reads the one reads the other.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::path::Path;

use protocol::batch::header::{HEADER_BYTES, crc_ok};
use protocol::batch::{BatchHeader, RecordIter, RecordView, TimestampType};

use super::OfflineError;
use super::access::Access;
use super::segment_check::body_of;
use super::window::Window;
use crate::directory::SegmentFile;
use crate::index::{OffsetEntry, OffsetIndex, TimeEntry, TimeIndex};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpOptions {
    /// Every record of every batch (`--deep-iteration`).
    pub deep: bool,
    /// Keys and values of the records too (`--print-data-log`); implies `deep`.
    pub print_data: bool,
}

/// The lines of a file; the first error ends them.
pub struct Dump {
    content: Content,
    options: DumpOptions,
    ready: VecDeque<DumpLine>,
    _access: Access,
}

enum Content {
    Segment { window: Window, position: u64 },
    Offsets(VecDeque<OffsetEntry>),
    Times(VecDeque<TimeEntry>),
    Nothing,
}

/// One line, `Display` says it as Kafka's tool does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpLine {
    Heading {
        path: String,
    },
    LogStart {
        base_offset: i64,
    },
    Batch {
        header: BatchHeader,
        position: u64,
        valid: bool,
    },
    Record(DumpedRecord),
    /// Records that cannot be shown.
    Unreadable {
        position: u64,
        reason: String,
    },
    /// Bytes behind the last batch: space allocated ahead (`used` is 0), or damage.
    Behind {
        position: u64,
        bytes: u64,
        used: u64,
    },
    OffsetEntry(OffsetEntry),
    TimeEntry(TimeEntry),
    Damaged {
        reason: String,
    },
}

/// A record of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedRecord {
    pub offset: i64,
    pub timestamp: i64,
    pub timestamp_type: TimestampType,
    pub key_bytes: i64,
    pub value_bytes: i64,
    pub sequence: i32,
    pub header_keys: Vec<String>,
    /// Key and value, when they were asked for.
    pub data: Option<(Option<String>, Option<String>)>,
    /// Type and coordinator epoch of a transaction marker.
    pub marker: Option<(&'static str, i32)>,
}

/// Begins to dump a `.log`, `.index` or `.timeindex` file.
pub fn dump(path: &Path, options: DumpOptions) -> Result<Dump, OfflineError> {
    let access = Access::to(path)?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((base_offset, file)) = SegmentFile::parse(name) else {
        return Err(OfflineError::NotALog(path.to_owned()));
    };
    let mut ready = VecDeque::from([DumpLine::Heading { path: path.display().to_string() }]);
    let read = || fs::read(path).map_err(OfflineError::io("read", path));
    let content = match file {
        SegmentFile::Log => {
            ready.push_back(DumpLine::LogStart { base_offset });
            Content::Segment { window: Window::open(path)?, position: 0 }
        }
        SegmentFile::OffsetIndex => match OffsetIndex::parse(base_offset, &read()?, u64::MAX) {
            Ok(index) => Content::Offsets(index.entries().collect()),
            Err(damage) => damaged(&mut ready, &damage),
        },
        SegmentFile::TimeIndex => match TimeIndex::parse(base_offset, &read()?) {
            Ok(index) => Content::Times(index.entries().collect()),
            Err(damage) => damaged(&mut ready, &damage),
        },
    };
    Ok(Dump { content, options, ready, _access: access })
}

fn damaged(ready: &mut VecDeque<DumpLine>, damage: &dyn fmt::Display) -> Content {
    ready.push_back(DumpLine::Damaged { reason: damage.to_string() });
    Content::Nothing
}

impl Iterator for Dump {
    type Item = Result<DumpLine, OfflineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(line) = self.ready.pop_front() {
            return Some(Ok(line));
        }
        match &mut self.content {
            Content::Nothing => None,
            Content::Offsets(entries) => entries.pop_front().map(|e| Ok(DumpLine::OffsetEntry(e))),
            Content::Times(entries) => entries.pop_front().map(|e| Ok(DumpLine::TimeEntry(e))),
            Content::Segment { .. } => match self.next_batch() {
                Ok(()) => self.ready.pop_front().map(Ok),
                Err(error) => {
                    self.content = Content::Nothing;
                    Some(Err(error))
                }
            },
        }
    }
}

impl Dump {
    /// Makes the lines of the next batch ready; none at the file's end.
    fn next_batch(&mut self) -> Result<(), OfflineError> {
        let Content::Segment { window, position } = &mut self.content else { return Ok(()) };
        let at = *position;
        let rest = window.length() - at;
        if rest == 0 {
            return Ok(());
        }
        let header = BatchHeader::parse_prefix(window.bytes(at, HEADER_BYTES)?);
        let header = header.ok().filter(|header| header.size_in_bytes() as u64 <= rest);
        let Some(header) = header else {
            let used = used_bytes(window, at)?;
            self.content = Content::Nothing;
            self.ready.push_back(DumpLine::Behind { position: at, bytes: rest, used });
            return Ok(());
        };
        let batch = window.bytes(at, header.size_in_bytes())?;
        self.ready.push_back(DumpLine::Batch { header, position: at, valid: crc_ok(batch) });
        if self.options.deep || self.options.print_data {
            push_records(&mut self.ready, &header, batch, at, self.options.print_data);
        }
        *position += header.size_in_bytes() as u64;
        Ok(())
    }
}

/// Bytes from `position` on up to the last one that is not zero.
fn used_bytes(window: &mut Window, position: u64) -> Result<u64, OfflineError> {
    let mut used = 0;
    let mut at = position;
    while at < window.length() {
        let bytes = window.bytes(at, SCAN_BYTES)?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            used = at + last as u64 + 1 - position;
        }
        at += bytes.len() as u64;
    }
    Ok(used)
}

fn push_records(
    ready: &mut VecDeque<DumpLine>,
    header: &BatchHeader,
    batch: &[u8],
    position: u64,
    print_data: bool,
) {
    let body = match body_of(header, &batch[HEADER_BYTES..]) {
        Ok(body) => body,
        Err(reason) => {
            ready.push_back(DumpLine::Unreadable { position, reason });
            return;
        }
    };
    for record in RecordIter::new(&body, header.count) {
        ready.push_back(match record {
            Ok(record) => DumpLine::Record(DumpedRecord::of(header, &record, print_data)),
            Err(error) => DumpLine::Unreadable { position, reason: error.to_string() },
        });
    }
}

impl DumpedRecord {
    fn of(header: &BatchHeader, record: &RecordView<'_>, print_data: bool) -> DumpedRecord {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let length = |bytes: Option<&[u8]>| bytes.map_or(-1, |bytes| bytes.len() as i64);
        let sequence = match header.base_sequence {
            -1 => -1,
            base => {
                ((i64::from(base) + i64::from(record.offset_delta)) & i64::from(i32::MAX)) as i32
            }
        };
        DumpedRecord {
            offset: header.base_offset.saturating_add(i64::from(record.offset_delta)),
            timestamp: header.record_timestamp(record.timestamp_delta),
            timestamp_type: header.timestamp_type(),
            key_bytes: length(record.key),
            value_bytes: length(record.value),
            sequence,
            header_keys: record.headers.map(|header| text(header.key)).collect(),
            data: print_data.then(|| (record.key.map(text), record.value.map(text))),
            marker: marker_of(header, record),
        }
    }
}

/// What a transaction marker says: version and type in its key, version and coordinator epoch in
/// its value.
fn marker_of(header: &BatchHeader, record: &RecordView<'_>) -> Option<(&'static str, i32)> {
    let key = record.key.filter(|_| header.is_control())?;
    let value = record.value?;
    let epoch = i32::from_be_bytes(*value.get(2..)?.first_chunk()?);
    match key {
        [_, _, 0, 0] => Some(("ABORT", epoch)),
        [_, _, 0, 1] => Some(("COMMIT", epoch)),
        _ => None,
    }
}

impl fmt::Display for DumpLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpLine::Heading { path } => write!(f, "Dumping {path}"),
            DumpLine::LogStart { base_offset } => write!(f, "Log starting offset: {base_offset}"),
            DumpLine::Batch { header, position, valid } => {
                write_batch(f, header, *position, *valid)
            }
            DumpLine::Record(record) => record.fmt(f),
            DumpLine::Unreadable { position, reason } => {
                write!(f, "| the records at position {position} cannot be read: {reason}")
            }
            DumpLine::Behind { position, bytes, used: 0 } => {
                write!(f, "{bytes} bytes allocated ahead from position {position} on")
            }
            DumpLine::Behind { position, bytes, used } => {
                write!(f, "Found {bytes} bytes from position {position} on that are no batch")?;
                write!(f, ", the last {} of them zeros", bytes - used)
            }
            DumpLine::OffsetEntry(entry) => {
                write!(f, "offset: {} position: {}", entry.last_offset, entry.position)
            }
            DumpLine::TimeEntry(entry) => {
                write!(f, "timestamp: {} offset: {}", entry.timestamp, entry.last_offset)
            }
            DumpLine::Damaged { reason } => write!(f, "the file is damaged: {reason}"),
        }
    }
}

fn write_batch(
    f: &mut fmt::Formatter<'_>,
    header: &BatchHeader,
    position: u64,
    valid: bool,
) -> fmt::Result {
    let h = header;
    write!(
        f,
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} ",
        h.base_offset,
        h.last_offset(),
        h.count,
        h.base_sequence,
        h.last_sequence()
    )?;
    write!(
        f,
        "producerId: {} producerEpoch: {} partitionLeaderEpoch: {} ",
        h.producer_id, h.producer_epoch, h.partition_leader_epoch
    )?;
    let horizon = match h.delete_horizon_ms() {
        Some(horizon) => format!("OptionalLong[{horizon}]"),
        None => "OptionalLong.empty".to_owned(),
    };
    write!(
        f,
        "isTransactional: {} isControl: {} deleteHorizonMs: {horizon} position: {position} ",
        h.is_transactional(),
        h.is_control()
    )?;
    let codec = match h.compression() {
        Ok(codec) => format!("{codec:?}").to_lowercase(),
        Err(codec) => format!("unknown({codec})"),
    };
    write!(
        f,
        "{}: {} size: {} magic: {} compresscodec: {codec} crc: {} isvalid: {valid}",
        kind_of(h.timestamp_type()),
        h.max_timestamp,
        h.size_in_bytes(),
        h.magic,
        h.crc
    )
}

fn kind_of(timestamp_type: TimestampType) -> &'static str {
    match timestamp_type {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

impl fmt::Display for DumpedRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| offset: {} {}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [{}]",
            self.offset,
            kind_of(self.timestamp_type),
            self.timestamp,
            self.key_bytes,
            self.value_bytes,
            self.sequence,
            self.header_keys.join(",")
        )?;
        if let Some((kind, coordinator_epoch)) = self.marker {
            return write!(f, " endTxnMarker: {kind} coordinatorEpoch: {coordinator_epoch}");
        }
        let Some((key, value)) = &self.data else { return Ok(()) };
        if let Some(key) = key {
            write!(f, " key: {key}")?;
        }
        write!(f, " payload: {}", value.as_deref().unwrap_or_default())
    }
}

const SCAN_BYTES: usize = 1 << 20;
