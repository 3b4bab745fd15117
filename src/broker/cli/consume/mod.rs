//! `coretide consume`: records to standard output, alone or as a member of a group.

mod grouped;
mod print;
mod reading;

use std::io::Write;

use anyhow::{Context, bail};
use clap::Args;
use protocol::messages::metadata::MetadataResponseTopic;

use crate::client::Client;
use crate::client::positions::{EARLIEST, LATEST, positions};
use print::Printer;
use reading::{Reader, Reading};

/// Prints the records of a topic.
///
/// The format knows %k key, %v value, %h headers, %p partition, %o offset, %t timestamp, %% and
/// the escapes \n and \t. Null keys and values print as nothing.
///
/// With --group, the topic's partitions are shared with the other members of the group; what was
/// printed is committed every second, when the group rebalances, and at the end.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  coretide consume numbers --until-end
  coretide consume greetings --from end --format '%p:%o %k=%v\\n'
  coretide consume orders --group billing --json")]
pub struct ConsumeArgs {
    topic: String,
    /// Any node of the cluster
    #[arg(long, value_name = "HOST:PORT", env = "CORETIDE_BOOTSTRAP")]
    #[arg(default_value = "127.0.0.1:9092")]
    bootstrap: String,
    /// Join this group and read what it assigns, from where it has committed
    #[arg(long, value_name = "GROUP", conflicts_with = "partition")]
    group: Option<String>,
    /// Name of a static member, which keeps its share over a restart
    #[arg(long, value_name = "NAME", requires = "group")]
    instance: Option<String>,
    /// Where to begin: beginning, end, an offset, or @MILLISECONDS since 1970; of a group, where
    /// it has committed nothing
    #[arg(long, default_value = "beginning", value_name = "WHERE")]
    from: String,
    /// Read this partition only
    #[arg(long, value_name = "P")]
    partition: Option<i32>,
    /// How a record is printed
    #[arg(long, default_value = "%v\\n")]
    format: String,
    /// Print each record as a JSON object in a line of its own
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Stop after so many records
    #[arg(long, value_name = "N")]
    max_records: Option<u64>,
    /// Stop at the offsets that were the end when the command began
    #[arg(long)]
    until_end: bool,
    /// Print no more than so many records a second
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
}

pub(super) fn run(args: ConsumeArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.bootstrap)?;
    let topic = client.topic(&args.topic)?;
    match &args.group {
        Some(group) => grouped::run(&args, &mut client, &topic, group),
        None => alone(&args, &mut client, &topic),
    }
}

fn alone(
    args: &ConsumeArgs,
    client: &mut Client,
    topic: &MetadataResponseTopic,
) -> anyhow::Result<()> {
    let mut reader = Reader::new(topic, args.rate.is_some());
    let ends = if args.until_end { positions(client, topic, LATEST)? } else { Default::default() };
    for (index, next) in starts(args, client, topic)? {
        if args.partition.is_none_or(|only| only == index) {
            reader.readings.insert(index, Reading::new(next, ends.get(&index).copied()));
        }
    }
    if reader.readings.is_empty() {
        bail!("{} has no such partition", args.topic);
    }
    let mut printer = Printer::new(args);
    while !reader.is_at_end() && !printer.is_done() {
        if !printer.may_print() {
            std::thread::sleep(print::PAUSE);
            continue;
        }
        for (index, batches) in reader.fetch(client)? {
            if let Some(reading) = reader.readings.get_mut(&index) {
                printer.print(index, reading, batches)?;
            }
        }
        printer.out.flush()?;
    }
    Ok(())
}

/// The first offset to read of each partition, as `--from` has it.
fn starts(
    args: &ConsumeArgs,
    client: &mut Client,
    topic: &MetadataResponseTopic,
) -> anyhow::Result<std::collections::BTreeMap<i32, i64>> {
    let timestamp = match args.from.as_str() {
        "beginning" => EARLIEST,
        "end" => LATEST,
        text => match text.strip_prefix('@') {
            Some(millis) => millis.parse().context("--from @MILLISECONDS: no number")?,
            None => {
                let offset = text.parse().with_context(|| {
                    format!("--from '{text}': beginning, end, N or @MILLISECONDS")
                })?;
                let indexes = topic.partitions.iter().map(|it| it.partition_index);
                return Ok(indexes.map(|index| (index, offset)).collect());
            }
        },
    };
    let mut starts = positions(client, topic, timestamp)?;
    if starts.values().any(|&it| it < 0) {
        // Nothing is as new as that timestamp.
        let ends = positions(client, topic, LATEST)?;
        for (index, start) in starts.iter_mut().filter(|(_, start)| **start < 0) {
            *start = ends.get(index).copied().unwrap_or(0);
        }
    }
    Ok(starts)
}
