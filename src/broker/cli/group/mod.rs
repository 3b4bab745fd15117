//! `coretide group`: list, describe, delete, reset-offsets.
//!
//! Changes of offsets are shown first and made only with `--execute`; they are committed as a tool
//! commits, which the broker takes only while the group has no members.

mod describe;
mod reset;

use anyhow::Context;
use clap::{Args, Subcommand};
use protocol::Str;
use protocol::messages::delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse};
use protocol::messages::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};
use serde_json::json;

use super::topic::Bootstrap;
use crate::client::{Client, check, group as of_group};
use reset::{Reset, Target};

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
    /// Show members, offsets and lag of a group; seconds go by the records' own timestamps
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
        #[command(flatten)]
        reset: Reset,
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        to: Bootstrap,
    },
}

pub(super) fn run(args: GroupArgs) -> anyhow::Result<()> {
    match args.command {
        GroupCommand::List { to } => list(&to),
        GroupCommand::Describe { group, to } => describe::run(&group, &to),
        GroupCommand::Delete { group, to } => delete(&group, &to),
        GroupCommand::ResetOffsets { reset, target, to } => reset::run(&reset, &target, &to),
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
        let (id, state, of) = (&*group.group_id, &*group.group_state, &*group.protocol_type);
        let kind = &*group.group_type;
        if to.json {
            let shown = json!({"group": id, "state": state, "type": kind, "protocol_type": of});
            println!("{shown}");
        } else {
            println!("{id}\t{state}\t{of}");
        }
    }
    Ok(())
}

fn delete(group: &str, to: &Bootstrap) -> anyhow::Result<()> {
    let mut client = Client::connect(&to.bootstrap)?;
    let node = of_group::coordinator(&mut client, group)?;
    let request = DeleteGroupsRequest { groups_names: vec![Str::from(group.to_owned())] };
    let answer: DeleteGroupsResponse = client.ask_node(node, &request)?;
    for result in answer.results {
        check(result.error_code, result.error_message.as_ref())?;
    }
    Ok(())
}
