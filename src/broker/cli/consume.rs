//! `coretide consume`: records to standard output.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Context, bail};
use clap::Args;
use protocol::batch::{Batches, RecordIter, RecordView, decompress};
use protocol::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use protocol::{ErrorCode, Str, Uuid};

use crate::client::{Client, check};

/// Prints the records of a topic.
///
/// The format knows %k key, %v value, %h headers, %p partition, %o offset, %t timestamp, %% and
/// the escapes \n and \t. Null keys and values print as nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  coretide consume numbers --until-end
  coretide consume greetings --from end --format '%p:%o %k=%v\\n'")]
pub struct ConsumeArgs {
    topic: String,
    /// Any node of the cluster
    #[arg(long, value_name = "HOST:PORT", env = "CORETIDE_BOOTSTRAP")]
    #[arg(default_value = "127.0.0.1:9092")]
    bootstrap: String,
    /// Where to begin: beginning, end, an offset, or @MILLISECONDS since 1970
    #[arg(long, default_value = "beginning", value_name = "WHERE")]
    from: String,
    /// Read this partition only
    #[arg(long, value_name = "P")]
    partition: Option<i32>,
    /// How a record is printed
    #[arg(long, default_value = "%v\\n")]
    format: String,
    /// Stop after so many records
    #[arg(long, value_name = "N")]
    max_records: Option<u64>,
    /// Stop at the offsets that were the end when the command began
    #[arg(long)]
    until_end: bool,
}

struct Reading {
    leader: i32,
    next: i64,
    end: Option<i64>,
}

pub(super) fn run(args: ConsumeArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.bootstrap)?;
    let topic = client.topic(&args.topic)?;
    let mut readings = BTreeMap::new();
    for each in &topic.partitions {
        let index = each.partition_index;
        if args.partition.is_some_and(|only| only != index) {
            continue;
        }
        let next = start(&mut client, &args, index, each.leader_id)?;
        let end = match args.until_end {
            true => Some(offset_at(&mut client, &args.topic, index, each.leader_id, LATEST)?),
            false => None,
        };
        readings.insert(index, Reading { leader: each.leader_id, next, end });
    }
    if readings.is_empty() {
        bail!("{} has no such partition", args.topic);
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut left = args.max_records.unwrap_or(u64::MAX);
    loop {
        readings.retain(|_, reading| reading.end.is_none_or(|end| reading.next < end));
        if readings.is_empty() || left == 0 {
            return Ok(out.flush()?);
        }
        for (index, reading) in &mut readings {
            let response = fetch(&mut client, &args.topic, topic.topic_id, *index, reading)?;
            print(&args, &mut out, (*index, reading), response, &mut left)?;
        }
        out.flush()?;
    }
}

/// The first offset to read of one partition.
fn start(client: &mut Client, args: &ConsumeArgs, index: i32, leader: i32) -> anyhow::Result<i64> {
    let timestamp = match args.from.as_str() {
        "beginning" => EARLIEST,
        "end" => LATEST,
        text => match text.strip_prefix('@') {
            Some(millis) => millis.parse().context("--from @MILLISECONDS: no number")?,
            None => {
                return text.parse().with_context(|| {
                    format!("--from '{text}': beginning, end, N or @MILLISECONDS")
                });
            }
        },
    };
    match offset_at(client, &args.topic, index, leader, timestamp)? {
        // Nothing is as new as that timestamp.
        -1 => offset_at(client, &args.topic, index, leader, LATEST),
        offset => Ok(offset),
    }
}

fn offset_at(
    client: &mut Client,
    topic: &str,
    index: i32,
    leader: i32,
    timestamp: i64,
) -> anyhow::Result<i64> {
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic {
            name: Str::from(topic.to_owned()),
            partitions: vec![ListOffsetsPartition {
                partition_index: index,
                timestamp,
                ..ListOffsetsPartition::default()
            }],
        }],
        ..ListOffsetsRequest::default()
    };
    let response: ListOffsetsResponse = client.ask_node(leader, &request)?;
    let topic = response.topics.first().context("no answer for the topic")?;
    let partition = topic.partitions.first().context("no answer for the partition")?;
    check(partition.error_code, None)?;
    Ok(partition.offset)
}

