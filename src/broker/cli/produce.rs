//! `coretide produce`: lines from standard input become records.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};
use clap::Args;
use protocol::batch::{BatchBuilder, Codec, Compression, NewRecord};
use protocol::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};
use protocol::{ErrorCode, Records, Str, Uuid};

use crate::client::{Client, check};

/// Writes each line of standard input as one record.
///
/// With --key-separator a line is KEY<separator>VALUE; with --header-separator it may begin with
/// headers, NAME:VALUE pairs joined by commas. Records with a key go to the partition that Kafka's
/// clients choose for it; others go round.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  seq 1000 | coretide produce numbers
  printf 'user-1|hello\\n' | coretide produce greetings --key-separator '|'")]
pub struct ProduceArgs {
    topic: String,
    /// Any node of the cluster
    #[arg(long, value_name = "HOST:PORT", env = "CORETIDE_BOOTSTRAP")]
    #[arg(default_value = "127.0.0.1:9092")]
    bootstrap: String,
    /// Write to this partition only
    #[arg(long, value_name = "P")]
    partition: Option<i32>,
    /// Text between key and value
    #[arg(long, value_name = "TEXT")]
    key_separator: Option<String>,
    /// Text between headers and the rest of the line
    #[arg(long, value_name = "TEXT")]
    header_separator: Option<String>,
    /// Codec of the batches: none, gzip, snappy, lz4, zstd
    #[arg(long, default_value = "none")]
    codec: String,
    /// When a batch counts as written: all (on stable storage) or 1
    #[arg(long, default_value = "all")]
    acks: String,
}

/// One line, taken apart.
struct Line {
    partition: i32,
    key: Option<Vec<u8>>,
    value: Vec<u8>,
    headers: Vec<(String, Vec<u8>)>,
}

struct Producer {
    client: Client,
    topic: String,
    id: Uuid,
    leaders: BTreeMap<i32, i32>,
    compression: Compression,
    acks: i16,
    written: u64,
}

pub(super) fn run(args: ProduceArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.bootstrap)?;
    let topic = client.topic(&args.topic)?;
    let leaders: BTreeMap<i32, i32> =
        topic.partitions.iter().map(|each| (each.partition_index, each.leader_id)).collect();
    if let Some(partition) = args.partition.filter(|index| !leaders.contains_key(index)) {
        bail!("{} has no partition {partition}, it has {}", args.topic, leaders.len());
    }
    let mut producer = Producer {
        client,
        topic: args.topic.clone(),
        id: topic.topic_id,
        leaders,
        compression: codec(&args.codec)?,
        acks: acks(&args.acks)?,
        written: 0,
    };
    let mut pending: Vec<Line> = Vec::new();
    let mut bytes = 0;
    let mut next = 0;
    for line in std::io::stdin().lock().split(b'\n') {
        let line = parse(&args, &producer, line?, &mut next)?;
        bytes += line.value.len() + line.key.as_ref().map_or(0, Vec::len) + RECORD_OVERHEAD;
        pending.push(line);
        if bytes >= BATCH_BYTES {
            producer.send(std::mem::take(&mut pending))?;
            bytes = 0;
        }
    }
    producer.send(pending)?;
    eprintln!("coretide: wrote {} records to {}", producer.written, args.topic);
    Ok(())
}

fn parse(
    args: &ProduceArgs,
    producer: &Producer,
    line: Vec<u8>,
    next: &mut i32,
) -> anyhow::Result<Line> {
    let (headers, rest) = match &args.header_separator {
        Some(separator) => match split(&line, separator.as_bytes()) {
            Some((headers, rest)) => (parse_headers(headers)?, rest),
            None => bail!("a line has no header separator '{separator}'"),
        },
        None => (Vec::new(), &line[..]),
    };
    let (key, value) = match &args.key_separator {
        Some(separator) => match split(rest, separator.as_bytes()) {
            Some((key, value)) => (Some(key.to_vec()), value),
            None => bail!("a line has no key separator '{separator}'"),
        },
        None => (None, rest),
    };
    let count = producer.leaders.len() as i32;
    let partition = match (args.partition, &key) {
        (Some(partition), _) => partition,
        (None, Some(key)) => (murmur2(key) & 0x7fff_ffff) as i32 % count,
        (None, None) => {
            *next = (*next + 1) % count;
            *next
        }
    };
    Ok(Line { partition, key, value: value.to_vec(), headers })
}

