//! Behaviour: Stores how far a group has come in its partitions. A group that does not manage
//! its members through the broker commits with generation -1 and no member id.
//!
//! Versions: 2–10, flexible from 8. 5 drops the retention time (KIP-211), 6 adds leader epochs
//! (KIP-320), 7 the static member (KIP-345), 9 allows members of the consumer protocol
//! (KIP-848), 10 names topics by id.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api OffsetCommit;

    request OffsetCommitRequest {
        group_id: Str [2..],
        /// Generation of a classic group, member epoch of a consumer group; -1 without members.
        generation_id_or_member_epoch: i32 [2..] = -1,
        member_id: Str [2..],
        /// `group.instance.id` of a static member (KIP-345); null for a dynamic one.
        group_instance_id: Option<Str> [7.., null 7..],
        /// -1 for the default of the broker.
        retention_time_ms: i64 [2..=4] = -1,
        topics: Vec<OffsetCommitRequestTopic> [2..],
    }

    part OffsetCommitRequestTopic {
        name: Str [2..=9],
        topic_id: Uuid [10..],
        partitions: Vec<OffsetCommitRequestPartition> [2..],
    }

    part OffsetCommitRequestPartition {
        partition_index: i32 [2..],
        committed_offset: i64 [2..],
        /// Leader epoch of the last record read; -1 if unknown (KIP-320).
        committed_leader_epoch: i32 [6..] = -1,
        /// Whatever the client wants to keep beside the offset.
        committed_metadata: Option<Str> [2.., null 2..] = Some(Str::EMPTY),
    }

    response OffsetCommitResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [3..],
        topics: Vec<OffsetCommitResponseTopic> [2..],
    }

    part OffsetCommitResponseTopic {
        name: Str [2..=9],
        topic_id: Uuid [10..],
        partitions: Vec<OffsetCommitResponsePartition> [2..],
    }

    part OffsetCommitResponsePartition {
        partition_index: i32 [2..],
        error_code: ErrorCode [2..],
    }
}
