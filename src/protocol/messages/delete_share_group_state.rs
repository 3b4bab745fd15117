//! Behaviour: Deletes the state of share partitions (KIP-932).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api DeleteShareGroupState;

    request DeleteShareGroupStateRequest {
        group_id: Str [0..],
        topics: Vec<DeleteStateData> [0..],
    }

    part DeleteStateData {
        topic_id: Uuid [0..],
        partitions: Vec<PartitionData> [0..],
    }

    part PartitionData {
        partition: i32 [0..],
    }

    response DeleteShareGroupStateResponse {
        results: Vec<DeleteStateResult> [0..],
    }

    part DeleteStateResult {
        topic_id: Uuid [0..],
        partitions: Vec<PartitionResult> [0..],
    }

    part PartitionResult {
        partition: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
    }
}
