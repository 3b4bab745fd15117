//! What can be asked of `coretide bench`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use protocol::batch::Codec;

/// Load a broker and measure what comes back.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub bench: Bench,
}

#[derive(Debug, Clone, Subcommand)]
pub enum Bench {
    /// Write batches and wait for their acknowledgements
    Produce(ProduceArgs),
    /// Read a topic as fast as it comes
    Consume(ConsumeArgs),
    /// Write records at a rate and measure how long they take to arrive at a reader
    E2e(EndToEndArgs),
    /// Commit offsets of many groups and wait for their acknowledgements
    Commit(CommitArgs),
    /// Draw the percentile curves of several runs into one page
    Report(ReportArgs),
    /// Measure what this machine can do at most, and a bare prototype of a broker on it
    Limits(LimitsArgs),
}

#[derive(Debug, Clone, Args)]
pub struct ProduceArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub payload: PayloadArgs,
    #[command(flatten)]
    pub sending: SendingArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ConsumeArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Where to begin: `earliest` or `latest`
    #[arg(long, value_parser = parse_start, default_value = "earliest")]
    pub from: StartAt,
    /// Consumers that each read every partition, with --connections connections of their own
    #[arg(long, default_value_t = 1)]
    pub fan_out: usize,
    /// At the end of a partition, read it again from its beginning
    #[arg(long)]
    pub repeat: bool,
}

#[derive(Debug, Clone, Args)]
pub struct EndToEndArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub payload: PayloadArgs,
    #[command(flatten)]
    pub sending: SendingArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Connections that read; at least one per node that leads a partition
    #[arg(long, default_value_t = 1)]
    pub readers: usize,
}

#[derive(Debug, Clone, Args)]
pub struct CommitArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub load: LoadArgs,
    /// Groups, dealt to the connections, which commit for theirs in turn; one for each connection
    /// if not given
    #[arg(long)]
    pub groups: Option<usize>,
    /// What the groups' names begin with
    #[arg(long, default_value = "bench-")]
    pub group_prefix: String,
    /// Partitions of the topic that one commit names
    #[arg(long, default_value_t = 10)]
    pub partitions_per_commit: usize,
    /// Commits of one connection that wait for their answers at the same time
    #[arg(long, default_value_t = 1)]
    pub in_flight: usize,
    /// Commits a second, all connections together, in even steps; latency then counts from the
    /// moment a commit was due. Without it every answer is followed by the next commit
    #[arg(long)]
    pub rate: Option<f64>,
}

#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// Files written by --hgrm or --json; a name can be put in front, as in `NAME=FILE`
    #[arg(required = true)]
    pub files: Vec<String>,
    /// The page to write; `.svg` for the drawing alone
    #[arg(long, short, default_value = "latency.html")]
    pub out: PathBuf,
    #[arg(long, default_value = "Latency by percentile")]
    pub title: String,
}

#[derive(Debug, Clone, Args)]
pub struct LimitsArgs {
    /// A folder on the disk in question; a subfolder is made in it and removed again
    #[arg(long, default_value = "./coretide-data")]
    pub data_dir: PathBuf,
    /// Where the broker would run
    #[arg(long, default_value_t = 0)]
    pub broker_cpu: usize,
    /// Where load would come from
    #[arg(long, default_value_t = 1)]
    pub load_cpu: usize,
    /// Of each measurement
    #[arg(long, value_parser = parse_duration, default_value = "2s")]
    pub duration: Duration,
    #[arg(long)]
    pub json: bool,
}

/// Which broker and which topic.
#[derive(Debug, Clone, Args)]
pub struct TargetArgs {
    /// Any node of the cluster, as HOST:PORT
    #[arg(long, default_value = "127.0.0.1:9092")]
    pub bootstrap: String,
    /// Keep trying to reach it for so long
    #[arg(long, value_parser = parse_duration, default_value = "0s")]
    pub wait: Duration,
    /// The topic to write or read
    #[arg(long)]
    pub topic: String,
    /// Create the topic with so many partitions
    #[arg(long)]
    pub partitions: Option<i32>,
    /// Of the topic that is created; the broker's default if not given
    #[arg(long, default_value_t = -1, allow_negative_numbers = true)]
    pub replication_factor: i16,
    /// A setting of the topic that is created, as KEY=VALUE; can be repeated
    #[arg(long = "config", value_parser = parse_pair)]
    pub configs: Vec<(String, String)>,
}

