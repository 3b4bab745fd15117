//! Behaviour: Chooses the SASL mechanism. After version 0 raw tokens follow; after 1
//! SaslAuthenticate requests.
//!
//! Versions: 0–1, never flexible (KIP-43, KIP-152).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api SaslHandshake;

    request SaslHandshakeRequest {
        mechanism: Str [0..],
    }

    response SaslHandshakeResponse {
        error_code: ErrorCode [0..],
        /// What the broker offers, whether the chosen one is among them or not.
        mechanisms: Vec<Str> [0..],
    }
}
