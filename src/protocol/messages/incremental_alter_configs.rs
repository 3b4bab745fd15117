//! Behaviour: Changes single configuration values: set, delete, append to or subtract from a
//! list (KIP-339).
//!
//! Versions: 0–1, flexible from 1.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api IncrementalAlterConfigs;

    request IncrementalAlterConfigsRequest {
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
        /// 0 set, 1 delete, 2 append, 3 subtract.
        config_operation: i8 [0..],
        /// Null to delete.
        value: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }

    response IncrementalAlterConfigsResponse {
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
