//! Behaviour: Lists partitions whose replicas are being changed (KIP-455).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api ListPartitionReassignments;

    request ListPartitionReassignmentsRequest {
        /// How long the sender will wait for the answer, in ms.
        timeout_ms: i32 [0..] = 60_000,
        /// Null for all.
        topics: Option<Vec<ListPartitionReassignmentsTopics>> [0.., null 0..],
    }

    part ListPartitionReassignmentsTopics {
        name: Str [0..],
        partition_indexes: Vec<i32> [0..],
    }

    response ListPartitionReassignmentsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        topics: Vec<OngoingTopicReassignment> [0..],
    }

    part OngoingTopicReassignment {
        name: Str [0..],
        partitions: Vec<OngoingPartitionReassignment> [0..],
    }

    /// A partition between old and new replicas.
    part OngoingPartitionReassignment {
        partition_index: i32 [0..],
        /// All of them, old and new.
        replicas: Vec<i32> [0..],
        adding_replicas: Vec<i32> [0..],
        removing_replicas: Vec<i32> [0..],
    }
}
