//! Behaviour: the producers that a partition's leader remembers (KIP-664).
//!
//! Versions: 0.

use protocol::messages::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, PartitionResponse, ProducerState,
    TopicResponse,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::shard::TopicRef;

pub async fn handle(cx: Context, request: DescribeProducersRequest) -> Outcome {
    let mut topics = Vec::with_capacity(request.topics.len());
    let mut described = 0;
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for &index in &topic.partition_indexes {
            // A partition takes little in a request and may take much in an answer.
            let found = match described < PRODUCERS_PER_ANSWER_MAX {
                true => find(&cx, &topic.name, index),
                false => Err(ErrorCode::INVALID_REQUEST),
            };
            partitions.push(match found {
                Ok(active_producers) => {
                    described += active_producers.len();
                    PartitionResponse {
                        partition_index: index,
                        active_producers,
                        ..PartitionResponse::default()
                    }
                }
                Err(error_code) => PartitionResponse {
                    partition_index: index,
                    error_code,
                    error_message: words_for(&cx, &topic.name, error_code),
                    ..PartitionResponse::default()
                },
            });
            pause_if_long().await;
        }
        topics.push(TopicResponse { name: topic.name, partitions });
    }
    cx.reply_long(DescribeProducersResponse { topics, ..DescribeProducersResponse::default() })
        .await
}

/// Words for what the error code leaves open.
fn words_for(cx: &Context, topic: &str, error: ErrorCode) -> Option<Str> {
    if error == ErrorCode::INVALID_REQUEST {
        let words = format!("the answer has {PRODUCERS_PER_ANSWER_MAX} producers; ask for less");
        return Some(Str::from(words));
    }
    let known = cx.slot.image().topic(topic).is_some();
    (!known).then(|| Str::from(format!("topic {topic} does not exist")))
}

fn find(cx: &Context, topic: &Str, index: i32) -> Result<Vec<ProducerState>, ErrorCode> {
    let found = cx.slot.find(TopicRef::Name(topic), index);
    let (_, partition) = found.map_err(|misrouted| misrouted.error)?;
    let log = partition.log().map_err(|why| why.code())?;
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

/// As many as two partitions remember at most.
const PRODUCERS_PER_ANSWER_MAX: usize = 200_000;
