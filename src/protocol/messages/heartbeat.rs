//! Behaviour: Keeps a member of a classic group alive and tells it of a rebalance.
//!
//! Versions: 0–4, flexible from 4. 3 knows static members (KIP-345).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api Heartbeat;

    request HeartbeatRequest {
        group_id: Str [0..],
        generation_id: i32 [0..],
        member_id: Str [0..],
        /// `group.instance.id` of a static member (KIP-345); null for a dynamic one.
        group_instance_id: Option<Str> [3.., null 3..],
    }

    response HeartbeatResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [0..],
    }
}
