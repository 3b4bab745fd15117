//! What a client asks about groups: who coordinates, who is in it, how far it has come.

use anyhow::{Context, bail};
use protocol::messages::consumer_group_describe::{
    Assignment, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse,
};
use protocol::messages::describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse};
use protocol::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse,
};
use protocol::{ApiKey, ErrorCode, Str};
use std::time::{Duration, Instant};

use super::consumer_protocol::{Partitions, decode_assignment, decode_subscription};
use super::positions::topic_name;
use crate::client::{Client, check};

/// A group and its members, of whichever protocol.
#[derive(Debug)]
pub struct GroupView {
    pub state: Str,
    /// `classic` or `consumer`.
    pub kind: &'static str,
    pub assignor: Str,
    pub members: Vec<MemberView>,
}

#[derive(Debug)]
pub struct MemberView {
    pub id: Str,
    pub instance: Option<Str>,
    pub client: Str,
    pub host: Str,
    /// None where it cannot be read.
    pub topics: Option<Vec<Str>>,
    pub partitions: Option<Partitions>,
}

/// One committed offset.
#[derive(Debug)]
pub struct Committed {
    pub topic: Str,
    pub partition: i32,
    pub offset: i64,
}

/// The node that coordinates a group; waits a bounded time until there is one.
pub fn coordinator(client: &mut Client, group: &str) -> anyhow::Result<i32> {
    // Also tells the client where the nodes are.
    client.metadata(&[])?;
    let key = Str::from(group.to_owned());
    let coordinator_keys = vec![key.clone()];
    let request = FindCoordinatorRequest { key, coordinator_keys, ..Default::default() };
    let deadline = Instant::now() + COORDINATOR_WAIT;
    loop {
        let answer: FindCoordinatorResponse = client.ask(&request)?;
        let (node, error, message) = match answer.coordinators.into_iter().next() {
            Some(found) => (found.node_id, found.error_code, found.error_message),
            None => (answer.node_id, answer.error_code, answer.error_message),
        };
        if !error.is_error() {
            return Ok(node);
        }
        if !error.retriable() || Instant::now() > deadline {
            check(error, message.as_ref())?;
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// The group as its coordinator describes it.
pub fn describe(client: &mut Client, node: i32, group: &str) -> anyhow::Result<GroupView> {
    let groups = vec![Str::from(group.to_owned())];
    let request = DescribeGroupsRequest { groups, ..DescribeGroupsRequest::default() };
    let deadline = Instant::now() + COORDINATOR_WAIT;
    loop {
        let mut answer: DescribeGroupsResponse = client.ask_node(node, &request)?;
        let found = answer.groups.pop().context("the answer names no group")?;
        if found.error_code == ErrorCode::COORDINATOR_LOAD_IN_PROGRESS && Instant::now() < deadline
        {
            std::thread::sleep(RETRY_PAUSE);
            continue;
        }
        if found.error_code == ErrorCode::GROUP_ID_NOT_FOUND || *found.group_state == *"Dead" {
            return match describe_consumers(client, node, group)? {
                Some(view) => Ok(view),
                None => bail!("there is no group {group}"),
            };
        }
        check(found.error_code, found.error_message.as_ref())?;
        let members = found.members.into_iter().map(|it| MemberView {
            id: it.member_id,
            instance: it.group_instance_id,
            client: it.client_id,
            host: it.client_host,
            topics: decode_subscription(&it.member_metadata),
            partitions: decode_assignment(&it.member_assignment),
        });
        return Ok(GroupView {
            state: found.group_state,
            kind: "classic",
            assignor: found.protocol_data,
            members: members.collect(),
        });
    }
}

/// The same for a group of the consumer protocol (KIP-848); none if the node knows no such group,
/// or no such protocol.
fn describe_consumers(
    client: &mut Client,
    node: i32,
    group: &str,
) -> anyhow::Result<Option<GroupView>> {
    let request = ConsumerGroupDescribeRequest {
        group_ids: vec![Str::from(group.to_owned())],
        ..ConsumerGroupDescribeRequest::default()
    };
    if !client.serves(node, ApiKey::ConsumerGroupDescribe)? {
        return Ok(None);
    }
    let mut answer: ConsumerGroupDescribeResponse = client.ask_node(node, &request)?;
    let Some(found) = answer.groups.pop() else { return Ok(None) };
    if found.error_code == ErrorCode::GROUP_ID_NOT_FOUND {
        return Ok(None);
    }
    check(found.error_code, found.error_message.as_ref())?;
    let members = found.members.into_iter().map(|it| MemberView {
        id: it.member_id,
        instance: it.instance_id,
        client: it.client_id,
        host: it.client_host,
        topics: it
            .subscribed_topic_regex
            .is_none_or(|it| it.is_empty())
            .then_some(it.subscribed_topic_names),
        partitions: Some(partitions_of(&it.assignment)),
    });
    Ok(Some(GroupView {
        state: found.group_state,
        kind: "consumer",
        assignor: found.assignor_name,
        members: members.collect(),
    }))
}

fn partitions_of(assignment: &Assignment) -> Partitions {
    let topics = assignment.topic_partitions.iter();
    topics.map(|it| (it.topic_name.clone(), it.partitions.clone())).collect()
}

/// Everything that the group has committed, by topic and partition.
pub fn committed(client: &mut Client, node: i32, group: &str) -> anyhow::Result<Vec<Committed>> {
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
    let mut all = Vec::new();
    for found in answer.groups {
        check(found.error_code, None)?;
        for topic in found.topics {
            let name = topic_name(client, &topic.name, topic.topic_id)?;
            for it in topic.partitions.into_iter().filter(|it| it.committed_offset >= 0) {
                let (partition, offset) = (it.partition_index, it.committed_offset);
                all.push(Committed { topic: name.clone(), partition, offset });
            }
        }
    }
    all.sort_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    Ok(all)
}

/// Who commits: a member in its generation, or a tool.
#[derive(Clone, Copy)]
pub struct Committer<'a> {
    pub group: &'a str,
    pub member: &'a str,
    pub generation: i32,
}

/// Commits offsets for a topic; the first refusal ends it.
pub fn commit(
    client: &mut Client,
    node: i32,
    committer: Committer<'_>,
    (topic, topic_id): (&Str, protocol::Uuid),
    offsets: impl IntoIterator<Item = (i32, i64)>,
) -> anyhow::Result<ErrorCode> {
    let partitions = offsets.into_iter().map(|(partition_index, committed_offset)| {
        OffsetCommitRequestPartition {
            partition_index,
            committed_offset,
            ..OffsetCommitRequestPartition::default()
        }
    });
    let partitions = partitions.collect();
    let request = OffsetCommitRequest {
        group_id: Str::from(committer.group.to_owned()),
        generation_id_or_member_epoch: committer.generation,
        member_id: Str::from(committer.member.to_owned()),
        topics: vec![OffsetCommitRequestTopic { name: topic.clone(), topic_id, partitions }],
        ..OffsetCommitRequest::default()
    };
    let answer: OffsetCommitResponse = client.ask_node(node, &request)?;
    let outcomes = answer.topics.into_iter().flat_map(|topic| topic.partitions);
    let refused = outcomes.map(|it| it.error_code).find(|error| error.is_error());
    Ok(refused.unwrap_or(ErrorCode::NONE))
}

const COORDINATOR_WAIT: Duration = Duration::from_secs(20);
const RETRY_PAUSE: Duration = Duration::from_millis(50);
