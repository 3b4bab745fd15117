//! Behaviour: Deletes groups without members, with their offsets.
//!
//! Versions: 0–3, flexible from 2. 3 says why a group could not be deleted (KIP-1331).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DeleteGroups;

    request DeleteGroupsRequest {
        groups_names: Vec<Str> [0..],
    }

    response DeleteGroupsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        results: Vec<DeletableGroupResult> [0..],
    }

    part DeletableGroupResult {
        group_id: Str [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [3.., null 3..],
    }
}
