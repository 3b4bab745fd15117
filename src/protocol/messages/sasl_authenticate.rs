//! Behaviour: Carries the tokens of a SASL exchange.
//!
//! Versions: 0–2, flexible from 2. 1 tells how long the session lasts (KIP-368).

use bytes::Bytes;

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api SaslAuthenticate;

    request SaslAuthenticateRequest {
        /// One token of the mechanism.
        auth_bytes: Bytes [0..],
    }

    response SaslAuthenticateResponse {
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        /// One token of the mechanism.
        auth_bytes: Bytes [0..],
        /// After this long the client has to authenticate again; 0 for never (KIP-368).
        session_lifetime_ms: i64 [1..],
    }
}
