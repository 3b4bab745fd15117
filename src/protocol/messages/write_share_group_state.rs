//! Behaviour: Writes the state of share partitions (KIP-932).
//!
//! Versions: 0–1, flexible from 0. 1 counts completed deliveries (KIP-1226).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api WriteShareGroupState;

    request WriteShareGroupStateRequest {
        group_id: Str [0..],
        topics: Vec<WriteStateData> [0..],
    }

    part WriteStateData {
        topic_id: Uuid [0..],
        partitions: Vec<PartitionData> [0..],
    }

    part PartitionData {
        partition: i32 [0..],
        state_epoch: i32 [0..],
        leader_epoch: i32 [0..],
        start_offset: i64 [0..],
        delivery_complete_count: i32 [1..] = -1,
        state_batches: Vec<StateBatch> [0..],
    }

    part StateBatch {
        first_offset: i64 [0..],
        last_offset: i64 [0..],
        delivery_state: i8 [0..],
        delivery_count: i16 [0..],
    }

    response WriteShareGroupStateResponse {
        results: Vec<WriteStateResult> [0..],
    }

    part WriteStateResult {
        topic_id: Uuid [0..],
        partitions: Vec<PartitionResult> [0..],
    }

    part PartitionResult {
        partition: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
    }
}
