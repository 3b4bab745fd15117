//! Behaviour: Lists the producers that a partition remembers (KIP-664).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DescribeProducers;

    request DescribeProducersRequest {
        topics: Vec<TopicRequest> [0..],
    }

    part TopicRequest {
        name: Str [0..],
        partition_indexes: Vec<i32> [0..],
    }

    response DescribeProducersResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        topics: Vec<TopicResponse> [0..],
    }

    part TopicResponse {
        name: Str [0..],
        partitions: Vec<PartitionResponse> [0..],
    }

    part PartitionResponse {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
        active_producers: Vec<ProducerState> [0..],
    }

    /// What a partition remembers of one producer.
    part ProducerState {
        producer_id: i64 [0..],
        producer_epoch: i32 [0..],
        last_sequence: i32 [0..] = -1,
        /// In ms; of the last batch.
        last_timestamp: i64 [0..] = -1,
        coordinator_epoch: i32 [0..],
        /// -1 if no transaction is open.
        current_txn_start_offset: i64 [0..] = -1,
    }
}
