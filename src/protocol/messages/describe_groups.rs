//! Behaviour: Describes classic groups: state, members, assignments. A group of the consumer
//! protocol is described as dead here.
//!
//! Versions: 0–6, flexible from 5. 3 tells the operations the client may do (KIP-430), 4 static
//! members (KIP-345), 6 says which group does not exist (KIP-1043).

use bytes::Bytes;

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DescribeGroups;

    request DescribeGroupsRequest {
        groups: Vec<Str> [0..],
        include_authorized_operations: bool [3..],
    }

    response DescribeGroupsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        groups: Vec<DescribedGroup> [0..],
    }

    /// A group and its members.
    part DescribedGroup {
        error_code: ErrorCode [0..],
        error_message: Option<Str> [6.., null 6..],
        group_id: Str [0..],
        /// Empty, PreparingRebalance, CompletingRebalance, Stable or Dead.
        group_state: Str [0..],
        protocol_type: Str [0..],
        /// Name of the chosen protocol.
        protocol_data: Str [0..],
        members: Vec<DescribedGroupMember> [0..],
        /// Bits of the operations the client may do; the minimum if it did not ask (KIP-430).
        authorized_operations: i32 [3..] = i32::MIN,
    }

    part DescribedGroupMember {
        member_id: Str [0..],
        /// `group.instance.id` of a static member (KIP-345); null for a dynamic one.
        group_instance_id: Option<Str> [4.., null 4..],
        client_id: Str [0..],
        client_host: Str [0..],
        /// The subscription, as the member wrote it.
        member_metadata: Bytes [0..],
        /// What the leader assigned, as it wrote it.
        member_assignment: Bytes [0..],
    }
}
