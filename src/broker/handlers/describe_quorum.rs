//! Behaviour: how the metadata quorum stands (KIP-595, KIP-836). Its members are hosts; they are
//! shown as the node of their slot 0, where the quorum runs.
//!
//! Versions: 0–2. 1 has timestamps, 2 directory ids and listeners (KIP-853).

use protocol::messages::describe_quorum::{
    DescribeQuorumRequest, DescribeQuorumResponse, Listener, Node, PartitionData, ReplicaState,
    TopicData,
};
use protocol::{ErrorCode, HostId, NodeId, SlotIndex, Str};
use quorum::{MemberId, Status};

use crate::connection::Outcome;
use crate::controller;
use crate::dispatch::{Context, pause_if_long};

pub async fn handle(cx: Context, request: DescribeQuorumRequest) -> Outcome {
    let asked = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(move |each| (topic.topic_name.clone(), each.partition_index))
    });
    let mut topics: Vec<TopicData> = Vec::new();
    for (name, index) in asked {
        let data = match (&*name, index) {
            (QUORUM_TOPIC, 0) => match controller::quorum_status(&cx.slot).await {
                Ok(status) => describe(&cx, &status),
                Err(why) => failed(index, ErrorCode::NOT_CONTROLLER, why.to_string()),
            },
            _ => failed(
                index,
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                format!("the quorum is {QUORUM_TOPIC}-0"),
            ),
        };
        match topics.last_mut() {
            Some(last) if last.topic_name == name => last.partitions.push(data),
            _ => topics.push(TopicData { topic_name: name, partitions: vec![data] }),
        }
        pause_if_long().await;
    }
    let nodes = nodes(&cx);
    cx.reply_long(DescribeQuorumResponse { topics, nodes, ..Default::default() }).await
}

fn describe(cx: &Context, status: &Status) -> PartitionData {
    let now_ms = runtime::time::wall_ms();
    let state = |member: MemberId| {
        let progress = status.progress.iter().find(|each| each.id == member);
        let end = progress.map_or(status.last_index, |progress| progress.stored) + 1;
        let host = host_of(member);
        let directory = cx.slot.image().host(host).map(|host| host.directory);
        ReplicaState {
            replica_id: NodeId::of(host, SlotIndex(0)).0,
            replica_directory_id: directory.unwrap_or_default(),
            log_end_offset: end as i64,
            last_fetch_timestamp: now_ms,
            last_caught_up_timestamp: now_ms,
        }
    };
    PartitionData {
        partition_index: 0,
        error_code: ErrorCode::NONE,
        error_message: Some(Str::EMPTY),
        leader_id: status.leader.map_or(-1, |leader| NodeId::of(host_of(leader), SlotIndex(0)).0),
        leader_epoch: status.term as i32,
        high_watermark: status.committed as i64 + 1,
        current_voters: status.members.voters.iter().map(|&member| state(member)).collect(),
        observers: status.members.learners.iter().map(|&member| state(member)).collect(),
    }
}

fn failed(index: i32, error_code: ErrorCode, message: String) -> PartitionData {
    PartitionData {
        partition_index: index,
        error_code,
        error_message: Some(Str::from(message)),
        ..PartitionData::default()
    }
}

fn nodes(cx: &Context) -> Vec<Node> {
    let image = cx.slot.image();
    let first = image.nodes().filter(|node| node.id.slot() == SlotIndex(0));
    let nodes = first.map(|node| Node {
        node_id: node.id.0,
        listeners: vec![Listener {
            name: Str::from_static("CONTROLLER"),
            host: node.host,
            port: node.port,
        }],
    });
    nodes.collect()
}

/// Member ids are host ids plus one, because they may not be zero.
fn host_of(member: MemberId) -> HostId {
    HostId(member.get() as i32 - 1)
}

const QUORUM_TOPIC: &str = "__cluster_metadata";
