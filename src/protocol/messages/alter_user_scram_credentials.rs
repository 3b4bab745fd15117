//! Behaviour: Sets or removes SCRAM credentials (KIP-554).
//!
//! Versions: 0, flexible from 0.

use bytes::Bytes;

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api AlterUserScramCredentials;

    request AlterUserScramCredentialsRequest {
        deletions: Vec<ScramCredentialDeletion> [0..],
        upsertions: Vec<ScramCredentialUpsertion> [0..],
    }

    part ScramCredentialDeletion {
        name: Str [0..],
        /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
        mechanism: i8 [0..],
    }

    part ScramCredentialUpsertion {
        name: Str [0..],
        /// 1 SCRAM-SHA-256, 2 SCRAM-SHA-512.
        mechanism: i8 [0..],
        iterations: i32 [0..],
        salt: Bytes [0..],
        salted_password: Bytes [0..],
    }

    response AlterUserScramCredentialsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        results: Vec<AlterUserScramCredentialsResult> [0..],
    }

    part AlterUserScramCredentialsResult {
        user: Str [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
    }
}
