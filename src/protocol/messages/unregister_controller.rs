//! Behaviour: Forgets a controller that is gone for good.
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api UnregisterController;

    request UnregisterControllerRequest {
        controller_id: i32 [0..],
    }

    response UnregisterControllerResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }
}
