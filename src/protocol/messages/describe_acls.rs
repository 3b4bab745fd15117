//! Behaviour: Lists the access rules that a filter matches.
//!
//! Versions: 1–3, flexible from 2. 1 has patterns (KIP-290), 3 users as resources (KIP-373).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DescribeAcls;

    request DescribeAclsRequest {
        /// 1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user.
        resource_type_filter: i8 [1..],
        /// Null for any.
        resource_name_filter: Option<Str> [1.., null 1..] = Some(Str::EMPTY),
        /// 1 any, 2 match, 3 literal, 4 prefixed.
        pattern_type_filter: i8 [1..] = 3,
        /// As `User:name`; null for any.
        principal_filter: Option<Str> [1.., null 1..] = Some(Str::EMPTY),
        /// Null for any.
        host_filter: Option<Str> [1.., null 1..] = Some(Str::EMPTY),
        /// 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster
        /// action, 10 describe configs, 11 alter configs, 12 idempotent write.
        operation: i8 [1..],
        /// 1 any, 2 deny, 3 allow.
        permission_type: i8 [1..],
    }

    response DescribeAclsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [1..],
        error_message: Option<Str> [1.., null 1..] = Some(Str::EMPTY),
        resources: Vec<DescribeAclsResource> [1..],
    }

    part DescribeAclsResource {
        /// 1 any, 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user.
        resource_type: i8 [1..],
        resource_name: Str [1..],
        /// 3 literal, 4 prefixed.
        pattern_type: i8 [1..] = 3,
        acls: Vec<AclDescription> [1..],
    }

    /// A rule on the resource above it.
    part AclDescription {
        /// As `User:name`.
        principal: Str [1..],
        host: Str [1..],
        /// 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, 7 alter, 8 describe, 9 cluster
        /// action, 10 describe configs, 11 alter configs, 12 idempotent write.
        operation: i8 [1..],
        /// 1 any, 2 deny, 3 allow.
        permission_type: i8 [1..],
    }
}
