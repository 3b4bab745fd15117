//! Behaviour: Reads the state of share partitions (KIP-932).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api ReadShareGroupState;

    request ReadShareGroupStateRequest {
        group_id: Str [0..],
        topics: Vec<ReadStateData> [0..],
    }

    part ReadStateData {
        topic_id: Uuid [0..],
        partitions: Vec<PartitionData> [0..],
    }

    part PartitionData {
        partition: i32 [0..],
        leader_epoch: i32 [0..],
    }

    response ReadShareGroupStateResponse {
        results: Vec<ReadStateResult> [0..],
    }

    part ReadStateResult {
        topic_id: Uuid [0..],
        partitions: Vec<PartitionResult> [0..],
    }

    part PartitionResult {
        partition: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
        state_epoch: i32 [0..],
        start_offset: i64 [0..],
        state_batches: Vec<StateBatch> [0..],
    }

    part StateBatch {
        first_offset: i64 [0..],
        last_offset: i64 [0..],
        delivery_state: i8 [0..],
        delivery_count: i16 [0..],
    }
}
