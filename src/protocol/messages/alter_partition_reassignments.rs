//! Behaviour: Gives partitions new replicas, or takes back such an order (KIP-455).
//!
//! Versions: 0–1, flexible from 0. 1 can refuse to change the replication factor (KIP-860).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api AlterPartitionReassignments;

    request AlterPartitionReassignmentsRequest {
        /// How long the sender will wait for the answer, in ms.
        timeout_ms: i32 [0..] = 60_000,
        allow_replication_factor_change: bool [1..] = true,
        topics: Vec<ReassignableTopic> [0..],
    }

    part ReassignableTopic {
        name: Str [0..],
        partitions: Vec<ReassignablePartition> [0..],
    }

    /// A partition and its future replicas.
    part ReassignablePartition {
        partition_index: i32 [0..],
        /// Null to take back a pending order.
        replicas: Option<Vec<i32>> [0.., null 0..],
    }

    response AlterPartitionReassignmentsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        allow_replication_factor_change: bool [1..] = true,
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        responses: Vec<ReassignableTopicResponse> [0..],
    }

    part ReassignableTopicResponse {
        name: Str [0..],
        partitions: Vec<ReassignablePartitionResponse> [0..],
    }

    part ReassignablePartitionResponse {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }
}
