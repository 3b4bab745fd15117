//! Behaviour: where a leader epoch ends in the log (KIP-101, KIP-279): the log end for the current
//! epoch, the start of the next one for an older, and nothing for one that is not known.
//!
//! Versions: 2–4. Consumers use it to notice that their log was truncated (KIP-320).

use protocol::ErrorCode;
use protocol::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition, OffsetForLeaderTopicResult,
};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::shard::TopicRef;
use crate::slot::Slot;

pub async fn handle(cx: Context, request: OffsetForLeaderEpochRequest) -> Outcome {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let found = find(&cx, &topic.topic, asked);
            let (error_code, (leader_epoch, end_offset)) = match found {
                Ok(end) => (ErrorCode::NONE, end),
                Err(error) => (error, (-1, -1)),
            };
            let partition = asked.partition;
            partitions.push(EpochEndOffset { error_code, partition, leader_epoch, end_offset });
            pause_if_long().await;
        }
        topics.push(OffsetForLeaderTopicResult { topic: topic.topic, partitions });
    }
    cx.reply_long(OffsetForLeaderEpochResponse {
        topics,
        ..OffsetForLeaderEpochResponse::default()
    })
    .await
}

fn find(
    cx: &Context,
    topic: &str,
    asked: &OffsetForLeaderPartition,
) -> Result<(i32, i64), ErrorCode> {
    let found = cx.slot.find(TopicRef::Name(topic), asked.partition);
    let (_, partition) = found.map_err(|misrouted| misrouted.error)?;
    Slot::check_epoch(&partition, asked.current_leader_epoch)?;
    let log = partition.log().map_err(|why| why.code())?;
    let end = log.end_offset_for_epoch(asked.leader_epoch);
    Ok((end.epoch, end.end_offset))
}
