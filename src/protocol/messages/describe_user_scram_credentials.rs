//! Behaviour: Tells which users have SCRAM credentials; never the credentials (KIP-554).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DescribeUserScramCredentials;

    request DescribeUserScramCredentialsRequest {
        /// Null or empty for all.
        users: Option<Vec<UserName>> [0.., null 0..] = Some(Vec::new()),
    }

    part UserName {
        name: Str [0..],
    }

    response DescribeUserScramCredentialsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        results: Vec<DescribeUserScramCredentialsResult> [0..],
    }

    part DescribeUserScramCredentialsResult {
        user: Str [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        credential_infos: Vec<CredentialInfo> [0..],
    }

    part CredentialInfo {
        /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
        mechanism: i8 [0..],
        iterations: i32 [0..],
    }
}
