//! Behaviour: Replaces the whole configuration of a resource. Superseded by
//! IncrementalAlterConfigs (KIP-339), kept for older clients.
//!
//! Versions: 0–2, flexible from 2.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api AlterConfigs;

    request AlterConfigsRequest {
        resources: Vec<AlterConfigsResource> [0..],
        /// Check everything, change nothing.
        validate_only: bool [0..],
    }

    /// A resource and what shall apply to it.
    part AlterConfigsResource {
        /// 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
        resource_type: i8 [0..],
        /// A topic, a node id (empty for all nodes), or a group.
        resource_name: Str [0..],
        configs: Vec<AlterableConfig> [0..],
    }

    part AlterableConfig {
        name: Str [0..],
        /// Null to delete.
        value: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }

    response AlterConfigsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        responses: Vec<AlterConfigsResourceResponse> [0..],
    }

    part AlterConfigsResourceResponse {
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        /// 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
        resource_type: i8 [0..],
        resource_name: Str [0..],
    }
}
