//! Behaviour: Asks which node coordinates a group, a transactional id or a share partition.
//!
//! Versions: 0–6, flexible from 3. 1 has key types (KIP-98), 4 asks for several keys at once
//! (KIP-699), 5 lets the client abort (KIP-890), 6 knows share groups (KIP-932).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api FindCoordinator;

    request FindCoordinatorRequest {
        /// Up to version 3; later in `coordinator_keys`.
        key: Str [0..=3],
        /// 0 group, 1 transactional id, 2 share partition.
        key_type: i8 [1..],
        coordinator_keys: Vec<Str> [4..],
    }

    response FindCoordinatorResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [0..=3],
        error_message: Option<Str> [1..=3, null 1..=3] = Some(Str::EMPTY),
        node_id: i32 [0..=3],
        host: Str [0..=3],
        port: i32 [0..=3],
        coordinators: Vec<Coordinator> [4..],
    }

    /// The coordinator of one key.
    part Coordinator {
        key: Str [4..],
        node_id: i32 [4..],
        host: Str [4..],
        port: i32 [4..],
        error_code: ErrorCode [4..],
        error_message: Option<Str> [4.., null 4..] = Some(Str::EMPTY),
    }
}
