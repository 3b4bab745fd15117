//! Behaviour: Gives a producer its id and epoch; for a transactional id it also fences the
//! earlier producer and ends its open transaction (KIP-98).
//!
//! Versions: 0–5, flexible from 2. 3 lets a producer keep its id with a newer epoch (KIP-360), 4
//! answers PRODUCER_FENCED (KIP-588), 5 lets the client abort (KIP-890). 6 (two-phase commit,
//! KIP-939) is unstable in Kafka 4.4 and left out.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api InitProducerId;

    request InitProducerIdRequest {
        /// Null for a producer that is only idempotent.
        transactional_id: Option<Str> [0.., null 0..] = Some(Str::EMPTY),
        /// After this long without an end the broker aborts the transaction.
        transaction_timeout_ms: i32 [0..],
        /// The id to keep, with `producer_epoch` (KIP-360); -1 for a new one.
        producer_id: i64 [3..] = -1,
        /// The epoch that goes with `producer_id`.
        producer_epoch: i16 [3..] = -1,
    }

    response InitProducerIdResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        producer_id: i64 [0..] = -1,
        producer_epoch: i16 [0..],
    }
}
