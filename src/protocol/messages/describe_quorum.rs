//! Behaviour: Describes the metadata quorum: leader, voters, observers and how far each has come
//! (KIP-595).
//!
//! Versions: 0–2, flexible from 0. 1 has the times of fetches (KIP-836), 2 directories and
//! endpoints (KIP-853).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api DescribeQuorum;

    request DescribeQuorumRequest {
        topics: Vec<RequestTopicData> [0..],
    }

    part RequestTopicData {
        topic_name: Str [0..],
        partitions: Vec<RequestPartitionData> [0..],
    }

    part RequestPartitionData {
        partition_index: i32 [0..],
    }

    response DescribeQuorumResponse {
        error_code: ErrorCode [0..],
        error_message: Option<Str> [2.., null 2..] = Some(Str::EMPTY),
        topics: Vec<TopicData> [0..],
        nodes: Vec<Node> [2..],
    }

    part TopicData {
        topic_name: Str [0..],
        partitions: Vec<PartitionData> [0..],
    }

    part PartitionData {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [2.., null 2..] = Some(Str::EMPTY),
        leader_id: i32 [0..],
        leader_epoch: i32 [0..],
        high_watermark: i64 [0..],
        current_voters: Vec<ReplicaState> [0..],
        /// Hosts that follow without a vote.
        observers: Vec<ReplicaState> [0..],
    }

    /// A replica and how it stands.
    part ReplicaState {
        replica_id: i32 [0..],
        replica_directory_id: Uuid [2..],
        log_end_offset: i64 [0..],
        /// In ms; -1 if unknown (KIP-836).
        last_fetch_timestamp: i64 [1..] = -1,
        /// In ms; -1 if unknown (KIP-836).
        last_caught_up_timestamp: i64 [1..] = -1,
    }

    part Node {
        node_id: i32 [2..],
        listeners: Vec<Listener> [2..],
    }

    part Listener {
        name: Str [2..],
        host: Str [2..],
        port: u16 [2..],
    }
}
