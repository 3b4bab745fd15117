//! `coretide group reset-offsets`: shows where a group would begin to read again, and with
//! `--execute` commits it, as a tool commits: the broker takes that only while nobody is in the
//! group.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use clap::Args;
use protocol::Str;
use protocol::messages::metadata::MetadataResponseTopic;
use serde_json::json;

use crate::cli::datetime;
use crate::cli::topic::Bootstrap;
use crate::client::group::{self, Committer};
use crate::client::positions::{EARLIEST, LATEST, positions};
use crate::client::{Client, check};

/// What is moved.
#[derive(Debug, Args)]
pub(super) struct Reset {
    group: String,
    /// All its partitions, or some: orders, orders:0,2
    #[arg(long, value_name = "TOPIC[:P,P]")]
    topic: String,
    /// Do it
    #[arg(long)]
    execute: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct Target {
    /// To the first record that is kept
    #[arg(long)]
    to_earliest: bool,
    /// Behind the last record
    #[arg(long)]
    to_latest: bool,
    /// To this offset
    #[arg(long, value_name = "OFFSET")]
    to_offset: Option<i64>,
    /// To the first record at or after this time: 2026-11-30T08:15:00, with a zone if not UTC
    #[arg(long, value_name = "TIME", value_parser = datetime::parse)]
    to_datetime: Option<i64>,
    /// The same in milliseconds since 1970
    #[arg(long, value_name = "MS")]
    to_timestamp: Option<i64>,
    /// By this many records from where the group is, backwards if negative
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    shift_by: Option<i64>,
}

/// Where one partition is and shall be.
struct Move {
    partition: i32,
    from: Option<i64>,
    to: i64,
}

pub(super) fn run(reset: &Reset, target: &Target, to: &Bootstrap) -> anyhow::Result<()> {
    let mut client = Client::connect(&to.bootstrap)?;
    let node = group::coordinator(&mut client, &reset.group)?;
    let (name, wanted) = partitions(&reset.topic)?;
    let topic = client.topic(name)?;
    let moves = moves(&mut client, (node, &reset.group), (&topic, wanted), target)?;
    for it in &moves {
        if to.json {
            let (partition, from, to) = (it.partition, it.from, it.to);
            let executed = reset.execute;
            let shown = json!({"topic": name, "partition": partition, "from": from, "to": to,
                "executed": executed});
            println!("{shown}");
        } else {
            let from = it.from.map_or("nothing".to_owned(), |it| it.to_string());
            println!("{name}-{}: {from} to {}", it.partition, it.to);
        }
    }
    if !reset.execute {
        eprintln!("nothing was changed; say --execute to do it");
        return Ok(());
    }
    execute(&mut client, (node, &reset.group), &topic, &moves)
}

/// `topic` or `topic:0,2`; a topic's name has no colon.
fn partitions(text: &str) -> anyhow::Result<(&str, Option<Vec<i32>>)> {
    let Some((name, indexes)) = text.split_once(':') else { return Ok((text, None)) };
    let indexes = indexes.split(',').map(|it| it.trim().parse()).collect::<Result<Vec<i32>, _>>();
    let indexes = indexes.with_context(|| format!("'{text}': write TOPIC or TOPIC:0,2"))?;
    Ok((name, Some(indexes)))
}

fn moves(
    client: &mut Client,
    (node, group): (i32, &str),
    (topic, wanted): (&MetadataResponseTopic, Option<Vec<i32>>),
    target: &Target,
) -> anyhow::Result<Vec<Move>> {
    let first = positions(client, topic, EARLIEST)?;
    let last = positions(client, topic, LATEST)?;
    let name = topic.name.clone().unwrap_or_default();
    if let Some(missing) = wanted.iter().flatten().find(|it| !last.contains_key(it)) {
        bail!("{name} has no partition {missing}");
    }
    let at_time = match target.to_datetime.or(target.to_timestamp) {
        Some(timestamp) => positions(client, topic, timestamp)?,
        None => BTreeMap::new(),
    };
    let committed = group::committed(client, node, group)?;
    let now: BTreeMap<i32, i64> = committed
        .into_iter()
        .filter(|it| it.topic == name)
        .map(|it| (it.partition, it.offset))
        .collect();
    let mut moves = Vec::new();
    for (&partition, &end) in &last {
        if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&partition)) {
            continue;
        }
        let (start, from) = (first.get(&partition).copied().unwrap_or(0), now.get(&partition));
        let to = match (target.to_offset, target.shift_by) {
            (Some(offset), _) => offset,
            (None, Some(shift)) => match from {
                Some(at) => at.saturating_add(shift),
                None => bail!("{group} has committed nothing for {name}-{partition}"),
            },
            _ if target.to_earliest => start,
            // Where no record is as new as that time, the end.
            _ => at_time.get(&partition).copied().filter(|it| *it >= 0).unwrap_or(end),
        };
        if !(start..=end).contains(&to) {
            eprintln!("{name}-{partition} has no offset {to}: it holds {start} to {end}");
        }
        moves.push(Move { partition, from: from.copied(), to: to.clamp(start, end) });
    }
    Ok(moves)
}

fn execute(
    client: &mut Client,
    (node, group): (i32, &str),
    topic: &MetadataResponseTopic,
    moves: &[Move],
) -> anyhow::Result<()> {
    let name = topic.name.clone().unwrap_or_default();
    let committer = Committer { group, member: "", generation: -1 };
    let offsets = moves.iter().map(|it| (it.partition, it.to));
    let error = group::commit(client, node, committer, (&name, topic.topic_id), offsets)?;
    if error.is_error() {
        let members = group::describe(client, node, group).map_or(0, |it| it.members.len());
        if members > 0 {
            bail!("{group} has {members} members; stop them first");
        }
    }
    check(error, None::<&Str>)
}
