//! Behaviour: Gives the offset that belongs to a point in time: of the first record at or after
//! a timestamp, or one of the special points, which are negative timestamps.
//!
//! Versions: 1–11, flexible from 6. 2 has isolation levels (KIP-98), 4 leader epochs (KIP-320),
//! 7 the point of the highest timestamp (KIP-734), 8 the start of the local log (KIP-405), 9 the
//! end of the tiered log (KIP-1005), 10 a timeout (KIP-1075), 11 the earliest offset that still
//! waits for upload (KIP-1023).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api ListOffsets;

    request ListOffsetsRequest {
        /// -1 for consumers, -2 for tools that ask any replica.
        replica_id: i32 [1..],
        /// 0 reads up to the high watermark, 1 only what no open transaction can still undo.
        isolation_level: i8 [2..],
        topics: Vec<ListOffsetsTopic> [1..],
        /// How long the sender will wait for the answer, in ms.
        timeout_ms: i32 [10..],
    }

    part ListOffsetsTopic {
        name: Str [1..],
        partitions: Vec<ListOffsetsPartition> [1..],
    }

    part ListOffsetsPartition {
        partition_index: i32 [1..],
        /// The epoch the sender believes in; -1 to have it not checked (KIP-320).
        current_leader_epoch: i32 [4..] = -1,
        /// In ms, or a special point: -1 end, -2 start, -3 highest timestamp, -4 local start, -5
        /// end of the tiered log, -6 first not yet tiered.
        timestamp: i64 [1..],
    }

    response ListOffsetsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [2..],
        topics: Vec<ListOffsetsTopicResponse> [1..],
    }

    part ListOffsetsTopicResponse {
        name: Str [1..],
        partitions: Vec<ListOffsetsPartitionResponse> [1..],
    }

    part ListOffsetsPartitionResponse {
        partition_index: i32 [1..],
        error_code: ErrorCode [1..],
        /// Of the record found; -1 if there is none.
        timestamp: i64 [1..] = -1,
        /// -1 if there is none.
        offset: i64 [1..] = -1,
        leader_epoch: i32 [4..] = -1,
    }
}
