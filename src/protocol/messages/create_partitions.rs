//! Behaviour: Adds partitions to topics; existing ones stay as they are (KIP-195).
//!
//! Versions: 0–3, flexible from 2. 3 has an error for a used-up quota (KIP-599).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api CreatePartitions;

    request CreatePartitionsRequest {
        topics: Vec<CreatePartitionsTopic> [0..],
        /// How long the sender will wait for the answer, in ms.
        timeout_ms: i32 [0..],
        /// Check everything, change nothing.
        validate_only: bool [0..],
    }

    part CreatePartitionsTopic {
        name: Str [0..],
        /// How many partitions there shall be.
        count: i32 [0..],
        /// Null to let the broker choose; otherwise one for each new partition.
        assignments: Option<Vec<CreatePartitionsAssignment>> [0.., null 0..] = Some(Vec::new()),
    }

    /// The replicas of one new partition, chosen by the client.
    part CreatePartitionsAssignment {
        broker_ids: Vec<i32> [0..],
    }

    response CreatePartitionsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        results: Vec<CreatePartitionsTopicResult> [0..],
    }

    part CreatePartitionsTopicResult {
        name: Str [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
    }
}
