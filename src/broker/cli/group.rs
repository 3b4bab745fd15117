//! `coretide group`: list, describe, delete, reset-offsets.
//!
//! Changes of offsets are shown first and made only with `--execute`; they are committed as a tool
//! commits, which the broker takes only while the group has no members.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use protocol::messages::delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse};
use protocol::messages::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup,
};
use protocol::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use protocol::messages::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};
use protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse,
};
use protocol::{ErrorCode, Str};
use serde_json::json;

use super::topic::Bootstrap;
use crate::client::{Client, check};

/// Lists, describes and deletes consumer groups, and moves their offsets.
#[derive(Debug, Args)]
pub struct GroupArgs {
    #[command(subcommand)]
    command: GroupCommand,
}

#[derive(Debug, Subcommand)]
enum GroupCommand {
    /// List the groups of all nodes
    List {
        #[command(flatten)]
        to: Bootstrap,
    },
    /// Show members, offsets and lag of a group
    Describe {
        group: String,
        #[command(flatten)]
        to: Bootstrap,
    },
    /// Delete a group without members and all its offsets
    Delete {
        group: String,
        #[command(flatten)]
        to: Bootstrap,
    },
    /// Move the offsets of a group without members; only shows it unless --execute is given
    ResetOffsets {
        group: String,
        #[arg(long)]
        topic: String,
        #[command(flatten)]
        target: Target,
        /// Do it
        #[arg(long)]
        execute: bool,
        #[command(flatten)]
        to: Bootstrap,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// To the first record that is kept
    #[arg(long)]
    to_earliest: bool,
    /// Behind the last record
    #[arg(long)]
    to_latest: bool,
    /// To this offset
    #[arg(long, value_name = "OFFSET")]
    to_offset: Option<i64>,
    /// To the first record at or after this time, in milliseconds since 1970
    #[arg(long, value_name = "MS")]
    to_timestamp: Option<i64>,
    /// By this many records from where the group is, backwards if negative
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    shift_by: Option<i64>,
}

/// An offset to be, or how far the group is behind.
struct Row {
    topic: Str,
    partition: i32,
    committed: Option<i64>,
    end: i64,
}

pub(super) fn run(args: GroupArgs) -> anyhow::Result<()> {
    match args.command {
        GroupCommand::List { to } => list(&to),
        GroupCommand::Describe { group, to } => describe(&group, &to),
        GroupCommand::Delete { group, to } => delete(&group, &to),
        GroupCommand::ResetOffsets { group, topic, target, execute, to } => {
            reset(&group, &topic, &target, execute, &to)
        }
    }
}

fn list(to: &Bootstrap) -> anyhow::Result<()> {
    let mut client = Client::connect(&to.bootstrap)?;
    let nodes: Vec<i32> = client.metadata(&[])?.brokers.iter().map(|it| it.node_id).collect();
    let mut groups: Vec<ListedGroup> = Vec::new();
    for node in nodes {
        let answer: ListGroupsResponse = client.ask_node(node, &ListGroupsRequest::default())?;
        check(answer.error_code, None).with_context(|| format!("node {node}"))?;
        groups.extend(answer.groups);
    }
    groups.sort_by(|a, b| a.group_id.cmp(&b.group_id));
    for group in groups {
        let (id, state, kind) = (&*group.group_id, &*group.group_state, &*group.protocol_type);
        if to.json {
            println!("{}", json!({"group": id, "state": state, "protocol_type": kind}));
        } else {
            println!("{id}\t{state}\t{kind}");
        }
    }
    Ok(())
}

/// Asking for the coordinator also tells the client where the nodes are.
fn coordinator(client: &mut Client, group: &str) -> anyhow::Result<i32> {
    client.metadata(&[])?;
    let key = Str::from(group.to_owned());
    let coordinator_keys = vec![key.clone()];
    let request = FindCoordinatorRequest { key, coordinator_keys, ..Default::default() };
    let answer: FindCoordinatorResponse = client.ask(&request)?;
    match answer.coordinators.first() {
        Some(found) => {
            check(found.error_code, found.error_message.as_ref())?;
            Ok(found.node_id)
        }
        None => {
            check(answer.error_code, answer.error_message.as_ref())?;
            Ok(answer.node_id)
        }
    }
}

fn described(client: &mut Client, node: i32, group: &str) -> anyhow::Result<DescribedGroup> {
    let groups = vec![Str::from(group.to_owned())];
    let request = DescribeGroupsRequest { groups, ..DescribeGroupsRequest::default() };
    let mut answer: DescribeGroupsResponse = client.ask_node(node, &request)?;
    let found = answer.groups.pop().context("the answer names no group")?;
    check(found.error_code, found.error_message.as_ref())?;
    Ok(found)
}

fn describe(group: &str, to: &Bootstrap) -> anyhow::Result<()> {
    let mut client = Client::connect(&to.bootstrap)?;
    let node = coordinator(&mut client, group)?;
    let found = described(&mut client, node, group)?;
    let rows = committed(&mut client, node, group)?;
    if to.json {
        let offsets: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({
                    "topic": &*row.topic, "partition": row.partition, "committed": row.committed,
                    "end": row.end, "lag_records": row.committed.map(|at| (row.end - at).max(0)),
                })
            })
            .collect();
        let members: Vec<_> = found
            .members
            .iter()
            .map(|member| {
                json!({
                    "member": &*member.member_id, "instance": member.group_instance_id.as_deref(),
                    "client": &*member.client_id, "host": &*member.client_host,
                })
            })
            .collect();
        let (state, protocol) = (&*found.group_state, &*found.protocol_data);
        println!(
            "{}",
            json!({
                "group": group, "state": state, "protocol": protocol, "coordinator": node,
                "members": members, "offsets": offsets,
            })
        );
        return Ok(());
    }
    println!("group {group}: {}, coordinated by node {node}", found.group_state);
    for member in &found.members {
        println!("  member {} ({} at {})", member.member_id, member.client_id, member.client_host);
    }
    for row in &rows {
        let at = row.committed.unwrap_or(-1);
        let lag = (row.end - at).max(0);
        println!("  {}-{}: at {at} of {}, {lag} behind", row.topic, row.partition, row.end);
    }
    Ok(())
}

