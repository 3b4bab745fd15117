//! Behaviour: Ends the joining of a classic group: the leader hands in the assignment of all,
//! everyone gets its own.
//!
//! Versions: 0–5, flexible from 4. 3 knows static members (KIP-345), 5 repeats protocol type and
//! name (KIP-559).

use bytes::Bytes;

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api SyncGroup;

    request SyncGroupRequest {
        group_id: Str [0..],
        generation_id: i32 [0..],
        member_id: Str [0..],
        /// `group.instance.id` of a static member (KIP-345); null for a dynamic one.
        group_instance_id: Option<Str> [3.., null 3..],
        protocol_type: Option<Str> [5.., null 5..],
        protocol_name: Option<Str> [5.., null 5..],
        /// Only filled by the leader.
        assignments: Vec<SyncGroupRequestAssignment> [0..],
    }

    /// What one member is to read.
    part SyncGroupRequestAssignment {
        member_id: Str [0..],
        assignment: Bytes [0..],
    }

    response SyncGroupResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [0..],
        protocol_type: Option<Str> [5.., null 5..],
        protocol_name: Option<Str> [5.., null 5..],
        assignment: Bytes [0..],
    }
}
