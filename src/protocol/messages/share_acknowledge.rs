//! Behaviour: Acknowledges records that a member of a share group acquired (KIP-932).
//!
//! Versions: 1–2, flexible from 0. 2 can renew the acquisition (KIP-1222).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api ShareAcknowledge;

    request ShareAcknowledgeRequest {
        group_id: Option<Str> [1.., null 1..],
        member_id: Option<Str> [1.., null 1..] = Some(Str::EMPTY),
        share_session_epoch: i32 [1..],
        is_renew_ack: bool [2..],
        topics: Vec<AcknowledgeTopic> [1..],
    }

    part AcknowledgeTopic {
        topic_id: Uuid [1..],
        partitions: Vec<AcknowledgePartition> [1..],
    }

    part AcknowledgePartition {
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

    response ShareAcknowledgeResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [1..],
        error_message: Option<Str> [1.., null 1..],
        acquisition_lock_timeout_ms: i32 [2..],
        responses: Vec<ShareAcknowledgeTopicResponse> [1..],
        node_endpoints: Vec<NodeEndpoint> [1..],
    }

    part ShareAcknowledgeTopicResponse {
        topic_id: Uuid [1..],
        partitions: Vec<PartitionData> [1..],
    }

    part PartitionData {
        partition_index: i32 [1..],
        error_code: ErrorCode [1..],
        error_message: Option<Str> [1.., null 1..],
        /// Set if the client asked the wrong node (KIP-951).
        current_leader: LeaderIdAndEpoch [1..],
    }

    /// Who leads the partition now (KIP-951); -1 twice if nothing is said.
    part LeaderIdAndEpoch {
        leader_id: i32 [1..],
        leader_epoch: i32 [1..],
    }

    /// A node and where it listens.
    part NodeEndpoint {
        node_id: i32 [1..],
        host: Str [1..],
        port: i32 [1..],
        rack: Option<Str> [1.., null 1..],
    }
}
