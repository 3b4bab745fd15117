//! Behaviour: Moves replicas to other log directories of the same node (KIP-113).
//!
//! Versions: 1–2, flexible from 2.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api AlterReplicaLogDirs;

    request AlterReplicaLogDirsRequest {
        dirs: Vec<AlterReplicaLogDir> [1..],
    }

    part AlterReplicaLogDir {
        path: Str [1..],
        topics: Vec<AlterReplicaLogDirTopic> [1..],
    }

    part AlterReplicaLogDirTopic {
        name: Str [1..],
        partitions: Vec<i32> [1..],
    }

    response AlterReplicaLogDirsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [1..],
        results: Vec<AlterReplicaLogDirTopicResult> [1..],
    }

    part AlterReplicaLogDirTopicResult {
        topic_name: Str [1..],
        partitions: Vec<AlterReplicaLogDirPartitionResult> [1..],
    }

    part AlterReplicaLogDirPartitionResult {
        partition_index: i32 [1..],
        error_code: ErrorCode [1..],
    }
}
