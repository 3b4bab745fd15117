//! Behaviour: Lists the transactional ids that this node coordinates (KIP-664).
//!
//! Versions: 0–2, flexible from 0. 1 filters by duration (KIP-994), 2 by a pattern (KIP-1152).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api ListTransactions;

    request ListTransactionsRequest {
        /// Empty for all.
        state_filters: Vec<Str> [0..],
        /// Empty for all.
        producer_id_filters: Vec<i64> [0..],
        /// In ms: only transactions open for longer; negative for all.
        duration_filter: i64 [1..] = -1,
        /// A regular expression of Google's RE2; null or empty for all (KIP-1152).
        transactional_id_pattern: Option<Str> [2.., null 2..],
    }

    response ListTransactionsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        /// The states in the filter that do not exist.
        unknown_state_filters: Vec<Str> [0..],
        transaction_states: Vec<TransactionState> [0..],
    }

    /// A transaction as its coordinator knows it.
    part TransactionState {
        transactional_id: Str [0..],
        producer_id: i64 [0..],
        transaction_state: Str [0..],
    }
}
