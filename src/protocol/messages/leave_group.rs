//! Behaviour: Takes members out of a classic group, so that it need not wait for their session
//! to end.
//!
//! Versions: 0–5, flexible from 4. 3 takes several members, static ones too (KIP-345), 5 a
//! reason (KIP-800).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api LeaveGroup;

    request LeaveGroupRequest {
        group_id: Str [0..],
        /// Up to version 2; later in `members`.
        member_id: Str [0..=2],
        members: Vec<MemberIdentity> [3..],
    }

    /// A member that leaves.
    part MemberIdentity {
        member_id: Str [3..],
        /// `group.instance.id` of a static member (KIP-345); null for a dynamic one.
        group_instance_id: Option<Str> [3.., null 3..],
        /// For the log of the broker (KIP-800).
        reason: Option<Str> [5.., null 5..],
    }

    response LeaveGroupResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [0..],
        members: Vec<MemberResponse> [3..],
    }

    part MemberResponse {
        member_id: Str [3..],
        /// `group.instance.id` of a static member (KIP-345); null for a dynamic one.
        group_instance_id: Option<Str> [3.., null 3..] = Some(Str::EMPTY),
        error_code: ErrorCode [3..],
    }
}
