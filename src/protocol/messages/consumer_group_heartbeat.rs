//! Behaviour: The one request of a member of the consumer protocol: joins, keeps alive, reports
//! and receives its partitions, leaves (KIP-848). Null fields have not changed since the last
//! heartbeat.
//!
//! Versions: 0–1, flexible from 0. 1 subscribes by pattern and has the client make its member id
//! (KIP-1082).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api ConsumerGroupHeartbeat;

    request ConsumerGroupHeartbeatRequest {
        group_id: Str [0..],
        /// From version 1 on made by the client; before, empty at the first heartbeat.
        member_id: Str [0..],
        /// 0 to join, -1 to leave, -2 to leave as a static member that will be back.
        member_epoch: i32 [0..],
        instance_id: Option<Str> [0.., null 0..],
        rack_id: Option<Str> [0.., null 0..],
        /// How long the others wait for this member in a rebalance.
        rebalance_timeout_ms: i32 [0..] = -1,
        /// Null if unchanged.
        subscribed_topic_names: Option<Vec<Str>> [0.., null 0..],
        /// Null if unchanged, empty for none.
        subscribed_topic_regex: Option<Str> [1.., null 1..],
        /// Null to leave the choice to the broker or if unchanged.
        server_assignor: Option<Str> [0.., null 0..],
        /// What the member owns now; null if that has not changed.
        topic_partitions: Option<Vec<TopicPartitions>> [0.., null 0..],
    }

    part TopicPartitions {
        topic_id: Uuid [0..],
        partitions: Vec<i32> [0..],
    }

    response ConsumerGroupHeartbeatResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
        member_id: Option<Str> [0.., null 0..],
        member_epoch: i32 [0..],
        heartbeat_interval_ms: i32 [0..],
        /// Null if unchanged.
        assignment: Option<Assignment> [0.., null 0..],
    }

    /// The partitions that the member is to have.
    part Assignment {
        topic_partitions: Vec<TopicPartitions> [0..],
    }
}
