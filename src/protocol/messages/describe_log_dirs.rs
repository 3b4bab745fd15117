//! Behaviour: Tells how much the replicas of this node take on disk (KIP-113).
//!
//! Versions: 1–5, flexible from 2. 3 has an error for the whole answer, 4 the size of the volume
//! (KIP-827), 5 whether the directory is closed to new replicas (KIP-1066).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api DescribeLogDirs;

    request DescribeLogDirsRequest {
        /// Null for all.
        topics: Option<Vec<DescribableLogDirTopic>> [1.., null 1..] = Some(Vec::new()),
    }

    part DescribableLogDirTopic {
        topic: Str [1..],
        partitions: Vec<i32> [1..],
    }

    response DescribeLogDirsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        error_code: ErrorCode [3..],
        results: Vec<DescribeLogDirsResult> [1..],
    }

    /// One directory.
    part DescribeLogDirsResult {
        error_code: ErrorCode [1..],
        log_dir: Str [1..],
        topics: Vec<DescribeLogDirsTopic> [1..],
        /// -1 if unknown.
        total_bytes: i64 [4..] = -1,
        /// -1 if unknown.
        usable_bytes: i64 [4..] = -1,
        /// Closed to new replicas (KIP-1066).
        is_cordoned: bool [5..],
    }

    part DescribeLogDirsTopic {
        name: Str [1..],
        partitions: Vec<DescribeLogDirsPartition> [1..],
    }

    /// One replica in the directory.
    part DescribeLogDirsPartition {
        partition_index: i32 [1..],
        /// In bytes.
        partition_size: i64 [1..],
        /// How far a moving replica is behind the one it will replace.
        offset_lag: i64 [1..],
        /// Whether this is the copy of a replica that moves between directories.
        is_future_key: bool [1..],
    }
}
