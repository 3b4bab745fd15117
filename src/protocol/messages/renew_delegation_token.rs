//! Behaviour: Lengthens the life of a delegation token (KIP-48).
//!
//! Versions: 1–2, flexible from 2.

use bytes::Bytes;

use crate::ErrorCode;
use crate::wire::messages;

messages! {
    api RenewDelegationToken;

    request RenewDelegationTokenRequest {
        hmac: Bytes [1..],
        renew_period_ms: i64 [1..],
    }

    response RenewDelegationTokenResponse {
        error_code: ErrorCode [1..],
        expiry_timestamp_ms: i64 [1..],
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
    }
}
