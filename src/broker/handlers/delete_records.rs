//! Behaviour: moves the log start offset forward; −1 stands for the high watermark. Whole segments
//! below it go away in the background. Internal topics are refused.
//!
//! Versions: 0–2, flexible from 2 (KIP-107).

use std::collections::BTreeMap;

use metadata::topic_name::is_internal;
use protocol::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsRequest,
    DeleteRecordsResponse, DeleteRecordsTopicResult,
};
use protocol::{ErrorCode, Str};
use storage::DeleteRecordsError;

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::shard::TopicRef;

pub async fn handle(cx: Context, request: DeleteRecordsRequest) -> Outcome {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        // Named twice, the last mention counts.
        let mut last: BTreeMap<i32, usize> = BTreeMap::new();
        for (place, asked) in topic.partitions.iter().enumerate() {
            last.insert(asked.partition_index, place);
            pause_if_long().await;
        }
        for (place, asked) in topic.partitions.iter().enumerate() {
            if last[&asked.partition_index] != place {
                continue;
            }
            let (low_watermark, error_code) = match delete(&cx, &topic.name, asked).await {
                Ok(start) => (start, ErrorCode::NONE),
                Err(error) => (-1, error),
            };
            partitions.push(DeleteRecordsPartitionResult {
                partition_index: asked.partition_index,
                low_watermark,
                error_code,
            });
            pause_if_long().await;
        }
        topics.push(DeleteRecordsTopicResult { name: topic.name, partitions });
    }
    cx.reply_long(DeleteRecordsResponse { topics, ..DeleteRecordsResponse::default() }).await
}

async fn delete(
    cx: &Context,
    topic: &Str,
    asked: &DeleteRecordsPartition,
) -> Result<i64, ErrorCode> {
    if is_internal(topic) {
        return Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
    let found = cx.slot.find(TopicRef::Name(topic), asked.partition_index);
    let (local, partition) = found.map_err(|misrouted| misrouted.error)?;
    if !local.settings().cleanup_policy.delete {
        return Err(ErrorCode::POLICY_VIOLATION);
    }
    let log = partition.log().map_err(|why| why.code())?;
    let to = if asked.offset == TO_HIGH_WATERMARK { log.high_watermark() } else { asked.offset };
    match log.delete_records(to).await {
        Ok(start) => Ok(start),
        Err(DeleteRecordsError::OutOfRange { .. }) => Err(ErrorCode::OFFSET_OUT_OF_RANGE),
        Err(DeleteRecordsError::Unavailable(_)) => Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
    }
}

const TO_HIGH_WATERMARK: i64 = -1;
