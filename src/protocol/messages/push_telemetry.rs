//! Behaviour: Delivers the metrics of a client (KIP-714).
//!
//! Versions: 0, flexible from 0.

use bytes::Bytes;

use crate::wire::messages;
use crate::{ErrorCode, Uuid};

messages! {
    api PushTelemetry;

    request PushTelemetryRequest {
        client_instance_id: Uuid [0..],
        subscription_id: i32 [0..],
        /// The last push before the client closes.
        terminating: bool [0..],
        /// 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
        compression_type: i8 [0..],
        /// OTLP metrics, compressed as said.
        metrics: Bytes [0..],
    }

    response PushTelemetryResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