/// How long, from where, and what to write down.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// End after so many records
    #[arg(long)]
    pub records: Option<u64>,
    /// End after so long behind the warm-up; 10s unless --records is given
    #[arg(long, value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Load that comes first and does not count; 1s unless --records is given
    #[arg(long, value_parser = parse_duration)]
    pub warm_up: Option<Duration>,
    /// Connections to the nodes that lead the topic's partitions, all load cores together
    #[arg(long, default_value_t = 1)]
    pub connections: usize,
    /// CPUs to make load from, one pinned core each, like `1` or `2,4-7`; by default the last one
    /// that this process may use
    #[arg(long, value_parser = parse_cpus)]
    pub load_cpus: Option<CpuList>,
    /// How long a load core polls before it sleeps; costs CPU, makes its own wake-ups faster
    #[arg(long, value_parser = parse_duration, default_value = "0s")]
    pub spin: Duration,
    /// Process of the broker on this machine: report its CPU, memory and I/O
    #[arg(long)]
    pub pid: Option<u32>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the percentile distribution to this file
    #[arg(long)]
    pub hgrm: Option<PathBuf>,
    /// Write a histogram for each second to this file (HdrHistogram log, version 1.3)
    #[arg(long)]
    pub hlog: Option<PathBuf>,
    /// While it runs, write a line of JSON about each such span behind the warm-up to standard
    /// error: rates, latency and errors of the span alone
    #[arg(long, value_parser = parse_duration)]
    pub interval: Option<Duration>,
}

/// What the records look like.
#[derive(Debug, Clone, Args)]
pub struct PayloadArgs {
    /// Bytes of a record's value, or a range like `100..2000` of which sizes are drawn evenly
    #[arg(long, value_parser = parse_size_range, default_value = "1KiB")]
    pub record_size: SizeRange,
    /// Bytes of a record's key; no key by default
    #[arg(long, value_parser = parse_bytes)]
    pub key_size: Option<usize>,
    /// Fill batches up to so many bytes before compression
    #[arg(long, value_parser = parse_bytes)]
    pub batch_bytes: Option<usize>,
    /// Records in a batch, instead of --batch-bytes
    #[arg(long, conflicts_with = "batch_bytes")]
    pub records_per_batch: Option<usize>,
    /// none, gzip, snappy, lz4 or zstd
    #[arg(long, value_parser = parse_codec, default_value = "none")]
    pub codec: Codec,
}

/// How batches are sent.
#[derive(Debug, Clone, Args)]
pub struct SendingArgs {
    /// Records a second, all connections together, in even steps; latency then counts from the
    /// moment a request was due. Without it every answer is followed by the next request
    #[arg(long)]
    pub rate: Option<f64>,
    /// Requests of one connection that wait for their answers at the same time
    #[arg(long, default_value_t = 5)]
    pub in_flight: usize,
    /// 0, 1 or all
    #[arg(long, value_parser = parse_acks, default_value = "all", allow_hyphen_values = true)]
    pub acks: Acks,
    /// Partitions that one request carries a batch for
    #[arg(long, default_value_t = 1)]
    pub partitions_per_request: usize,
    /// Number the batches as an idempotent producer does
    #[arg(long)]
    pub idempotent: bool,
}

