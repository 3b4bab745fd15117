//! Behaviour: Appends record batches, one per partition. With `acks` 0 there is no answer at
//! all; with -1 it comes once the batches are committed. A `transactional_id` announces
//! transactional batches (KIP-98).
//!
//! Versions: 3–13, flexible from 9. 8 answers with the offending records (KIP-467), 10 with the
//! leader the client should have asked (KIP-951), 11 lets the client abort (KIP-890), 12 adds
//! partitions to the transaction implicitly (KIP-890), 13 names topics by id (KIP-516).

use crate::wire::messages;
use crate::{ErrorCode, Records, Str, Uuid};

messages! {
    api Produce;

    request ProduceRequest {
        /// Null outside transactions.
        transactional_id: Option<Str> [3.., null 3..],
        /// -1, 0 or 1.
        acks: i16 [3..],
        /// How long to wait for replicas when `acks` is -1, in ms.
        timeout_ms: i32 [3..],
        topic_data: Vec<TopicProduceData> [3..],
    }

    /// The batches for one topic: named up to version 12, by id from 13.
    part TopicProduceData {
        name: Str [3..=12],
        topic_id: Uuid [13..],
        partition_data: Vec<PartitionProduceData> [3..],
    }

    /// The batch for one partition.
    part PartitionProduceData {
        index: i32 [3..],
        /// Exactly one batch of format 2.
        records: Option<Records> [3.., null 3..],
    }

    response ProduceResponse {
        responses: Vec<TopicProduceResponse> [3..],
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [3..],
        /// Where the leaders named in `current_leader` can be reached (KIP-951).
        node_endpoints: Vec<NodeEndpoint> [10.., tag 0],
    }

    /// The outcome for one topic.
    part TopicProduceResponse {
        name: Str [3..=12],
        topic_id: Uuid [13..],
        partition_responses: Vec<PartitionProduceResponse> [3..],
    }

    /// The outcome for one partition.
    part PartitionProduceResponse {
        index: i32 [3..],
        error_code: ErrorCode [3..],
        /// Offset of the first record; -1 on an error.
        base_offset: i64 [3..],
        /// -1 unless the topic stamps records with the time of their append.
        log_append_time_ms: i64 [3..] = -1,
        log_start_offset: i64 [5..] = -1,
        /// The records that made the broker refuse the whole batch (KIP-467).
        record_errors: Vec<BatchIndexAndErrorMessage> [8..],
        error_message: Option<Str> [8.., null 8..],
        /// Set if the client asked the wrong node (KIP-951).
        current_leader: LeaderIdAndEpoch [10.., tag 0],
    }

    /// One record that was refused, by its place in the batch.
    part BatchIndexAndErrorMessage {
        batch_index: i32 [8..],
        batch_index_error_message: Option<Str> [8.., null 8..],
    }

    /// Who leads the partition now (KIP-951); -1 twice if nothing is said.
    part LeaderIdAndEpoch {
        leader_id: i32 [10..] = -1,
        leader_epoch: i32 [10..] = -1,
    }

    /// A node and where it listens.
    part NodeEndpoint {
        node_id: i32 [10..],
        host: Str [10..],
        port: i32 [10..],
        rack: Option<Str> [10.., null 10..],
    }
}
