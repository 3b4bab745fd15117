//! Behaviour: Describes the nodes of the cluster, without topics (KIP-700).
//!
//! Versions: 0–2, flexible from 0. 1 can ask for controllers (KIP-919), 2 for fenced nodes
//! (KIP-1073).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DescribeCluster;

    request DescribeClusterRequest {
        include_cluster_authorized_operations: bool [0..],
        /// 1 brokers, 2 controllers (KIP-919).
        endpoint_type: i8 [1..] = 1,
        include_fenced_brokers: bool [2..],
    }

    response DescribeClusterResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
        /// 1 brokers, 2 controllers (KIP-919).
        endpoint_type: i8 [1..] = 1,
        cluster_id: Str [0..],
        controller_id: i32 [0..] = -1,
        brokers: Vec<DescribeClusterBroker> [0..],
        /// Bits of the operations the client may do; the minimum if it did not ask (KIP-430).
        cluster_authorized_operations: i32 [0..] = i32::MIN,
    }

    part DescribeClusterBroker {
        broker_id: i32 [0..],
        host: Str [0..],
        port: i32 [0..],
        rack: Option<Str> [0.., null 0..],
        /// Registered, but not alive enough to lead (KIP-1073).
        is_fenced: bool [2..],
    }
}
