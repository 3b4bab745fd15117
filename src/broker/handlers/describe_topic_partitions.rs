//! Behaviour: partitions of topics in the order of topic names, at most a limit of them, with a
//! cursor at the first one that was left out (KIP-966).
//!
//! Versions: 0. A limit of 0 or below means the default. A cursor outside the topics asked for is
//! INVALID_REQUEST for each.

use std::collections::BTreeSet;

use metadata::topic_name::{check_topic_name, is_internal};
use metadata::{Image, Partition, Topic};
use protocol::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::handlers::describe_cluster::TOPIC_OPERATIONS;

pub async fn handle(cx: Context, request: DescribeTopicPartitionsRequest) -> Outcome {
    let image = cx.slot.image();
    let mut names: BTreeSet<Str> = match request.topics.is_empty() {
        true => image.topic_names().cloned().collect(),
        false => BTreeSet::new(),
    };
    for topic in request.topics {
        names.insert(topic.name);
        pause_if_long().await;
    }
    let mut first_partition = 0;
    if let Some(cursor) = &request.cursor {
        if cursor.partition_index < 0 {
            return cx.reply_long(refused(names)).await;
        }
        names = names.split_off(&cursor.topic_name);
        if names.contains(&cursor.topic_name) {
            first_partition = cursor.partition_index;
        }
    }
    let most = cx.slot.settings().max_request_partition_size_limit.max(1) as usize;
    let limit = match request.response_partition_limit {
        ..=0 => PARTITIONS_DEFAULT.min(most),
        asked => (asked as usize).min(most),
    };
    cx.reply_long(describe(&image, names, first_partition, limit).await).await
}

async fn describe(
    image: &Image,
    names: BTreeSet<Str>,
    first_partition: i32,
    limit: usize,
) -> DescribeTopicPartitionsResponse {
    let mut response = DescribeTopicPartitionsResponse::default();
    let mut left = limit;
    let mut from = first_partition;
    for name in names {
        pause_if_long().await;
        let Some(topic) = image.topic(&name) else {
            let error = match check_topic_name(&name) {
                Ok(()) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
            };
            response.topics.push(DescribeTopicPartitionsResponseTopic {
                topic_authorized_operations: TOPIC_OPERATIONS,
                ..failed(name, error)
            });
            continue;
        };
        if left == 0 {
            response.next_cursor = Some(Cursor { topic_name: name, partition_index: from });
            break;
        }
        let rest = topic.indexed().skip(from as usize);
        let partitions: Vec<_> = rest.take(left).map(|(at, it)| describe_one(at, it)).collect();
        left -= partitions.len();
        let next = from + partitions.len() as i32;
        from = 0;
        response.topics.push(of_topic(topic, partitions));
        if (next as usize) < topic.partitions.len() {
            response.next_cursor = Some(Cursor { topic_name: name, partition_index: next });
            break;
        }
    }
    response
}

fn of_topic(
    topic: &Topic,
    partitions: Vec<DescribeTopicPartitionsResponsePartition>,
) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::NONE,
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: is_internal(&topic.name),
        partitions,
        topic_authorized_operations: TOPIC_OPERATIONS,
    }
}

fn describe_one(index: i32, partition: &Partition) -> DescribeTopicPartitionsResponsePartition {
    DescribeTopicPartitionsResponsePartition {
        error_code: match partition.leader {
            Some(_) => ErrorCode::NONE,
            None => ErrorCode::LEADER_NOT_AVAILABLE,
        },
        partition_index: index,
        leader_id: partition.leader_node().map_or(-1, |node| node.0),
        leader_epoch: partition.leader_epoch,
        replica_nodes: partition.replicas.iter().map(|replica| replica.node().0).collect(),
        isr_nodes: partition.in_sync_nodes().map(|node| node.0).collect(),
        eligible_leader_replicas: Some(Vec::new()),
        last_known_elr: Some(Vec::new()),
        offline_replicas: Vec::new(),
    }
}

fn refused(names: BTreeSet<Str>) -> DescribeTopicPartitionsResponse {
    let topics = names.into_iter().map(|name| failed(name, ErrorCode::INVALID_REQUEST));
    let topics = topics.collect();
    DescribeTopicPartitionsResponse { topics, ..DescribeTopicPartitionsResponse::default() }
}

fn failed(name: Str, error_code: ErrorCode) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code,
        name: Some(name),
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

const PARTITIONS_DEFAULT: usize = 2000;
