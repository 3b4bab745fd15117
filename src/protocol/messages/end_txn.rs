//! Behaviour: Commits or aborts a transaction (KIP-98).
//!
//! Versions: 0–5, flexible from 3. 4 lets the client abort, 5 answers the id and epoch to go on
//! with (KIP-890).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api EndTxn;

    request EndTxnRequest {
        transactional_id: Str [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        /// True to commit, false to abort.
        committed: bool [0..],
    }

    response EndTxnResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        /// What to go on with from version 5; another id once the epochs are used up.
        producer_id: i64 [5..] = -1,
        producer_epoch: i16 [5..] = -1,
    }
}
