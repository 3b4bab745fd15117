//! Behaviour: size and lag of the logs that this node has, and the space of the file system. A
//! node answers for its own slot; what it does not have is left out, as in Kafka.
//!
//! Versions: 1–5. 3 has an error of its own, 4 the space (KIP-827), 5 cordoned directories
//! (KIP-1066).

use std::collections::{BTreeMap, BTreeSet};

use protocol::messages::describe_log_dirs::{
    DescribeLogDirsPartition, DescribeLogDirsRequest, DescribeLogDirsResponse,
    DescribeLogDirsResult, DescribeLogDirsTopic,
};
use protocol::{ErrorCode, Str};
use runtime::fs;

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};

pub async fn handle(cx: Context, request: DescribeLogDirsRequest) -> Outcome {
    let mut asked: Option<BTreeMap<Str, BTreeSet<i32>>> =
        request.topics.as_ref().map(|_| BTreeMap::new());
    for topic in request.topics.into_iter().flatten() {
        let asked = asked.get_or_insert_default().entry(topic.topic).or_default();
        for index in topic.partitions {
            asked.insert(index);
            pause_if_long().await;
        }
    }
    let directory = &cx.slot.host.data_dir;
    let mut result = DescribeLogDirsResult {
        log_dir: Str::from(absolute(directory)),
        topics: topics(&cx, asked.as_ref()).await,
        ..DescribeLogDirsResult::default()
    };
    match fs::info(directory).await {
        Ok(info) => {
            result.total_bytes = info.total as i64;
            result.usable_bytes = info.free as i64;
        }
        Err(why) => {
            tracing::warn!(%why, "cannot read the space of the data directory");
            result.error_code = ErrorCode::KAFKA_STORAGE_ERROR;
        }
    }
    let results = vec![result];
    cx.reply_long(DescribeLogDirsResponse { results, ..DescribeLogDirsResponse::default() }).await
}

pub(super) fn absolute(path: &std::path::Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

async fn topics(
    cx: &Context,
    asked: Option<&BTreeMap<Str, BTreeSet<i32>>>,
) -> Vec<DescribeLogDirsTopic> {
    let mut out = Vec::new();
    for topic in cx.slot.shard.topics() {
        let only = match asked {
            None => None,
            Some(asked) => match asked.get(&topic.name) {
                Some(only) => Some(only),
                None => continue,
            },
        };
        let mut partitions = Vec::new();
        for partition in topic.partitions() {
            let wanted = only.is_none_or(|only| only.contains(&partition.index));
            if let Some(log) = partition.log().ok().filter(|_| wanted) {
                partitions.push(DescribeLogDirsPartition {
                    partition_index: partition.index,
                    partition_size: log.size_bytes() as i64,
                    ..DescribeLogDirsPartition::default()
                });
            }
            pause_if_long().await;
        }
        if !partitions.is_empty() {
            out.push(DescribeLogDirsTopic { name: topic.name.clone(), partitions });
        }
    }
    out
}
