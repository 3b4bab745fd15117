//! Behaviour: Describes topics page by page, with eligible leader replicas (KIP-966).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api DescribeTopicPartitions;

    request DescribeTopicPartitionsRequest {
        topics: Vec<TopicRequest> [0..],
        /// Partitions a page may have.
        response_partition_limit: i32 [0..] = 2000,
        /// Where to go on; null to begin.
        cursor: Option<Cursor> [0.., null 0..],
    }

    part TopicRequest {
        name: Str [0..],
    }

    /// A place between two pages.
    part Cursor {
        topic_name: Str [0..],
        partition_index: i32 [0..],
    }

    response DescribeTopicPartitionsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        topics: Vec<DescribeTopicPartitionsResponseTopic> [0..],
        /// Where the next page begins; null on the last one.
        next_cursor: Option<Cursor> [0.., null 0..],
    }

    part DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode [0..],
        name: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        topic_id: Uuid [0..],
        is_internal: bool [0..],
        partitions: Vec<DescribeTopicPartitionsResponsePartition> [0..],
        /// Bits of the operations the client may do; the minimum if it did not ask (KIP-430).
        topic_authorized_operations: i32 [0..] = i32::MIN,
    }

    /// Who leads and holds one partition.
    part DescribeTopicPartitionsResponsePartition {
        error_code: ErrorCode [0..],
        partition_index: i32 [0..],
        leader_id: i32 [0..],
        leader_epoch: i32 [0..] = -1,
        /// Node ids, the preferred leader first.
        replica_nodes: Vec<i32> [0..],
        /// The replicas in sync with the leader.
        isr_nodes: Vec<i32> [0..],
        /// Replicas that may lead although they are not in sync (KIP-966).
        eligible_leader_replicas: Option<Vec<i32>> [0.., null 0..],
        /// The replicas last known to be eligible (KIP-966).
        last_known_elr: Option<Vec<i32>> [0.., null 0..],
        /// Replicas that cannot be used at the moment (KIP-112).
        offline_replicas: Vec<i32> [0..],
    }
}
