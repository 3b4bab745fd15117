//! `coretide rebalance`: evens out the partitions of a host over its slots, empties a slot, or
//! moves what is named to a slot of choice. Shows what it would do and why; `--execute` does it,
//! some partitions at a time, and is done when it ends.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use clap::Args;
use protocol::Str;
use protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ReassignablePartition,
    ReassignableTopic,
};
use protocol::messages::describe_log_dirs::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use protocol::messages::metadata::MetadataResponse;
use serde_json::json;

use super::table::Table;
use super::topic::Bootstrap;
use crate::client::{Client, check};
use crate::config::ByteSize;
use crate::rebalance::{Load, Move, Placed, even_out, gather, host_of, loads, loads_after};

/// Moves partitions between the cores of a host; only shows it unless --execute is given.
#[derive(Debug, Args)]
#[command(after_help = "Without --to and --empty every slot of a host gets as many partitions as \
    the others, of each topic and in all. A move copies nothing and takes milliseconds; clients \
    go on by themselves.")]
pub struct RebalanceArgs {
    /// Move only these: a topic, or some of its partitions, as in orders:0,2; repeatable
    #[arg(long = "topic", value_name = "TOPIC[:P,P]")]
    topics: Vec<String>,
    /// Move them to this node, a slot of the host that has them
    #[arg(long, value_name = "NODE", requires = "topics", conflicts_with = "empty")]
    to: Option<i32>,
    /// Take everything away from this node; repeatable
    #[arg(long, value_name = "NODE")]
    empty: Vec<i32>,
    /// Do it
    #[arg(long)]
    execute: bool,
    #[command(flatten)]
    at: Bootstrap,
}

pub(super) fn run(args: &RebalanceArgs) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.at.bootstrap)?;
    let metadata = client.metadata(&[])?;
    let mut nodes: Vec<i32> = metadata.brokers.iter().map(|it| it.node_id).collect();
    nodes.sort_unstable();
    if let Some(missing) = args.to.iter().chain(&args.empty).find(|it| !nodes.contains(it)) {
        bail!("there is no node {missing}; there are {}", listed(&nodes));
    }
    let bytes = sizes(&mut client, &nodes)?;
    let chosen = Chosen::parse(&args.topics, &metadata)?;
    let placed = placed(&metadata, &bytes, &chosen);
    let moves = match args.to {
        Some(to) => {
            chosen.check_host(&placed, to)?;
            gather(&placed, to)
        }
        None => even_out(&nodes, &placed, &args.empty),
    };
    show(args, &nodes, &placed, &moves);
    if moves.is_empty() || !args.execute {
        return Ok(());
    }
    execute(&mut client, args, &metadata, &moves)
}

/// Bytes of every copy of a partition, by node, topic and index.
type Sizes = BTreeMap<(i32, Str, i32), u64>;

fn sizes(client: &mut Client, nodes: &[i32]) -> anyhow::Result<Sizes> {
    let mut sizes = Sizes::new();
    let request = DescribeLogDirsRequest { topics: None };
    for &node in nodes {
        let answer: DescribeLogDirsResponse = client.ask_node(node, &request)?;
        check(answer.error_code, None).with_context(|| format!("node {node}"))?;
        for topic in answer.results.into_iter().flat_map(|it| it.topics) {
            for each in topic.partitions.iter().filter(|it| !it.is_future_key) {
                let bytes = each.partition_size.max(0) as u64;
                sizes.insert((node, topic.name.clone(), each.partition_index), bytes);
            }
        }
    }
    Ok(sizes)
}

/// What may be moved: everything, or what was named.
struct Chosen {
    named: BTreeMap<String, Option<BTreeSet<i32>>>,
}

impl Chosen {
    fn parse(texts: &[String], metadata: &MetadataResponse) -> anyhow::Result<Chosen> {
        let mut named: BTreeMap<String, Option<BTreeSet<i32>>> = BTreeMap::new();
        for text in texts {
            let (name, partitions) = parse_choice(text)?;
            let known = metadata.topics.iter().find(|it| it.name.as_deref() == Some(name));
            let known = known.with_context(|| format!("there is no topic {name}"))?;
            let has = |index: &i32| known.partitions.iter().any(|it| it.partition_index == *index);
            if let Some(missing) = partitions.iter().flatten().find(|it| !has(it)) {
                bail!("topic {name} has no partition {missing}");
            }
            match (named.entry(name.to_owned()).or_insert(Some(BTreeSet::new())), partitions) {
                (Some(some), Some(more)) => some.extend(more),
                (some, None) => *some = None,
                (None, _) => {}
            }
        }
        Ok(Chosen { named })
    }