/// How records are fetched.
#[derive(Debug, Clone, Args)]
pub struct ReadingArgs {
    /// Most bytes of an answer
    #[arg(long, value_parser = parse_bytes, default_value = "50MiB")]
    pub fetch_bytes: usize,
    /// Most bytes of one partition in an answer
    #[arg(long, value_parser = parse_bytes, default_value = "1MiB")]
    pub partition_bytes: usize,
    /// How long an answer may wait for records
    #[arg(long, value_parser = parse_duration, default_value = "500ms")]
    pub max_wait: Duration,
    /// Name every partition in every request instead of keeping a fetch session
    #[arg(long)]
    pub sessionless: bool,
    /// Check the checksum of every batch
    #[arg(long)]
    pub check_crc: bool,
}

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    Earliest,
    Latest,
}

/// Whose acknowledgement a producer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    None,
    Leader,
    All,
}

impl Acks {
    /// As it stands in a request.
    pub fn wire(self) -> i16 {
        match self {
            Acks::None => 0,
            Acks::Leader => 1,
            Acks::All => -1,
        }
    }
}

/// CPUs by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<usize>);

/// Sizes in bytes, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    pub min: usize,
    pub max: usize,
}

/// `4096`, `64KiB`, `1MiB`, `1GiB`; also with a decimal point.
pub fn parse_bytes(text: &str) -> anyhow::Result<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "B" => 1.0,
        "K" | "KiB" => 1024.0,
        "M" | "MiB" => 1024.0 * 1024.0,
        "G" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        unit => bail!("unknown unit '{unit}': write bytes, KiB, MiB or GiB"),
    };
    let number: f64 = digits.parse().with_context(|| format!("'{text}' is no size"))?;
    ensure!(number >= 0.0 && number * factor <= SIZE_MAX, "'{text}' is out of range");
    Ok((number * factor) as usize)
}

/// `250us`, `10ms`, `1.5s`, `2m`; seconds without a unit.
pub fn parse_duration(text: &str) -> anyhow::Result<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "us" => 1e-6,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        unit => bail!("unknown unit '{unit}': write us, ms, s, m or h"),
    };
    let number: f64 = digits.parse().with_context(|| format!("'{text}' is no duration"))?;
    ensure!((0.0..=DURATION_SECONDS_MAX).contains(&(number * factor)), "'{text}' is out of range");
    Ok(Duration::from_secs_f64(number * factor))
}

/// `3` or `0,2,4-7`.
pub fn parse_cpus(text: &str) -> anyhow::Result<CpuList> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let wrong = || format!("'{part}' is neither a CPU nor a range of them");
        let first: usize = first.trim().parse().with_context(wrong)?;
        let last: usize = last.trim().parse().with_context(wrong)?;
        ensure!(first <= last && last < CPUS_MAX, "{}", wrong());
        cpus.extend(first..=last);
    }
    Ok(CpuList(cpus))
}

fn parse_size_range(text: &str) -> anyhow::Result<SizeRange> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    let range = SizeRange { min: parse_bytes(min)?, max: parse_bytes(max)? };
    ensure!(range.min <= range.max, "'{text}' begins above its end");
    Ok(range)
}

fn parse_pair(text: &str) -> anyhow::Result<(String, String)> {
    let (key, value) = text.split_once('=').context("write KEY=VALUE")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn parse_codec(text: &str) -> anyhow::Result<Codec> {
    let codec = Codec::ALL.into_iter().find(|codec| codec.name() == text);
    codec.with_context(|| format!("'{text}' is none of none, gzip, snappy, lz4, zstd"))
}

fn parse_acks(text: &str) -> anyhow::Result<Acks> {
    match text {
        "0" => Ok(Acks::None),
        "1" => Ok(Acks::Leader),
        "all" | "-1" => Ok(Acks::All),
        _ => bail!("'{text}' is none of 0, 1, all"),
    }
}

fn parse_start(text: &str) -> anyhow::Result<StartAt> {
    match text {
        "earliest" => Ok(StartAt::Earliest),
        "latest" => Ok(StartAt::Latest),
        _ => bail!("'{text}' is neither earliest nor latest"),
    }
}

const SIZE_MAX: f64 = (1u64 << 40) as f64;
const DURATION_SECONDS_MAX: f64 = 7.0 * 24.0 * 3600.0;
const CPUS_MAX: usize = 4096;
