//! Behaviour: reads what groups have committed; null topics stand for all. What was never
//! committed is -1 without an error. Only what is durable is told.
//!
//! Versions: 1–10. 2 asks for all topics, 8 for several groups (KIP-709), 10 by topic id.

use coordinator::CommittedOffset;
use protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponse,
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::groups::Pump;

pub async fn handle(cx: Context, request: OffsetFetchRequest) -> Outcome {
    let several = cx.version() >= FIRST_VERSION_WITH_SEVERAL;
    let groups = if several { request.groups } else { vec![only_group(request)] };
    Outcome::Later(Box::pin(async move {
        let mut answers = Vec::with_capacity(groups.len());
        for group in groups {
            answers.push(fetch(&cx, group).await);
            pause_if_long().await;
        }
        match answers.pop() {
            Some(only) if !several => cx.reply_long(flat(only, cx.version()).await).await,
            last => {
                answers.extend(last);
                cx.reply_long(OffsetFetchResponse { groups: answers, ..Default::default() }).await
            }
        }
    }))
}

fn only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup {
    let topics = request.topics.map(|topics| {
        let each = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name,
            partition_indexes: topic.partition_indexes,
            ..OffsetFetchRequestTopics::default()
        });
        each.collect()
    });
    OffsetFetchRequestGroup { group_id: request.group_id, topics, ..Default::default() }
}

async fn fetch(cx: &Context, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup {
    let group_id = group.group_id.clone();
    // Before there was an error of the group, each partition had it.
    let asked = (cx.version() < FIRST_VERSION_WITH_GROUP_ERROR).then(|| group.topics.clone());
    let outcome = match cx.slot.groups.find(&cx.slot, &group_id) {
        Ok(pump) => read(cx, &pump, group).await,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(topics) => OffsetFetchResponseGroup { group_id, topics, error_code: ErrorCode::NONE },
        Err(error_code) => {
            let topics = asked.flatten().unwrap_or_default().into_iter();
            let topics = topics.map(|topic| refused(topic, error_code)).collect();
            OffsetFetchResponseGroup { group_id, topics, error_code }
        }
    }
}

async fn read(
    cx: &Context,
    pump: &Pump,
    group: OffsetFetchRequestGroup,
) -> Result<Vec<OffsetFetchResponseTopics>, ErrorCode> {
    let member = group.member_id.as_ref();
    let ((refused, begun), mark) = pump.look(|coordinator| {
        let refused = coordinator.check_fetch(&group.group_id, member, group.member_epoch);
        (refused, coordinator.deletions_begun())
    });
    if let Err(error) = refused {
        pump.durable(mark).await?;
        return Err(error);
    }
    let topics = match group.topics {
        Some(asked) => read_asked(cx, pump, &group.group_id, asked).await,
        None => read_all(cx, pump, &group.group_id).await,
    };
    // What was read between two pauses is of one life of the pump and of the group, or nothing is
    // told.
    let (whole, last) = pump.look(|coordinator| coordinator.check_read(&group.group_id, begun));
    pump.durable(mark).await?;
    pump.durable(last).await?;
    whole.map(|()| topics)
}

async fn read_asked(
    cx: &Context,
    pump: &Pump,
    group: &Str,
    asked: Vec<OffsetFetchRequestTopics>,
) -> Vec<OffsetFetchResponseTopics> {
    let image = cx.slot.image();
    let by_id = cx.version() >= FIRST_VERSION_WITH_IDS;
    let mut topics = Vec::with_capacity(asked.len());
    for topic in asked {
        let found = image.topic_by_id(topic.topic_id).map(|it| it.name.clone());
        let name = if by_id { found } else { Some(topic.name.clone()) };
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for indexes in topic.partition_indexes.chunks(PIECE_PARTITIONS) {
            pump.look(|coordinator| {
                partitions.extend(indexes.iter().map(|&index| match &name {
                    Some(name) => shown(index, coordinator.committed(group, name, index)),
                    None => unknown(index),
                }));
            });
            pause_if_long().await;
        }
        let (name, topic_id) = (topic.name, topic.topic_id);
        topics.push(OffsetFetchResponseTopics { name, topic_id, partitions });
        pause_if_long().await;
    }
    topics
}

async fn read_all(cx: &Context, pump: &Pump, group: &Str) -> Vec<OffsetFetchResponseTopics> {
    let image = cx.slot.image();
    let by_id = cx.version() >= FIRST_VERSION_WITH_IDS;
    let (names, _) =
        pump.look(|coordinator| coordinator.committed_topics(group).cloned().collect::<Vec<Str>>());
    let mut topics = Vec::with_capacity(names.len());
    for name in names {
        let topic_id = image.topic(&name).map(|it| it.id).unwrap_or_default();
        if by_id && topic_id.is_zero() {
            continue;
        }
        let partitions = read_topic(pump, group, &name).await;
        topics.push(OffsetFetchResponseTopics { name, topic_id, partitions });
    }
    topics
}

/// Every committed offset of a group in one topic.
async fn read_topic(pump: &Pump, group: &Str, topic: &Str) -> Vec<OffsetFetchResponsePartitions> {
    let mut partitions: Vec<OffsetFetchResponsePartitions> = Vec::new();
    loop {
        let next = partitions.last().map_or(0, |last| last.partition_index.saturating_add(1));
        let (found, _) = pump.look(|coordinator| {
            let all = coordinator.committed_in(group, topic);
            let some = all.map(|all| all.range(next..).take(PIECE_PARTITIONS));
            let before = partitions.len();
            partitions.extend(some.into_iter().flatten().map(|(&at, it)| shown(at, Some(it))));
            partitions.len() - before
        });
        pause_if_long().await;
        if found < PIECE_PARTITIONS {
            return partitions;
        }
    }
}

fn shown(index: i32, committed: Option<&CommittedOffset>) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index: index,
        committed_offset: committed.map_or(-1, |it| it.offset),
        committed_leader_epoch: committed.map_or(-1, |it| it.leader_epoch),
        metadata: Some(committed.map_or(Str::EMPTY, |it| it.metadata.clone())),
        error_code: ErrorCode::NONE,
    }
}

