//! Behaviour: Moves the start of partitions forward: records below are gone. Offset -1 stands
//! for the high watermark (KIP-107).
//!
//! Versions: 0–2, flexible from 2.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DeleteRecords;

    request DeleteRecordsRequest {
        topics: Vec<DeleteRecordsTopic> [0..],
        /// How long the sender will wait for the answer, in ms.
        timeout_ms: i32 [0..],
    }

    part DeleteRecordsTopic {
        name: Str [0..],
        partitions: Vec<DeleteRecordsPartition> [0..],
    }

    part DeleteRecordsPartition {
        partition_index: i32 [0..],
        /// First offset to stay; -1 for the high watermark.
        offset: i64 [0..],
    }

    response DeleteRecordsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        topics: Vec<DeleteRecordsTopicResult> [0..],
    }

    part DeleteRecordsTopicResult {
        name: Str [0..],
        partitions: Vec<DeleteRecordsPartitionResult> [0..],
    }

    part DeleteRecordsPartitionResult {
        partition_index: i32 [0..],
        /// Where the log starts now.
        low_watermark: i64 [0..],
        error_code: ErrorCode [0..],
    }
}
