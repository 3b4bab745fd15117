//! Behaviour: Lists delegation tokens (KIP-48).
//!
//! Versions: 1–3, flexible from 2. 3 tells who asked for the token (KIP-373).

use bytes::Bytes;

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DescribeDelegationToken;

    request DescribeDelegationTokenRequest {
        owners: Option<Vec<DescribeDelegationTokenOwner>> [1.., null 1..] = Some(Vec::new()),
    }

    part DescribeDelegationTokenOwner {
        principal_type: Str [1..],
        principal_name: Str [1..],
    }

    response DescribeDelegationTokenResponse {
        error_code: ErrorCode [1..],
        tokens: Vec<DescribedDelegationToken> [1..],
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
    }

    part DescribedDelegationToken {
        principal_type: Str [1..],
        principal_name: Str [1..],
        token_requester_principal_type: Str [3..],
        token_requester_principal_name: Str [3..],
        issue_timestamp: i64 [1..],
        expiry_timestamp: i64 [1..],
        max_timestamp: i64 [1..],
        token_id: Str [1..],
        hmac: Bytes [1..],
        renewers: Vec<DescribedDelegationTokenRenewer> [1..],
    }

    part DescribedDelegationTokenRenewer {
        principal_type: Str [1..],
        principal_name: Str [1..],
    }
}
