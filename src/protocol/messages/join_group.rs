//! Behaviour: Makes the sender a member of a classic group, or says again what it supports. The
//! answer comes when the group has gathered; it makes one member the leader, who assigns.
//!
//! Versions: 0–9, flexible from 6. 1 has a rebalance timeout of its own (KIP-62), 4 wants the
//! member id first (KIP-394), 5 knows static members (KIP-345), 7 answers the protocol type
//! (KIP-559), 8 takes a reason (KIP-800), 9 can tell the leader to leave the assignment as it is
//! (KIP-814).

use bytes::Bytes;

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api JoinGroup;

    request JoinGroupRequest {
        group_id: Str [0..],
        /// A member not heard of for this long is taken out.
        session_timeout_ms: i32 [0..],
        /// How long the others wait for this member in a rebalance.
        rebalance_timeout_ms: i32 [1..] = -1,
        /// Empty at the first join.
        member_id: Str [0..],
        /// `group.instance.id` of a static member (KIP-345); null for a dynamic one.
        group_instance_id: Option<Str> [5.., null 5..],
        /// `consumer`, `connect` and so on; all members have the same.
        protocol_type: Str [0..],
        /// What the member supports, the preferred one first.
        protocols: Vec<JoinGroupRequestProtocol> [0..],
        /// For the log of the broker (KIP-800).
        reason: Option<Str> [8.., null 8..],
    }

    /// An assignor that the member supports, with its subscription.
    part JoinGroupRequestProtocol {
        name: Str [0..],
        /// The subscription, as the assignor of this name reads it.
        metadata: Bytes [0..],
    }

    response JoinGroupResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [2..],
        error_code: ErrorCode [0..],
        generation_id: i32 [0..] = -1,
        protocol_type: Option<Str> [7.., null 7..],
        protocol_name: Option<Str> [0.., null 7..] = Some(Str::EMPTY),
        /// Member id of the one that assigns.
        leader: Str [0..],
        /// The leader has to leave the assignment as it is (KIP-814).
        skip_assignment: bool [9..],
        member_id: Str [0..],
        /// Only filled for the leader.
        members: Vec<JoinGroupResponseMember> [0..],
    }

    /// A member, as its leader has to know it.
    part JoinGroupResponseMember {
        member_id: Str [0..],
        /// `group.instance.id` of a static member (KIP-345); null for a dynamic one.
        group_instance_id: Option<Str> [5.., null 5..],
        metadata: Bytes [0..],
    }
}
