//! Behaviour: the producers that a partition's leader remembers (KIP-664).
//!
//! Versions: 0.

use protocol::messages::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, PartitionResponse, ProducerState,
    TopicResponse,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::Context;
use crate::shard::TopicRef;

pub async fn handle(cx: Context, request: DescribeProducersRequest) -> Outcome {
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partition_indexes.iter();
        let partitions = partitions.map(|&index| match find(&cx, &topic.name, index) {
            Ok(active_producers) => PartitionResponse {
                partition_index: index,
                active_producers,
                ..PartitionResponse::default()
            },
            Err(error_code) => PartitionResponse {
                partition_index: index,
                error_code,
                error_message: unknown_topic(&cx, &topic.name),
                ..PartitionResponse::default()
            },
        });
        let partitions = partitions.collect();
        TopicResponse { name: topic.name, partitions }
    });
    let topics = topics.collect();
    cx.reply(&DescribeProducersResponse { topics, ..DescribeProducersResponse::default() })
}

/// Words for a topic that does not exist; other errors speak for themselves.
fn unknown_topic(cx: &Context, topic: &str) -> Option<Str> {
    let known = cx.slot.image().topic(topic).is_some();
    (!known).then(|| Str::from(format!("topic {topic} does not exist")))
}

fn find(cx: &Context, topic: &Str, index: i32) -> Result<Vec<ProducerState>, ErrorCode> {
    let found = cx.slot.find(TopicRef::Name(topic), index);
    let (_, partition) = found.map_err(|misrouted| misrouted.error)?;
    let log = partition.log().map_err(|_| ErrorCode::KAFKA_STORAGE_ERROR)?;
    let producers = log.producers().into_iter().map(|producer| ProducerState {
        producer_id: producer.producer_id,
        producer_epoch: i32::from(producer.producer_epoch),
        last_sequence: producer.last_sequence,
        last_timestamp: producer.last_timestamp,
        coordinator_epoch: producer.coordinator_epoch,
        current_txn_start_offset: producer.current_txn_start_offset,
    });
    Ok(producers.collect())
}
