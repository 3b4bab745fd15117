//! Behaviour: Describes transactional ids: state, producer, partitions (KIP-664).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DescribeTransactions;

    request DescribeTransactionsRequest {
        transactional_ids: Vec<Str> [0..],
    }

    response DescribeTransactionsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        transaction_states: Vec<TransactionState> [0..],
    }

    /// A transaction as its coordinator knows it.
    part TransactionState {
        error_code: ErrorCode [0..],
        transactional_id: Str [0..],
        transaction_state: Str [0..],
        /// After this long without an end the broker aborts the transaction.
        transaction_timeout_ms: i32 [0..],
        /// In ms since 1970; -1 if none is open.
        transaction_start_time_ms: i64 [0..],
        producer_id: i64 [0..],
        producer_epoch: i16 [0..],
        topics: Vec<TopicData> [0..],
    }

    part TopicData {
        topic: Str [0..],
        partitions: Vec<i32> [0..],
    }
}
