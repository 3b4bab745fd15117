//! Behaviour: Deletes topics, by name or by id.
//!
//! Versions: 1–6, flexible from 4. 5 answers a message (KIP-599), 6 takes ids (KIP-516).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api DeleteTopics;

    request DeleteTopicsRequest {
        topics: Vec<DeleteTopicState> [6..],
        /// Up to version 5; later in `topics`.
        topic_names: Vec<Str> [1..=5],
        /// How long the sender will wait for the answer, in ms.
        timeout_ms: i32 [1..],
    }

    /// A topic, by name or by id.
    part DeleteTopicState {
        /// Null if the topic is named by id.
        name: Option<Str> [6.., null 6..],
        topic_id: Uuid [6..],
    }

    response DeleteTopicsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        responses: Vec<DeletableTopicResult> [1..],
    }

    part DeletableTopicResult {
        /// Null if the topic is not known by its id.
        name: Option<Str> [1.., null 6..] = Some(Str::EMPTY),
        topic_id: Uuid [6..],
        error_code: ErrorCode [1..],
        error_message: Option<Str> [5.., null 5..],
    }
}
