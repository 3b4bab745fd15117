//! Behaviour: Sets where share groups go on (KIP-932).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api AlterShareGroupOffsets;

    request AlterShareGroupOffsetsRequest {
        group_id: Str [0..],
        topics: Vec<AlterShareGroupOffsetsRequestTopic> [0..],
    }

    part AlterShareGroupOffsetsRequestTopic {
        topic_name: Str [0..],
        partitions: Vec<AlterShareGroupOffsetsRequestPartition> [0..],
    }

    part AlterShareGroupOffsetsRequestPartition {
        partition_index: i32 [0..],
        start_offset: i64 [0..],
    }

    response AlterShareGroupOffsetsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
        responses: Vec<AlterShareGroupOffsetsResponseTopic> [0..],
    }

    part AlterShareGroupOffsetsResponseTopic {
        topic_name: Str [0..],
        topic_id: Uuid [0..],
        partitions: Vec<AlterShareGroupOffsetsResponsePartition> [0..],
    }

    part AlterShareGroupOffsetsResponsePartition {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
    }
}
