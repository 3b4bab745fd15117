//! Behaviour: asks to move replicas between the directories of a host (KIP-113). A host has one
//! data directory: naming it changes nothing, any other is LOG_DIR_NOT_FOUND.
//!
//! Versions: 1–2.

use protocol::messages::alter_replica_log_dirs::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult, AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::handlers::describe_log_dirs::absolute;
use crate::shard::TopicRef;

pub async fn handle(cx: Context, request: AlterReplicaLogDirsRequest) -> Outcome {
    let ours = absolute(&cx.slot.host.data_dir);
    let mut results = Vec::new();
    for directory in request.dirs {
        let is_ours = *directory.path == *ours;
        for topic in directory.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for partition_index in topic.partitions {
                let error_code = outcome(&cx, &topic.name, partition_index, is_ours);
                partitions.push(AlterReplicaLogDirPartitionResult { partition_index, error_code });
                pause_if_long().await;
            }
            results.push(AlterReplicaLogDirTopicResult { topic_name: topic.name, partitions });
        }
    }
    let response =
        AlterReplicaLogDirsResponse { results, ..AlterReplicaLogDirsResponse::default() };
    cx.reply_long(response).await
}

fn outcome(cx: &Context, topic: &Str, index: i32, is_ours: bool) -> ErrorCode {
    if !is_ours {
        return ErrorCode::LOG_DIR_NOT_FOUND;
    }
    match cx.slot.find(TopicRef::Name(topic), index) {
        Ok(_) => ErrorCode::NONE,
        Err(misrouted) => misrouted.error,
    }
}
