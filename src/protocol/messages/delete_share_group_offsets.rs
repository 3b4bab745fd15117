//! Behaviour: Makes share groups forget topics (KIP-932).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api DeleteShareGroupOffsets;

    request DeleteShareGroupOffsetsRequest {
        group_id: Str [0..],
        topics: Vec<DeleteShareGroupOffsetsRequestTopic> [0..],
    }

    part DeleteShareGroupOffsetsRequestTopic {
        topic_name: Str [0..],
    }

    response DeleteShareGroupOffsetsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
        responses: Vec<DeleteShareGroupOffsetsResponseTopic> [0..],
    }

    part DeleteShareGroupOffsetsResponseTopic {
        topic_name: Str [0..],
        topic_id: Uuid [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
    }
}
