//! Behaviour: Asks where the records of a leader epoch end, to find out where two logs part
//! (KIP-101, KIP-320).
//!
//! Versions: 2–4, flexible from 4. 3 tells consumers from replicas.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api OffsetForLeaderEpoch;

    request OffsetForLeaderEpochRequest {
        /// -1 from consumers, -2 from tools.
        replica_id: i32 [3..] = -2,
        topics: Vec<OffsetForLeaderTopic> [2..],
    }

    part OffsetForLeaderTopic {
        topic: Str [2..],
        partitions: Vec<OffsetForLeaderPartition> [2..],
    }

    /// The epoch whose end is wanted.
    part OffsetForLeaderPartition {
        partition: i32 [2..],
        /// The epoch the sender believes in; -1 to have it not checked (KIP-320).
        current_leader_epoch: i32 [2..] = -1,
        /// The epoch whose end is wanted.
        leader_epoch: i32 [2..],
    }

    response OffsetForLeaderEpochResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [2..],
        topics: Vec<OffsetForLeaderTopicResult> [2..],
    }

    part OffsetForLeaderTopicResult {
        topic: Str [2..],
        partitions: Vec<EpochEndOffset> [2..],
    }

    /// Where an epoch ends.
    part EpochEndOffset {
        error_code: ErrorCode [2..],
        partition: i32 [2..],
        /// The largest known epoch that is not above the one asked for; -1 if none is.
        leader_epoch: i32 [2..] = -1,
        /// First offset behind the epoch; -1 if the epoch is unknown.
        end_offset: i64 [2..] = -1,
    }
}
