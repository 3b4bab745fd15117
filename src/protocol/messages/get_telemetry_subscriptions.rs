//! Behaviour: Asks which of its metrics a client shall push (KIP-714).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api GetTelemetrySubscriptions;

    request GetTelemetrySubscriptionsRequest {
        /// Zero to be given one.
        client_instance_id: Uuid [0..],
    }

    response GetTelemetrySubscriptionsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        client_instance_id: Uuid [0..],
        subscription_id: i32 [0..],
        accepted_compression_types: Vec<i8> [0..],
        push_interval_ms: i32 [0..],
        /// Bytes that one push may have.
        telemetry_max_bytes: i32 [0..],
        /// Whether counters are told as differences.
        delta_temporality: bool [0..],
        /// Prefixes of names; one empty string for all, none for nothing.
        requested_metrics: Vec<Str> [0..],
    }
}
