//! Behaviour: Commits the offsets of a group inside a transaction; they count once it commits
//! (KIP-98).
//!
//! Versions: 0–6, flexible from 3. 2 has leader epochs (KIP-320), 3 names the member (KIP-447),
//! 5 adds the offsets to the transaction implicitly (KIP-890), 6 names topics by id (KIP-1319).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api TxnOffsetCommit;

    request TxnOffsetCommitRequest {
        transactional_id: Str [0..],
        group_id: Str [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        /// Generation of a classic group, member epoch of a consumer group; -1 without members.
        generation_id_or_member_epoch: i32 [3..] = -1,
        member_id: Str [3..],
        /// `group.instance.id` of a static member (KIP-345); null for a dynamic one.
        group_instance_id: Option<Str> [3.., null 3..],
        topics: Vec<TxnOffsetCommitRequestTopic> [0..],
    }

    part TxnOffsetCommitRequestTopic {
        name: Str [0..=5],
        topic_id: Uuid [6..],
        partitions: Vec<TxnOffsetCommitRequestPartition> [0..],
    }

    part TxnOffsetCommitRequestPartition {
        partition_index: i32 [0..],
        committed_offset: i64 [0..],
        /// Leader epoch of the last record read; -1 if unknown (KIP-320).
        committed_leader_epoch: i32 [2..] = -1,
        /// Whatever the client wants to keep beside the offset.
        committed_metadata: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }

    response TxnOffsetCommitResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        topics: Vec<TxnOffsetCommitResponseTopic> [0..],
    }

    part TxnOffsetCommitResponseTopic {
        name: Str [0..=5],
        topic_id: Uuid [6..],
        partitions: Vec<TxnOffsetCommitResponsePartition> [0..],
    }

    part TxnOffsetCommitResponsePartition {
        partition_index: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
