//! Behaviour: Adds partitions to an open transaction before the first record goes to them. From
//! 4 on brokers send it for several transactions, or only to ask (KIP-890).
//!
//! Versions: 0–5, flexible from 3. Clients use 0–3, brokers 4 and 5.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api AddPartitionsToTxn;

    request AddPartitionsToTxnRequest {
        transactions: Vec<AddPartitionsToTxnTransaction> [4..],
        v3_and_below_transactional_id: Str [0..=3],
        v3_and_below_producer_id: i64 [0..=3],
        v3_and_below_producer_epoch: i16 [0..=3],
        v3_and_below_topics: Vec<AddPartitionsToTxnTopic> [0..=3],
    }

    /// One transaction and the partitions it is to have.
    part AddPartitionsToTxnTransaction {
        transactional_id: Str [4..],
        producer_id: i64 [4..],
        producer_epoch: i16 [4..],
        /// Only ask whether the partitions belong to the transaction.
        verify_only: bool [4..],
        topics: Vec<AddPartitionsToTxnTopic> [4..],
    }

    part AddPartitionsToTxnTopic {
        name: Str [0..],
        partitions: Vec<i32> [0..],
    }

    response AddPartitionsToTxnResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [4..],
        results_by_transaction: Vec<AddPartitionsToTxnResult> [4..],
        results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult> [0..=3],
    }

    part AddPartitionsToTxnResult {
        transactional_id: Str [4..],
        topic_results: Vec<AddPartitionsToTxnTopicResult> [4..],
    }

    part AddPartitionsToTxnTopicResult {
        name: Str [0..],
        results_by_partition: Vec<AddPartitionsToTxnPartitionResult> [0..],
    }

    part AddPartitionsToTxnPartitionResult {
        partition_index: i32 [0..],
        partition_error_code: ErrorCode [0..],
    }
}
