//! Behaviour: Tells how far share groups have come (KIP-932).
//!
//! Versions: 0–1, flexible from 0. 1 tells the lag (KIP-1226).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api DescribeShareGroupOffsets;

    request DescribeShareGroupOffsetsRequest {
        groups: Vec<DescribeShareGroupOffsetsRequestGroup> [0..],
    }

    part DescribeShareGroupOffsetsRequestGroup {
        group_id: Str [0..],
        topics: Option<Vec<DescribeShareGroupOffsetsRequestTopic>> [0.., null 0..] =
            Some(Vec::new()),
    }

    part DescribeShareGroupOffsetsRequestTopic {
        topic_name: Str [0..],
        partitions: Vec<i32> [0..],
    }

    response DescribeShareGroupOffsetsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        groups: Vec<DescribeShareGroupOffsetsResponseGroup> [0..],
    }

    part DescribeShareGroupOffsetsResponseGroup {
        group_id: Str [0..],
        topics: Vec<DescribeShareGroupOffsetsResponseTopic> [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
    }

    part DescribeShareGroupOffsetsResponseTopic {
        topic_name: Str [0..],
        topic_id: Uuid [0..],
        partitions: Vec<DescribeShareGroupOffsetsResponsePartition> [0..],
    }

    part DescribeShareGroupOffsetsResponsePartition {
        partition_index: i32 [0..],
        start_offset: i64 [0..],
        leader_epoch: i32 [0..],
        lag: i64 [1..] = -1,
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
    }
}
