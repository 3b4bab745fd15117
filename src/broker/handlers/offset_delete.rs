//! Behaviour: deletes committed offsets of topics that the group does not subscribe to (KIP-496).
//!
//! Versions: 0.

use protocol::ErrorCode;
use protocol::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteResponse, OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
};

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: OffsetDeleteRequest) -> Outcome {
    let pump = match cx.slot.groups.find(&cx.slot, &request.group_id) {
        _ if request.group_id.is_empty() => return refuse(&cx, ErrorCode::INVALID_GROUP_ID),
        Ok(pump) => pump,
        Err(error) => return refuse(&cx, error),
    };
    let image = cx.slot.image();
    let all = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|it| (topic.name.clone(), it.partition_index))
    });
    let exists = |(topic, index): &(protocol::Str, i32)| {
        image.topic(topic).is_some_and(|topic| topic.partition(*index).is_some())
    };
    let named: Vec<_> = all.filter(exists).collect();
    let (outcomes, mark) = pump
        .decide(&cx.slot, |coordinator, _| coordinator.delete_offsets(&request.group_id, &named));
    Outcome::Later(Box::pin(async move {
        match pump.durable(mark).await.and(outcomes) {
            Err(error) => refuse(&cx, error),
            Ok(outcomes) => {
                let done: Vec<_> = named.into_iter().zip(outcomes).collect();
                cx.reply(&answer(request, &done))
            }
        }
    }))
}

fn answer(
    request: OffsetDeleteRequest,
    done: &[((protocol::Str, i32), ErrorCode)],
) -> OffsetDeleteResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let index = partition.partition_index;
            let found = done.iter().find(|((name, at), _)| *name == topic.name && *at == index);
            OffsetDeleteResponsePartition {
                partition_index: index,
                error_code: found.map_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, |(_, it)| *it),
            }
        });
        let partitions = partitions.collect();
        OffsetDeleteResponseTopic { name: topic.name, partitions }
    });
    OffsetDeleteResponse { topics: topics.collect(), ..OffsetDeleteResponse::default() }
}

fn refuse(cx: &Context, error_code: ErrorCode) -> Outcome {
    cx.reply(&OffsetDeleteResponse { error_code, ..OffsetDeleteResponse::default() })
}