    fn has(&self, topic: &str, partition: i32) -> bool {
        let some = self.named.get(topic);
        let of_topic = |some: &Option<BTreeSet<i32>>| {
            some.as_ref().is_none_or(|some| some.contains(&partition))
        };
        self.named.is_empty() || some.is_some_and(of_topic)
    }

    /// Files belong to a host: what another host has cannot go to this node.
    fn check_host(&self, placed: &[Placed], to: i32) -> anyhow::Result<()> {
        let mut here: BTreeMap<(&str, i32), bool> = BTreeMap::new();
        for each in placed.iter().filter(|it| it.movable) {
            let ours = host_of(each.node) == host_of(to);
            *here.entry((&each.topic, each.partition)).or_default() |= ours;
        }
        match here.iter().find(|(_, ours)| !**ours) {
            Some(((topic, partition), _)) => bail!(
                "{topic}-{partition} is on another host than node {to}; partitions move only \
                 between the slots of their host"
            ),
            None => Ok(()),
        }
    }
}

/// `topic` or `topic:0,2`; a topic's name has no colon.
fn parse_choice(text: &str) -> anyhow::Result<(&str, Option<Vec<i32>>)> {
    let Some((name, indexes)) = text.split_once(':') else { return Ok((text, None)) };
    let indexes = indexes.split(',').map(|it| it.trim().parse()).collect::<Result<Vec<i32>, _>>();
    let indexes = indexes.with_context(|| format!("'{text}': write TOPIC or TOPIC:0,2"))?;
    Ok((name, Some(indexes)))
}

fn placed(metadata: &MetadataResponse, bytes: &Sizes, chosen: &Chosen) -> Vec<Placed> {
    let mut placed = Vec::new();
    for topic in &metadata.topics {
        let name = topic.name.clone().unwrap_or_default();
        for each in &topic.partitions {
            let partition = each.partition_index;
            placed.extend(each.replica_nodes.iter().map(|&node| Placed {
                topic: name.to_string(),
                partition,
                node,
                bytes: bytes.get(&(node, name.clone(), partition)).copied().unwrap_or(0),
                movable: chosen.has(&name, partition),
            }));
        }
    }
    placed.sort_by(|a, b| (&a.topic, a.partition, a.node).cmp(&(&b.topic, b.partition, b.node)));
    placed
}

fn show(args: &RebalanceArgs, nodes: &[i32], placed: &[Placed], moves: &[Move]) {
    let (before, after) = (loads(nodes, placed), loads_after(nodes, placed, moves));
    if args.at.json {
        println!("{}", plan_json(args, moves, &before, &after));
        return;
    }
    let mut table = Table::new(&["NODE", "PARTITIONS", "BYTES", "THEN", "BYTES"]);
    for (node, load) in &before {
        let then = after.get(node).copied().unwrap_or_default();
        let (bytes, bytes_then) = (ByteSize::new(load.bytes), ByteSize::new(then.bytes));
        table.row([
            node.to_string(),
            load.partitions.to_string(),
            bytes.to_string(),
            then.partitions.to_string(),
            bytes_then.to_string(),
        ]);
    }
    table.print();
    println!("{}", reason(args, moves, &before));
    for each in moves {
        let Move { topic, partition, from, to, bytes } = each;
        println!("{topic}-{partition}: {from} to {to} ({})", ByteSize::new(*bytes));
    }
    if !moves.is_empty() && !args.execute {
        eprintln!("nothing was moved; say --execute to do it");
    }
}

/// Why these moves, in a sentence.
fn reason(args: &RebalanceArgs, moves: &[Move], before: &BTreeMap<i32, Load>) -> String {
    let count = moves.len();
    match (args.to, &args.empty[..]) {
        (Some(to), _) if count == 0 => format!("everything named is on node {to}"),
        (Some(to), _) => format!("{count} to move: node {to} was asked for"),
        (None, []) if count == 0 => {
            "nothing to move: no slot has two partitions more than another of its host".to_owned()
        }
        (None, []) => {
            let fullest = before.iter().max_by_key(|(_, load)| load.partitions);
            let emptiest = before.iter().min_by_key(|(_, load)| load.partitions);
            match (fullest, emptiest) {
                (Some((full, has)), Some((empty, lacks))) if has.partitions > lacks.partitions => {
                    let (has, lacks) = (has.partitions, lacks.partitions);
                    format!(
                        "{count} to move: node {full} has {has} partitions, node {empty} {lacks}"
                    )
                }
                _ => format!("{count} to move: topics are not spread over the slots"),
            }
        }
        (None, emptied) if count == 0 => {
            format!("nothing to move: {} has nothing", listed(emptied))
        }
        (None, emptied) => format!("{count} to move: {} shall have nothing", listed(emptied)),
    }
}