fn split<'a>(line: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = line.windows(separator.len().max(1)).position(|part| part == separator)?;
    Some((&line[..at], &line[at + separator.len()..]))
}

fn parse_headers(text: &[u8]) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let pairs = text.split(|&byte| byte == b',').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = split(pair, b":").context("headers are NAME:VALUE pairs")?;
        Ok((String::from_utf8_lossy(name).into_owned(), value.to_vec()))
    });
    pairs.collect()
}

impl Producer {
    /// Writes the lines, one batch per partition; retries what the broker calls retriable.
    fn send(&mut self, lines: Vec<Line>) -> anyhow::Result<()> {
        let mut by_partition: BTreeMap<i32, Vec<Line>> = BTreeMap::new();
        for line in lines {
            by_partition.entry(line.partition).or_default().push(line);
        }
        for (partition, lines) in by_partition {
            let batch = build(&lines, self.compression);
            let deadline = Instant::now() + DELIVERY_TIME;
            loop {
                let (error, message) = self.write(partition, &batch)?;
                if error == ErrorCode::NONE {
                    break;
                }
                if !error.retriable() || Instant::now() > deadline {
                    check(error, message.as_ref())?;
                }
                std::thread::sleep(RETRY_PAUSE);
                let topic = self.client.topic(&self.topic)?;
                let leaders = topic.partitions.iter();
                self.leaders = leaders.map(|it| (it.partition_index, it.leader_id)).collect();
            }
            self.written += lines.len() as u64;
        }
        Ok(())
    }

    fn write(
        &mut self,
        partition: i32,
        batch: &bytes::Bytes,
    ) -> anyhow::Result<(ErrorCode, Option<Str>)> {
        let records = Some(Records::from(batch.clone()));
        let request = ProduceRequest {
            transactional_id: None,
            acks: self.acks,
            timeout_ms: 30_000,
            topic_data: vec![TopicProduceData {
                name: Str::from(self.topic.clone()),
                topic_id: self.id,
                partition_data: vec![PartitionProduceData { index: partition, records }],
            }],
        };
        let leader = self.leaders.get(&partition).copied().unwrap_or(-1);
        let response: ProduceResponse = self.client.ask_node(leader, &request)?;
        let topic = response.responses.into_iter().next().context("no answer for the topic")?;
        let partition = topic.partition_responses.into_iter().next();
        let partition = partition.context("no answer for the partition")?;
        Ok((partition.error_code, partition.error_message))
    }
}

fn build(lines: &[Line], compression: Compression) -> bytes::Bytes {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let timestamp = now.as_millis() as i64;
    let mut batch = BatchBuilder::new(compression);
    for line in lines {
        let headers: Vec<(&str, Option<&[u8]>)> =
            line.headers.iter().map(|(name, value)| (name.as_str(), Some(&value[..]))).collect();
        batch.append(&NewRecord {
            timestamp,
            key: line.key.as_deref(),
            value: Some(&line.value),
            headers: &headers,
        });
    }
    batch.build()
}

fn codec(name: &str) -> anyhow::Result<Compression> {
    let codecs = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
    let found = codecs.into_iter().find(|codec| codec.name() == name);
    let found =
        found.with_context(|| format!("codec '{name}': one of none, gzip, snappy, lz4, zstd"))?;
    Ok(Compression::of(found))
}

fn acks(text: &str) -> anyhow::Result<i16> {
    match text {
        "all" | "-1" => Ok(-1),
        "1" => Ok(1),
        _ => bail!("acks '{text}': all or 1 (with 0 this program would not know what was written)"),
    }
}

/// The hash by which Kafka's clients choose a partition for a key (murmur2 with their seed).
fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ data.len() as u32;
    let mut chunks = data.chunks_exact(4);
    for chunk in &mut chunks {
        let mut word = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]).wrapping_mul(M);
        word ^= word >> 24;
        hash = hash.wrapping_mul(M) ^ word.wrapping_mul(M);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        for (place, &byte) in rest.iter().enumerate() {
            hash ^= u32::from(byte) << (8 * place);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

const BATCH_BYTES: usize = 256 << 10;
const RECORD_OVERHEAD: usize = 32;
const DELIVERY_TIME: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(100);
