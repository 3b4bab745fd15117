//! Behaviour: Adds the offsets of a group to an open transaction (KIP-98).
//!
//! Versions: 0–4, flexible from 3. 4 lets the client abort (KIP-890).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api AddOffsetsToTxn;

    request AddOffsetsToTxnRequest {
        transactional_id: Str [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        group_id: Str [0..],
    }

    response AddOffsetsToTxnResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
    }
}
