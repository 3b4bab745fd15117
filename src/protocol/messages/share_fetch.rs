//! Behaviour: Acquires records for a member of a share group, and acknowledges earlier ones
//! (KIP-932).
//!
//! Versions: 1–2, flexible from 0. 2 has acquire modes and renewal (KIP-1206, KIP-1222).

use crate::wire::messages;
use crate::{ErrorCode, Records, Str, Uuid};

messages! {
    api ShareFetch;

    request ShareFetchRequest {
        group_id: Option<Str> [1.., null 1..],
        member_id: Option<Str> [1.., null 1..] = Some(Str::EMPTY),
        share_session_epoch: i32 [1..],
        /// How long the answer may wait for `min_bytes`.
        max_wait_ms: i32 [1..],
        min_bytes: i32 [1..],
        max_bytes: i32 [1..] = i32::MAX,
        max_records: i32 [1..],
        batch_size: i32 [1..],
        share_acquire_mode: i8 [2..],
        is_renew_ack: bool [2..],
        topics: Vec<FetchTopic> [1..],
        forgotten_topics_data: Vec<ForgottenTopic> [1..],
    }

    part FetchTopic {
        /// From version 13 on.
        topic_id: Uuid [1..],
        partitions: Vec<FetchPartition> [1..],
    }

    /// Where to read on, and how much.
    part FetchPartition {
        partition_index: i32 [1..],
        acknowledgement_batches: Vec<AcknowledgementBatch> [1..],
    }

    /// What became of a run of acquired records.
    part AcknowledgementBatch {
        first_offset: i64 [1..],
        last_offset: i64 [1..],
        /// For each record: 0 gap, 1 accept, 2 release, 3 reject, 4 renew; one stands for all.
        acknowledge_types: Vec<i8> [1..],
    }

    /// Partitions that leave the session.
    part ForgottenTopic {
        topic_id: Uuid [1..],
        partitions: Vec<i32> [1..],
    }

    response ShareFetchResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [1..],
        error_message: Option<Str> [1.., null 1..],
        acquisition_lock_timeout_ms: i32 [1..],
        responses: Vec<ShareFetchableTopicResponse> [1..],
        node_endpoints: Vec<NodeEndpoint> [1..],
    }

    part ShareFetchableTopicResponse {
        topic_id: Uuid [1..],
        partitions: Vec<PartitionData> [1..],
    }

    part PartitionData {
        partition_index: i32 [1..],
        error_code: ErrorCode [1..],
        error_message: Option<Str> [1.., null 1..],
        acknowledge_error_code: ErrorCode [1..],
        acknowledge_error_message: Option<Str> [1.., null 1..],
        /// Set if the client asked the wrong node (KIP-951).
        current_leader: LeaderIdAndEpoch [1..],
        /// Batches as they lie in the log; the last one can be cut off.
        records: Records [1..],
        acquired_records: Vec<AcquiredRecords> [1..],
    }

    /// Who leads the partition now (KIP-951); -1 twice if nothing is said.
    part LeaderIdAndEpoch {
        leader_id: i32 [1..],
        leader_epoch: i32 [1..],
    }

    /// A run of records that the member now has.
    part AcquiredRecords {
        first_offset: i64 [1..],
        last_offset: i64 [1..],
        delivery_count: i16 [1..],
    }

    /// A node and where it listens.
    part NodeEndpoint {
        node_id: i32 [1..],
        host: Str [1..],
        port: i32 [1..],
        rack: Option<Str> [1.., null 1..],
    }
}
