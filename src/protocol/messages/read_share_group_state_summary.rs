//! Behaviour: Reads the offsets of share partitions without the state of each record (KIP-932).
//!
//! Versions: 0–1, flexible from 0. 1 counts completed deliveries (KIP-1226).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api ReadShareGroupStateSummary;

    request ReadShareGroupStateSummaryRequest {
        group_id: Str [0..],
        topics: Vec<ReadStateSummaryData> [0..],
    }

    part ReadStateSummaryData {
        topic_id: Uuid [0..],
        partitions: Vec<PartitionData> [0..],
    }

    part PartitionData {
        partition: i32 [0..],
        leader_epoch: i32 [0..],
    }

    response ReadShareGroupStateSummaryResponse {
        results: Vec<ReadStateSummaryResult> [0..],
    }

    part ReadStateSummaryResult {
        topic_id: Uuid [0..],
        partitions: Vec<PartitionResult> [0..],
    }

    part PartitionResult {
        partition: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
        state_epoch: i32 [0..],
        leader_epoch: i32 [0..],
        start_offset: i64 [0..],
        delivery_complete_count: i32 [1..] = -1,
    }
}
