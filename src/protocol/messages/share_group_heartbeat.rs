//! Behaviour: The one request by which a member of a share group joins, stays and leaves
//! (KIP-932).
//!
//! Versions: 1, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api ShareGroupHeartbeat;

    request ShareGroupHeartbeatRequest {
        group_id: Str [1..],
        member_id: Str [1..],
        member_epoch: i32 [1..],
        rack_id: Option<Str> [1.., null 1..],
        subscribed_topic_names: Option<Vec<Str>> [1.., null 1..],
    }

    response ShareGroupHeartbeatResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [1..],
        error_message: Option<Str> [1.., null 1..],
        member_id: Option<Str> [1.., null 1..],
        member_epoch: i32 [1..],
        heartbeat_interval_ms: i32 [1..],
        assignment: Option<Assignment> [1.., null 1..],
    }

    /// The partitions that the member is to have.
    part Assignment {
        topic_partitions: Vec<TopicPartitions> [1..],
    }

    part TopicPartitions {
        topic_id: Uuid [1..],
        partitions: Vec<i32> [1..],
    }
}
