//! Behaviour: A transaction coordinator has the outcome of transactions written into their
//! partitions (KIP-98).
//!
//! Versions: 1–2, flexible from 1. 2 tells which kind of transaction it was (KIP-1228).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api WriteTxnMarkers;

    request WriteTxnMarkersRequest {
        markers: Vec<WritableTxnMarker> [1..],
    }

    /// The outcome of one transaction.
    part WritableTxnMarker {
        producer_id: i64 [1..],
        producer_epoch: i16 [1..],
        /// True for commit, false for abort.
        transaction_result: bool [1..],
        topics: Vec<WritableTxnMarkerTopic> [1..],
        /// Fences markers of an earlier coordinator.
        coordinator_epoch: i32 [1..],
        transaction_version: i8 [2..],
    }

    part WritableTxnMarkerTopic {
        name: Str [1..],
        partition_indexes: Vec<i32> [1..],
    }

    response WriteTxnMarkersResponse {
        markers: Vec<WritableTxnMarkerResult> [1..],
    }

    part WritableTxnMarkerResult {
        producer_id: i64 [1..],
        topics: Vec<WritableTxnMarkerTopicResult> [1..],
    }

    part WritableTxnMarkerTopicResult {
        name: Str [1..],
        partitions: Vec<WritableTxnMarkerPartitionResult> [1..],
    }

    part WritableTxnMarkerPartitionResult {
        partition_index: i32 [1..],
        error_code: ErrorCode [1..],
    }
}
