//! Behaviour: Deletes committed offsets of a group for topics it does not subscribe to
//! (KIP-496).
//!
//! Versions: 0, never flexible.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api OffsetDelete;

    request OffsetDeleteRequest {
        group_id: Str [0..],
        topics: Vec<OffsetDeleteRequestTopic> [0..],
    }

    part OffsetDeleteRequestTopic {
        name: Str [0..],
        partitions: Vec<OffsetDeleteRequestPartition> [0..],
    }

    part OffsetDeleteRequestPartition {
        partition_index: i32 [0..],
    }

    response OffsetDeleteResponse {
        /// Concerns the group; errors of partitions are with them.
        error_code: ErrorCode [0..],
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        topics: Vec<OffsetDeleteResponseTopic> [0..],
    }

    part OffsetDeleteResponseTopic {
        name: Str [0..],
        partitions: Vec<OffsetDeleteResponsePartition> [0..],
    }

    part OffsetDeleteResponsePartition {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
