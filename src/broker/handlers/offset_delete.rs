//! Behaviour: deletes committed offsets of topics that the group does not subscribe to (KIP-496).
//! What concerns the group is said once, and nothing is deleted then.
//!
//! Versions: 0.

use protocol::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestTopic, OffsetDeleteResponse,
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::groups::{Mark, Pump};

pub async fn handle(cx: Context, request: OffsetDeleteRequest) -> Outcome {
    let group = &request.group_id;
    let pump = match cx.slot.groups.find(&cx.slot, group) {
        _ if group.is_empty() => return refuse(&cx, ErrorCode::INVALID_GROUP_ID),
        Ok(pump) => pump,
        Err(error) => return refuse(&cx, error),
    };
    let (topics, mark) = delete_all(&cx, &pump, request).await;
    Outcome::Later(Box::pin(async move {
        match pump.durable(mark).await.and(topics) {
            Err(error) => refuse(&cx, error),
            Ok(topics) => {
                cx.reply_long(OffsetDeleteResponse { topics, ..Default::default() }).await
            }
        }
    }))
}

/// The answer, and when it is durable.
async fn delete_all(
    cx: &Context,
    pump: &Pump,
    request: OffsetDeleteRequest,
) -> (Result<Vec<OffsetDeleteResponseTopic>, ErrorCode>, Mark) {
    let group = &request.group_id;
    // Whether anything of this group may be deleted at all.
    let (refused, mut mark) = decide(cx, pump, group, &[]);
    if let Err(error) = refused {
        return (Err(error), mark);
    }
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        match delete(cx, pump, group, topic, &mut mark).await {
            Ok(topic) => topics.push(topic),
            Err(error) => return (Err(error), mark),
        }
        pause_if_long().await;
    }
    (Ok(topics), mark)
}

fn decide(
    cx: &Context,
    pump: &Pump,
    group: &Str,
    named: &[(Str, i32)],
) -> (Result<Vec<ErrorCode>, ErrorCode>, Mark) {
    pump.decide(&cx.slot, |coordinator, _| coordinator.delete_offsets(group, named))
}

/// The offsets of one topic, in pieces that take no long to decide about.
async fn delete(
    cx: &Context,
    pump: &Pump,
    group: &Str,
    topic: OffsetDeleteRequestTopic,
    mark: &mut Mark,
) -> Result<OffsetDeleteResponseTopic, ErrorCode> {
    let image = cx.slot.image();
    let found = image.topic(&topic.name);
    let exists = |index: i32| found.is_some_and(|topic| topic.partition(index).is_some());
    let mut partitions = Vec::with_capacity(topic.partitions.len());
    for some in topic.partitions.chunks(PIECE_PARTITIONS) {
        // It may have changed between two pieces.
        pump.check_serving()?;
        let indexes = some.iter().map(|each| each.partition_index);
        let named = indexes.clone().filter(|&index| exists(index));
        let named: Vec<_> = named.map(|index| (topic.name.clone(), index)).collect();
        let (outcomes, last) = decide(cx, pump, group, &named);
        *mark = last;
        let mut outcomes = outcomes?.into_iter();
        partitions.extend(indexes.map(|index| OffsetDeleteResponsePartition {
            partition_index: index,
            error_code: match exists(index) {
                true => outcomes.next().unwrap_or_default(),
                false => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            },
        }));
        pause_if_long().await;
    }
    Ok(OffsetDeleteResponseTopic { name: topic.name.detach(), partitions })
}

fn refuse(cx: &Context, error_code: ErrorCode) -> Outcome {
    cx.reply(&OffsetDeleteResponse { error_code, ..OffsetDeleteResponse::default() })
}

/// Partitions that are decided about in one go.
const PIECE_PARTITIONS: usize = 1000;
