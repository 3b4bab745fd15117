//! Where partitions begin and end, as their leader says.
//!
//! A new topic is in the metadata before its leaders have taken it up; whoever asks here waits
//! until they have.

use std::time::Duration;

use anyhow::Context;
use protocol::ErrorCode;
use protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use runtime::time::{now, sleep};

use crate::cluster::Cluster;
use crate::node::{Node, check};

/// Special points in time: the end and the beginning of a log.
pub const LATEST: i64 = -1;
pub const EARLIEST: i64 = -2;

/// Partition and offset, once the node leads all of `partitions`.
pub async fn list(
    node: &mut Node,
    cluster: &Cluster,
    partitions: &[i32],
    timestamp: i64,
) -> anyhow::Result<Vec<(i32, i64)>> {
    let wanted = |&partition_index: &i32| ListOffsetsPartition {
        partition_index,
        timestamp,
        ..ListOffsetsPartition::default()
    };
    let topic = ListOffsetsTopic {
        name: cluster.topic.clone(),
        partitions: partitions.iter().map(wanted).collect(),
    };
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![topic],
        timeout_ms: TIMEOUT_MS,
        ..ListOffsetsRequest::default()
    };
    let deadline = now() + PATIENCE;
    loop {
        let answer: ListOffsetsResponse = node.call(&request).await?;
        let found = answer.topics.iter().flat_map(|topic| &topic.partitions);
        let refusal = found.clone().map(|p| p.error_code).find(|&code| code != ErrorCode::NONE);
        match refusal {
            None => return Ok(found.map(|p| (p.partition_index, p.offset)).collect()),
            Some(code) if code.retriable() && now() < deadline => sleep(RETRY_PAUSE).await,
            Some(code) => check(code).context("ListOffsets")?,
        }
    }
}

const TIMEOUT_MS: i32 = 10_000;
const PATIENCE: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(20);
