//! Behaviour: Describes groups of the consumer protocol (KIP-848).
//!
//! Versions: 0–1, flexible from 0. 1 tells the type of a member (KIP-1099).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api ConsumerGroupDescribe;

    request ConsumerGroupDescribeRequest {
        group_ids: Vec<Str> [0..],
        include_authorized_operations: bool [0..],
    }

    response ConsumerGroupDescribeResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        groups: Vec<DescribedGroup> [0..],
    }

    /// A group and its members.
    part DescribedGroup {
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
        group_id: Str [0..],
        /// Empty, PreparingRebalance, CompletingRebalance, Stable or Dead.
        group_state: Str [0..],
        group_epoch: i32 [0..],
        assignment_epoch: i32 [0..],
        assignor_name: Str [0..],
        members: Vec<Member> [0..],
        /// Bits of the operations the client may do; the minimum if it did not ask (KIP-430).
        authorized_operations: i32 [0..] = i32::MIN,
    }

    part Member {
        member_id: Str [0..],
        instance_id: Option<Str> [0.., null 0..],
        rack_id: Option<Str> [0.., null 0..],
        member_epoch: i32 [0..],
        client_id: Str [0..],
        client_host: Str [0..],
        subscribed_topic_names: Vec<Str> [0..],
        subscribed_topic_regex: Option<Str> [0.., null 0..],
        assignment: Assignment [0..],
        target_assignment: Assignment [0..],
        /// -1 unknown, 0 classic, 1 consumer.
        member_type: i8 [1..] = -1,
    }

    /// The partitions that the member is to have.
    part Assignment {
        topic_partitions: Vec<TopicPartitions> [0..],
    }

    part TopicPartitions {
        topic_id: Uuid [0..],
        topic_name: Str [0..],
        partitions: Vec<i32> [0..],
    }
}
