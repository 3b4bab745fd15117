//! Behaviour: Has partitions elect their preferred leader, or any replica where none in sync is
//! left (KIP-460).
//!
//! Versions: 0–2, flexible from 2. 1 has election types.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api ElectLeaders;

    request ElectLeadersRequest {
        /// 0 preferred, 1 unclean.
        election_type: i8 [1..],
        /// Null for all.
        topic_partitions: Option<Vec<TopicPartitions>> [0.., null 0..] = Some(Vec::new()),
        /// How long the sender will wait for the answer, in ms.
        timeout_ms: i32 [0..] = 60_000,
    }

    part TopicPartitions {
        topic: Str [0..],
        partitions: Vec<i32> [0..],
    }

    response ElectLeadersResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [1..],
        replica_election_results: Vec<ReplicaElectionResult> [0..],
    }

    part ReplicaElectionResult {
        topic: Str [0..],
        partition_result: Vec<PartitionResult> [0..],
    }

    part PartitionResult {
        partition_id: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }
}
