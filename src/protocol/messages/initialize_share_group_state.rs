//! Behaviour: A group coordinator has the state of share partitions begun (KIP-932).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api InitializeShareGroupState;

    request InitializeShareGroupStateRequest {
        group_id: Str [0..],
        topics: Vec<InitializeStateData> [0..],
    }

    part InitializeStateData {
        topic_id: Uuid [0..],
        partitions: Vec<PartitionData> [0..],
    }

    part PartitionData {
        partition: i32 [0..],
        state_epoch: i32 [0..],
        start_offset: i64 [0..],
    }

    response InitializeShareGroupStateResponse {
        results: Vec<InitializeStateResult> [0..],
    }

    part InitializeStateResult {
        topic_id: Uuid [0..],
        partitions: Vec<PartitionResult> [0..],
    }

    part PartitionResult {
        partition: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
    }
}