/// What the group has committed, with the ends of the partitions.
fn committed(client: &mut Client, node: i32, group: &str) -> anyhow::Result<Vec<Row>> {
    let group_id = Str::from(group.to_owned());
    let asked = OffsetFetchRequestGroup {
        group_id: group_id.clone(),
        topics: None,
        ..OffsetFetchRequestGroup::default()
    };
    let request = OffsetFetchRequest {
        group_id,
        topics: None,
        groups: vec![asked],
        ..OffsetFetchRequest::default()
    };
    let answer: OffsetFetchResponse = client.ask_node(node, &request)?;
    let mut rows = Vec::new();
    for found in answer.groups {
        check(found.error_code, None)?;
        for topic in found.topics {
            let Some(name) = topic_name(client, &topic)? else { continue };
            let ends = positions(client, &name, LATEST)?;
            for partition in topic.partitions {
                let index = partition.partition_index;
                let Some(&end) = ends.get(&index) else { continue };
                let committed = Some(partition.committed_offset);
                rows.push(Row { topic: name.clone(), partition: index, committed, end });
            }
        }
    }
    Ok(rows)
}

/// Versions that name topics by id leave out the name.
fn topic_name(
    client: &mut Client,
    topic: &protocol::messages::offset_fetch::OffsetFetchResponseTopics,
) -> anyhow::Result<Option<Str>> {
    if !topic.name.is_empty() {
        return Ok(Some(topic.name.clone()));
    }
    let known = client.metadata(&[])?.topics;
    Ok(known.into_iter().find(|it| it.topic_id == topic.topic_id).and_then(|it| it.name))
}