/// Batches from the next offset on; waits up to half a second for some.
fn fetch(
    client: &mut Client,
    topic: &str,
    topic_id: Uuid,
    index: i32,
    reading: &mut Reading,
) -> anyhow::Result<bytes::Bytes> {
    let request = FetchRequest {
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: FETCH_BYTES,
        topics: vec![FetchTopic {
            topic: Str::from(topic.to_owned()),
            topic_id,
            partitions: vec![FetchPartition {
                partition: index,
                fetch_offset: reading.next,
                partition_max_bytes: FETCH_BYTES,
                ..FetchPartition::default()
            }],
        }],
        ..FetchRequest::default()
    };
    let response: FetchResponse = client.ask_node(reading.leader, &request)?;
    check(response.error_code, None)?;
    let topic_answer = response.responses.into_iter().next().context("no answer")?;
    let partition = topic_answer.partitions.into_iter().next().context("no answer")?;
    if partition.error_code == ErrorCode::NOT_LEADER_OR_FOLLOWER {
        let metadata = client.topic(topic)?;
        let found = metadata.partitions.iter().find(|each| each.partition_index == index);
        reading.leader = found.map_or(reading.leader, |each| each.leader_id);
        return Ok(bytes::Bytes::new());
    }
    check(partition.error_code, None).with_context(|| format!("partition {index}"))?;
    Ok(partition.records.unwrap_or_default().into_bytes())
}

fn print(
    args: &ConsumeArgs,
    out: &mut impl Write,
    (index, reading): (i32, &mut Reading),
    batches: bytes::Bytes,
    left: &mut u64,
) -> anyhow::Result<()> {
    for batch in Batches::of(batches) {
        // The last batch may be cut off by the byte limit.
        let Ok((header, bytes)) = batch else { break };
        if header.is_control() {
            reading.next = header.last_offset() + 1;
            continue;
        }
        let codec = header.compression().map_err(|id| anyhow::anyhow!("unknown codec {id}"))?;
        let body = decompress(codec, &bytes[protocol::batch::HEADER_BYTES..], BODY_BYTES_MAX)?;
        for record in RecordIter::new(&body, header.count) {
            let record = record?;
            let offset = header.base_offset + i64::from(record.offset_delta);
            let beyond = reading.end.is_some_and(|end| offset >= end);
            if offset < reading.next || beyond || *left == 0 {
                continue;
            }
            let timestamp = header.base_timestamp + record.timestamp_delta;
            write_record(out, &args.format, (index, offset, timestamp), record)?;
            *left -= 1;
        }
        reading.next = reading.next.max(header.last_offset() + 1);
    }
    Ok(())
}

fn write_record(
    out: &mut impl Write,
    format: &str,
    (partition, offset, timestamp): (i32, i64, i64),
    record: RecordView<'_>,
) -> anyhow::Result<()> {
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        match (letter, letters.clone().next()) {
            ('%', Some('k')) => out.write_all(record.key.unwrap_or_default())?,
            ('%', Some('v')) => out.write_all(record.value.unwrap_or_default())?,
            ('%', Some('p')) => write!(out, "{partition}")?,
            ('%', Some('o')) => write!(out, "{offset}")?,
            ('%', Some('t')) => write!(out, "{timestamp}")?,
            ('%', Some('%')) => write!(out, "%")?,
            ('%', Some('h')) => write_headers(out, &record)?,
            ('\\', Some('n')) => writeln!(out)?,
            ('\\', Some('t')) => write!(out, "\t")?,
            _ => {
                write!(out, "{letter}")?;
                continue;
            }
        }
        letters.next();
    }
    Ok(())
}

fn write_headers(out: &mut impl Write, record: &RecordView<'_>) -> anyhow::Result<()> {
    for (place, header) in record.headers.enumerate() {
        if place > 0 {
            write!(out, ",")?;
        }
        out.write_all(header.key)?;
        write!(out, ":")?;
        out.write_all(header.value.unwrap_or_default())?;
    }
    Ok(())
}

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const FETCH_BYTES: i32 = 4 << 20;
const BODY_BYTES_MAX: usize = 256 << 20;
