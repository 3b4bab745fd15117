//! Behaviour: Lists the groups that this node coordinates. Filters ignore case; an empty filter
//! lets all pass.
//!
//! Versions: 0–5, flexible from 3. 4 filters by state (KIP-518), 5 by type (KIP-848).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api ListGroups;

    request ListGroupsRequest {
        states_filter: Vec<Str> [4..],
        types_filter: Vec<Str> [5..],
    }

    response ListGroupsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [0..],
        groups: Vec<ListedGroup> [0..],
    }

    /// A group in a list.
    part ListedGroup {
        group_id: Str [0..],
        /// `consumer`, `connect`, or empty for a group without members.
        protocol_type: Str [0..],
        group_state: Str [4..],
        group_type: Str [5..],
    }
}