/// For every partition of a topic the offset at a mark or a timestamp; -1 where there is none.
fn positions(
    client: &mut Client,
    topic: &Str,
    timestamp: i64,
) -> anyhow::Result<BTreeMap<i32, i64>> {
    let mut positions = BTreeMap::new();
    for partition in client.topic(topic)?.partitions {
        let index = partition.partition_index;
        let asked =
            ListOffsetsPartition { partition_index: index, timestamp, ..Default::default() };
        let asked = ListOffsetsTopic { name: topic.clone(), partitions: vec![asked] };
        let request =
            ListOffsetsRequest { replica_id: -1, topics: vec![asked], ..Default::default() };
        let answer: ListOffsetsResponse = client.ask_node(partition.leader_id, &request)?;
        let found = answer.topics.first().and_then(|it| it.partitions.first());
        let found = found.context("the answer names no partition")?;
        check(found.error_code, None)?;
        positions.insert(index, found.offset);
    }
    Ok(positions)
}

fn delete(group: &str, to: &Bootstrap) -> anyhow::Result<()> {
    let mut client = Client::connect(&to.bootstrap)?;
    let node = coordinator(&mut client, group)?;
    let request = DeleteGroupsRequest { groups_names: vec![Str::from(group.to_owned())] };
    let answer: DeleteGroupsResponse = client.ask_node(node, &request)?;
    for result in answer.results {
        check(result.error_code, result.error_message.as_ref())?;
    }
    Ok(())
}

fn reset(
    group: &str,
    topic: &str,
    target: &Target,
    execute: bool,
    to: &Bootstrap,
) -> anyhow::Result<()> {
    let mut client = Client::connect(&to.bootstrap)?;
    let node = coordinator(&mut client, group)?;
    let name = Str::from(topic.to_owned());
    let first = positions(&mut client, &name, EARLIEST)?;
    let last = positions(&mut client, &name, LATEST)?;
    let at_time = match target.to_timestamp {
        Some(timestamp) => positions(&mut client, &name, timestamp)?,
        None => BTreeMap::new(),
    };
    let now: BTreeMap<i32, i64> = committed(&mut client, node, group)?
        .into_iter()
        .filter(|row| row.topic == name)
        .filter_map(|row| Some((row.partition, row.committed?)))
        .collect();
    let mut wanted = Vec::new();
    for (&index, &end) in &last {
        let start = first.get(&index).copied().unwrap_or(0);
        let offset = match (target.to_offset, target.shift_by) {
            (Some(offset), _) => offset,
            (None, Some(shift)) => match now.get(&index) {
                Some(at) => at.saturating_add(shift),
                None => bail!("{group} has committed nothing for {topic}-{index}"),
            },
            _ if target.to_earliest => start,
            _ => at_time.get(&index).copied().filter(|it| *it >= 0).unwrap_or(end),
        };
        wanted.push((index, offset.clamp(start, end)));
    }
    for (index, offset) in &wanted {
        let from = now.get(index).copied();
        if to.json {
            let shown = json!({"topic": topic, "partition": index, "from": from, "to": offset});
            println!("{shown}");
        } else {
            println!(
                "{topic}-{index}: {} to {offset}",
                from.map_or("nothing".into(), |it| it.to_string())
            );
        }
    }
    if !execute {
        eprintln!("nothing was changed; say --execute to do it");
        return Ok(());
    }
    commit(&mut client, node, group, &name, &wanted)
}

fn commit(
    client: &mut Client,
    node: i32,
    group: &str,
    topic: &Str,
    wanted: &[(i32, i64)],
) -> anyhow::Result<()> {
    let topic_id = client.topic(topic)?.topic_id;
    let partitions = wanted.iter().map(|&(index, offset)| OffsetCommitRequestPartition {
        partition_index: index,
        committed_offset: offset,
        ..OffsetCommitRequestPartition::default()
    });
    let partitions = partitions.collect();
    let request = OffsetCommitRequest {
        group_id: Str::from(group.to_owned()),
        topics: vec![OffsetCommitRequestTopic { name: topic.clone(), topic_id, partitions }],
        ..OffsetCommitRequest::default()
    };
    let answer: OffsetCommitResponse = client.ask_node(node, &request)?;
    for partition in answer.topics.iter().flat_map(|topic| &topic.partitions) {
        if partition.error_code == ErrorCode::UNKNOWN_MEMBER_ID {
            bail!("{group} has members: stop them first");
        }
        check(partition.error_code, None)?;
    }
    Ok(())
}

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
