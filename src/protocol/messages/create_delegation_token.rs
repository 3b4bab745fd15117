//! Behaviour: Makes a delegation token (KIP-48).
//!
//! Versions: 1–3, flexible from 2. 3 for another owner (KIP-373).

use bytes::Bytes;

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api CreateDelegationToken;

    request CreateDelegationTokenRequest {
        owner_principal_type: Option<Str> [3.., null 3..] = Some(Str::EMPTY),
        owner_principal_name: Option<Str> [3.., null 3..] = Some(Str::EMPTY),
        renewers: Vec<CreatableRenewers> [1..],
        /// -1 for the default of the broker.
        max_lifetime_ms: i64 [1..],
    }

    part CreatableRenewers {
        principal_type: Str [1..],
        principal_name: Str [1..],
    }

    response CreateDelegationTokenResponse {
        error_code: ErrorCode [1..],
        principal_type: Str [1..],
        principal_name: Str [1..],
        token_requester_principal_type: Str [3..],
        token_requester_principal_name: Str [3..],
        issue_timestamp_ms: i64 [1..],
        expiry_timestamp_ms: i64 [1..],
        max_timestamp_ms: i64 [1..],
        token_id: Str [1..],
        hmac: Bytes [1..],
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
    }
}
