//! Behaviour: Lists the resources that have a configuration (KIP-1142; version 0 knows only
//! client metrics, KIP-714).
//!
//! Versions: 0–1, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api ListConfigResources;

    request ListConfigResourcesRequest {
        /// Empty for all.
        resource_types: Vec<i8> [1..],
    }

    response ListConfigResourcesResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        config_resources: Vec<ConfigResource> [0..],
    }

    part ConfigResource {
        resource_name: Str [0..],
        /// 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
        resource_type: i8 [1..] = 16,
    }
}