fn refused(topic: OffsetFetchRequestTopics, error_code: ErrorCode) -> OffsetFetchResponseTopics {
    let partitions = topic.partition_indexes.into_iter();
    let partitions = partitions
        .map(|index| OffsetFetchResponsePartitions { error_code, ..shown(index, None) })
        .collect();
    OffsetFetchResponseTopics { name: topic.name, partitions, ..Default::default() }
}

fn unknown(index: i32) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions { error_code: ErrorCode::UNKNOWN_TOPIC_ID, ..shown(index, None) }
}

/// As it was answered before several groups could be asked for.
async fn flat(group: OffsetFetchResponseGroup, version: i16) -> OffsetFetchResponse {
    let mut topics = Vec::with_capacity(group.topics.len());
    for topic in group.topics {
        let mut left = topic.partitions.into_iter();
        let mut partitions = Vec::with_capacity(left.len());
        while left.len() > 0 {
            let some = left.by_ref().take(PIECE_PARTITIONS);
            partitions.extend(some.map(|partition| OffsetFetchResponsePartition {
                partition_index: partition.partition_index,
                committed_offset: partition.committed_offset,
                committed_leader_epoch: partition.committed_leader_epoch,
                metadata: partition.metadata,
                error_code: partition.error_code,
            }));
            pause_if_long().await;
        }
        topics.push(OffsetFetchResponseTopic { name: topic.name, partitions });
    }
    let has_error = version >= FIRST_VERSION_WITH_GROUP_ERROR;
    let error_code = if has_error { group.error_code } else { ErrorCode::NONE };
    OffsetFetchResponse { topics, error_code, ..Default::default() }
}

const FIRST_VERSION_WITH_GROUP_ERROR: i16 = 2;
const FIRST_VERSION_WITH_SEVERAL: i16 = 8;
const FIRST_VERSION_WITH_IDS: i16 = 10;
/// Partitions that are looked up in one go.
const PIECE_PARTITIONS: usize = 1000;
