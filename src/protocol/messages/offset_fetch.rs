//! Behaviour: Reads the offsets that groups have committed. Null topics stand for all. A
//! partition without a committed offset is answered with -1 and no error.
//!
//! Versions: 1–10, flexible from 6. 2 asks for all topics, 5 has leader epochs (KIP-320), 7 can
//! insist on offsets that no open transaction will change (KIP-447), 8 asks for several groups
//! (KIP-709), 9 names the member (KIP-848), 10 topics by id.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api OffsetFetch;

    request OffsetFetchRequest {
        group_id: Str [1..=7],
        /// Null for all; up to version 7.
        topics: Option<Vec<OffsetFetchRequestTopic>> [1..=7, null 2..=7] = Some(Vec::new()),
        groups: Vec<OffsetFetchRequestGroup> [8..],
        /// Refuse offsets that an open transaction can still change (KIP-447).
        require_stable: bool [7..],
    }

    part OffsetFetchRequestTopic {
        name: Str [1..=7],
        partition_indexes: Vec<i32> [1..=7],
    }

    part OffsetFetchRequestGroup {
        group_id: Str [8..],
        member_id: Option<Str> [9.., null 9..],
        member_epoch: i32 [9..] = -1,
        /// Null for all.
        topics: Option<Vec<OffsetFetchRequestTopics>> [8.., null 8..] = Some(Vec::new()),
    }

    part OffsetFetchRequestTopics {
        name: Str [8..=9],
        topic_id: Uuid [10..],
        partition_indexes: Vec<i32> [8..],
    }

    response OffsetFetchResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [3..],
        topics: Vec<OffsetFetchResponseTopic> [1..=7],
        error_code: ErrorCode [2..=7],
        groups: Vec<OffsetFetchResponseGroup> [8..],
    }

    part OffsetFetchResponseTopic {
        name: Str [1..=7],
        partitions: Vec<OffsetFetchResponsePartition> [1..=7],
    }

    part OffsetFetchResponsePartition {
        partition_index: i32 [1..=7],
        /// -1 if nothing was committed.
        committed_offset: i64 [1..=7],
        /// Leader epoch of the last record read; -1 if unknown (KIP-320).
        committed_leader_epoch: i32 [5..=7] = -1,
        metadata: Option<Str> [1..=7, null 1..=7] = Some(Str::EMPTY),
        error_code: ErrorCode [1..=7],
    }

    part OffsetFetchResponseGroup {
        group_id: Str [8..],
        topics: Vec<OffsetFetchResponseTopics> [8..],
        error_code: ErrorCode [8..],
    }

    part OffsetFetchResponseTopics {
        name: Str [8..=9],
        topic_id: Uuid [10..],
        partitions: Vec<OffsetFetchResponsePartitions> [8..],
    }

    part OffsetFetchResponsePartitions {
        partition_index: i32 [8..],
        /// -1 if nothing was committed.
        committed_offset: i64 [8..],
        /// Leader epoch of the last record read; -1 if unknown (KIP-320).
        committed_leader_epoch: i32 [8..] = -1,
        metadata: Option<Str> [8.., null 8..] = Some(Str::EMPTY),
        error_code: ErrorCode [8..],
    }
}
