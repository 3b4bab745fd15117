//! Behaviour: Describes share groups (KIP-932).
//!
//! Versions: 1, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api ShareGroupDescribe;

    request ShareGroupDescribeRequest {
        group_ids: Vec<Str> [1..],
        include_authorized_operations: bool [1..],
    }

    response ShareGroupDescribeResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        groups: Vec<DescribedGroup> [1..],
    }

    /// A group and its members.
    part DescribedGroup {
        error_code: ErrorCode [1..],
        error_message: Option<Str> [1.., null 1..],
        group_id: Str [1..],
        /// Empty, PreparingRebalance, CompletingRebalance, Stable or Dead.
        group_state: Str [1..],
        group_epoch: i32 [1..],
        assignment_epoch: i32 [1..],
        assignor_name: Str [1..],
        members: Vec<Member> [1..],
        /// Bits of the operations the client may do; the minimum if it did not ask (KIP-430).
        authorized_operations: i32 [1..] = i32::MIN,
    }

    part Member {
        member_id: Str [1..],
        rack_id: Option<Str> [1.., null 1..],
        member_epoch: i32 [1..],
        client_id: Str [1..],
        client_host: Str [1..],
        subscribed_topic_names: Vec<Str> [1..],
        assignment: Assignment [1..],
    }

    /// The partitions that the member is to have.
    part Assignment {
        topic_partitions: Vec<TopicPartitions> [1..],
    }

    part TopicPartitions {
        topic_id: Uuid [1..],
        topic_name: Str [1..],
        partitions: Vec<i32> [1..],
    }
}