fn listed(nodes: &[i32]) -> String {
    nodes.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
}

fn plan_json(
    args: &RebalanceArgs,
    moves: &[Move],
    before: &BTreeMap<i32, Load>,
    after: &BTreeMap<i32, Load>,
) -> serde_json::Value {
    let nodes = before.iter().map(|(node, load)| {
        let then = after.get(node).copied().unwrap_or_default();
        json!({"node": node, "partitions": load.partitions, "bytes": load.bytes,
            "partitions_after": then.partitions, "bytes_after": then.bytes})
    });
    let nodes: Vec<_> = nodes.collect();
    let reason = reason(args, moves, before);
    let moves: Vec<_> = moves.iter().map(move_json).collect();
    let executed = args.execute;
    json!({"nodes": nodes, "moves": moves, "reason": reason, "executed": executed})
}

fn move_json(step: &Move) -> serde_json::Value {
    let Move { topic, partition, from, to, bytes } = step;
    json!({"topic": topic, "partition": partition, "from": from, "to": to, "bytes": bytes})
}

fn execute(
    client: &mut Client,
    args: &RebalanceArgs,
    metadata: &MetadataResponse,
    moves: &[Move],
) -> anyhow::Result<()> {
    let (mut moved, mut failed) = (0, Vec::new());
    let wanted: Vec<_> = wanted_replicas(metadata, moves).into_iter().collect();
    for few in wanted.chunks(AT_A_TIME) {
        let answer: AlterPartitionReassignmentsResponse = client.ask(&request_for(few))?;
        check(answer.error_code, answer.error_message.as_ref())?;
        for topic in &answer.responses {
            for each in &topic.partitions {
                let name = format!("{}-{}", topic.name, each.partition_index);
                match check(each.error_code, each.error_message.as_ref()) {
                    Ok(()) => moved += 1,
                    Err(why) => failed.push(format!("{name}: {why:#}")),
                }
            }
        }
        if !args.at.json {
            eprintln!("moved {moved} of {}", wanted.len());
        }
    }
    if args.at.json {
        println!("{}", json!({"moved": moved, "failed": failed}));
    }
    match &failed[..] {
        [] => Ok(()),
        failed => bail!("{} not moved: {}", failed.len(), failed.join("; ")),
    }
}

/// The nodes that each partition of the plan shall be on.
fn wanted_replicas(
    metadata: &MetadataResponse,
    moves: &[Move],
) -> BTreeMap<(String, i32), Vec<i32>> {
    let mut wanted: BTreeMap<(String, i32), Vec<i32>> = BTreeMap::new();
    for topic in &metadata.topics {
        let name = topic.name.clone().unwrap_or_default();
        for each in &topic.partitions {
            let key = (name.to_string(), each.partition_index);
            let of_it = |it: &&Move| (&it.topic, it.partition) == (&key.0, key.1);
            let steps: Vec<_> = moves.iter().filter(of_it).collect();
            if steps.is_empty() {
                continue;
            }
            let place =
                |node: &i32| steps.iter().find(|it| it.from == *node).map_or(*node, |it| it.to);
            wanted.insert(key, each.replica_nodes.iter().map(place).collect());
        }
    }
    wanted
}

fn request_for(wanted: &[((String, i32), Vec<i32>)]) -> AlterPartitionReassignmentsRequest {
    let mut topics: Vec<ReassignableTopic> = Vec::new();
    for ((topic, partition), nodes) in wanted {
        let asked =
            ReassignablePartition { partition_index: *partition, replicas: Some(nodes.clone()) };
        match topics.last_mut().filter(|last| *last.name == **topic) {
            Some(last) => last.partitions.push(asked),
            None => topics.push(ReassignableTopic {
                name: Str::from(topic.clone()),
                partitions: vec![asked],
            }),
        }
    }
    AlterPartitionReassignmentsRequest { topics, ..AlterPartitionReassignmentsRequest::default() }
}

/// Partitions of one request, so that there is progress to tell.
const AT_A_TIME: usize = 16;
