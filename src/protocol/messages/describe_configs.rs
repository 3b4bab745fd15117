//! Behaviour: Lists configuration values with where each comes from. No keys (null or empty)
//! means all.
//!
//! Versions: 1–4, flexible from 4. 1 has synonyms (KIP-226), 3 types and documentation
//! (KIP-569).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DescribeConfigs;

    request DescribeConfigsRequest {
        resources: Vec<DescribeConfigsResource> [1..],
        include_synonyms: bool [1..],
        include_documentation: bool [3..],
    }

    /// A resource whose values are wanted.
    part DescribeConfigsResource {
        /// 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
        resource_type: i8 [1..],
        /// A topic, a node id (empty for all nodes), or a group.
        resource_name: Str [1..],
        /// Null or empty for all.
        configuration_keys: Option<Vec<Str>> [1.., null 1..] = Some(Vec::new()),
    }

    response DescribeConfigsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        results: Vec<DescribeConfigsResult> [1..],
    }

    part DescribeConfigsResult {
        error_code: ErrorCode [1..],
        error_message: Option<Str> [1.., null 1..] = Some(Str::EMPTY),
        /// 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.
        resource_type: i8 [1..],
        resource_name: Str [1..],
        configs: Vec<DescribeConfigsResourceResult> [1..],
    }

    /// One value of a resource.
    part DescribeConfigsResourceResult {
        name: Str [1..],
        /// Null if it is not set or is a secret.
        value: Option<Str> [1.., null 1..] = Some(Str::EMPTY),
        read_only: bool [1..],
        /// 1 topic, 2 node, 3 all nodes, 4 static, 5 default, 6 logger, 7 client metrics, 8 group.
        config_source: i8 [1..] = -1,
        /// A secret: its value is not told.
        is_sensitive: bool [1..],
        /// Where the value comes from, then what would apply without it.
        synonyms: Vec<DescribeConfigsSynonym> [1..],
        /// 1 bool, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password.
        config_type: i8 [3..],
        documentation: Option<Str> [3.., null 1..] = Some(Str::EMPTY),
    }

    /// A value that would apply if those before it were not set (KIP-226).
    part DescribeConfigsSynonym {
        name: Str [1..],
        value: Option<Str> [1.., null 1..] = Some(Str::EMPTY),
        /// As `config_source`.
        source: i8 [1..],
    }
}
