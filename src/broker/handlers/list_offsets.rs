//! Behaviour: the offset at a timestamp, or at one of the marks −1 latest, −2 earliest, −3 largest
//! timestamp (KIP-734), −4 earliest local (KIP-405), −5 last tiered (KIP-1005), −6 earliest pending
//! upload (KIP-1023). Nothing is tiered here, so −5 and −6 are unknown and −4 is the log start.
//!
//! Versions: 1–11. 4 checks and returns leader epochs (KIP-320); 7, 8, 9 and 11 bring the marks; a
//! mark newer than the version is UNSUPPORTED_VERSION for its partition.

use std::collections::BTreeMap;

use protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopicResponse,
};
use protocol::{ErrorCode, Str};
use storage::{Log, ReadError};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::shard::TopicRef;
use crate::slot::Slot;

/// An offset and what belongs to it.
#[derive(Clone, Copy)]
struct Found {
    offset: i64,
    timestamp: i64,
    leader_epoch: i32,
}

pub async fn handle(cx: Context, request: ListOffsetsRequest) -> Outcome {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        let mut named: BTreeMap<i32, usize> = BTreeMap::new();
        for asked in &topic.partitions {
            *named.entry(asked.partition_index).or_default() += 1;
            pause_if_long().await;
        }
        for asked in &topic.partitions {
            let index = asked.partition_index;
            match named.insert(index, ANSWERED) {
                Some(1) => {
                    let found = find(&cx, &topic.name, asked, request.isolation_level).await;
                    partitions.push(answer(index, found));
                    pause_if_long().await;
                }
                Some(ANSWERED) | None => {}
                // Named several times, it is refused once.
                Some(_) => partitions.push(answer(index, Err(ErrorCode::INVALID_REQUEST))),
            }
        }
        topics.push(ListOffsetsTopicResponse { name: topic.name, partitions });
    }
    cx.reply_long(ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }).await
}

async fn find(
    cx: &Context,
    topic: &Str,
    asked: &ListOffsetsPartition,
    isolation_level: i8,
) -> Result<Found, ErrorCode> {
    if !(0..=1).contains(&isolation_level) {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    let found = cx.slot.find(TopicRef::Name(topic), asked.partition_index);
    let (_, partition) = found.map_err(|misrouted| misrouted.error)?;
    Slot::check_epoch(&partition, asked.current_leader_epoch)?;
    let log = partition.log().map_err(|why| why.code())?;
    let wanted = first_version_of(asked.timestamp);
    if cx.version() < wanted {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    at(&log, asked.timestamp).await
}

async fn at(log: &Log, timestamp: i64) -> Result<Found, ErrorCode> {
    let epoch_at = |offset: i64| log.epoch_at(offset).unwrap_or(-1);
    let mark = |offset: i64| Found { offset, timestamp: -1, leader_epoch: epoch_at(offset) };
    match timestamp {
        LATEST => Ok(Found { leader_epoch: log.latest_epoch(), ..mark(log.high_watermark()) }),
        EARLIEST | EARLIEST_LOCAL => Ok(mark(log.log_start_offset())),
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => Ok(NOWHERE),
        MAX_TIMESTAMP => looked_up(log.max_timestamp().await),
        0.. => looked_up(log.offset_for_timestamp(timestamp, log.high_watermark()).await),
        _ => Err(ErrorCode::UNSUPPORTED_VERSION),
    }
}

fn looked_up(
    found: Result<Option<storage::TimestampOffset>, ReadError>,
) -> Result<Found, ErrorCode> {
    match found {
        Ok(Some(found)) => Ok(Found {
            offset: found.offset,
            timestamp: found.timestamp,
            leader_epoch: found.leader_epoch,
        }),
        Ok(None) => Ok(NOWHERE),
        Err(ReadError::Corrupt { .. }) => Err(ErrorCode::CORRUPT_MESSAGE),
        Err(ReadError::Unavailable(_)) => Err(ErrorCode::NOT_LEADER_OR_FOLLOWER),
        Err(_) => Err(ErrorCode::KAFKA_STORAGE_ERROR),
    }
}

fn answer(index: i32, found: Result<Found, ErrorCode>) -> ListOffsetsPartitionResponse {
    match found {
        Ok(found) => ListOffsetsPartitionResponse {
            partition_index: index,
            error_code: ErrorCode::NONE,
            timestamp: found.timestamp,
            offset: found.offset,
            leader_epoch: found.leader_epoch,
        },
        Err(error_code) => ListOffsetsPartitionResponse {
            partition_index: index,
            error_code,
            ..ListOffsetsPartitionResponse::default()
        },
    }
}

/// The first version that knows a mark.
fn first_version_of(timestamp: i64) -> i16 {
    match timestamp {
        MAX_TIMESTAMP => 7,
        EARLIEST_LOCAL => 8,
        LATEST_TIERED => 9,
        EARLIEST_PENDING_UPLOAD => 11,
        _ => 1,
    }
}

const ANSWERED: usize = 0;
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;
const NOWHERE: Found = Found { offset: -1, timestamp: -1, leader_epoch: -1 };
