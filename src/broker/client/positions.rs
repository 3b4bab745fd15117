//! Where partitions begin and end, and when a record was written.

use std::collections::BTreeMap;

use anyhow::Context;
use protocol::batch::{Batches, HEADER_BYTES, RecordIter, decompress};
use protocol::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use protocol::messages::metadata::MetadataResponseTopic;
use protocol::{ErrorCode, Str};

use crate::client::{Client, check};

/// Marks that are asked for like timestamps.
pub const LATEST: i64 = -1;
pub const EARLIEST: i64 = -2;

/// For every partition of a topic the offset at a mark, or of the first record that is not older
/// than a timestamp: -1 where there is none.
pub fn positions(
    client: &mut Client,
    topic: &MetadataResponseTopic,
    timestamp: i64,
) -> anyhow::Result<BTreeMap<i32, i64>> {
    let mut of_leader: BTreeMap<i32, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for partition in &topic.partitions {
        let partition_index = partition.partition_index;
        let asked = ListOffsetsPartition { partition_index, timestamp, ..Default::default() };
        of_leader.entry(partition.leader_id).or_default().push(asked);
    }
    let mut positions = BTreeMap::new();
    for (leader, partitions) in of_leader {
        let asked = ListOffsetsTopic { name: topic.name.clone().unwrap_or_default(), partitions };
        let request =
            ListOffsetsRequest { replica_id: -1, topics: vec![asked], ..Default::default() };
        let answer: ListOffsetsResponse = client.ask_node(leader, &request)?;
        for found in answer.topics.into_iter().flat_map(|it| it.partitions) {
            check(found.error_code, None)?;
            positions.insert(found.partition_index, found.offset);
        }
    }
    Ok(positions)
}

/// The timestamp of the first record at an offset or behind it; none when there is no record.
pub fn written_ms(
    client: &mut Client,
    topic: &MetadataResponseTopic,
    index: i32,
    offset: i64,
) -> anyhow::Result<Option<i64>> {
    let partition = topic.partitions.iter().find(|it| it.partition_index == index);
    let leader = partition.context("the topic has no such partition")?.leader_id;
    let asked = FetchPartition {
        partition: index,
        fetch_offset: offset,
        partition_max_bytes: 1,
        ..FetchPartition::default()
    };
    let topics = vec![FetchTopic {
        topic: topic.name.clone().unwrap_or_default(),
        topic_id: topic.topic_id,
        partitions: vec![asked],
    }];
    let request = FetchRequest { min_bytes: 0, max_bytes: 1, topics, ..FetchRequest::default() };
    let answer: FetchResponse = client.ask_node(leader, &request)?;
    check(answer.error_code, None)?;
    let found = answer.responses.into_iter().flat_map(|it| it.partitions).next();
    let found = found.context("the answer names no partition")?;
    if found.error_code == ErrorCode::OFFSET_OUT_OF_RANGE {
        return Ok(None);
    }
    check(found.error_code, None)?;
    for batch in Batches::of(found.records.unwrap_or_default().into_bytes()) {
        let Ok((header, bytes)) = batch else { break };
        let Ok(codec) = header.compression() else { break };
        let body = decompress(codec, &bytes[HEADER_BYTES..], BODY_BYTES_MAX)?;
        for record in RecordIter::new(&body, header.count) {
            let record = record?;
            if header.base_offset + i64::from(record.offset_delta) >= offset {
                return Ok(Some(header.record_timestamp(record.timestamp_delta)));
            }
        }
    }
    Ok(None)
}

/// The name of a topic, where a version gives only its id.
pub fn topic_name(client: &mut Client, name: &Str, id: protocol::Uuid) -> anyhow::Result<Str> {
    if !name.is_empty() {
        return Ok(name.clone());
    }
    let known = client.metadata(&[])?.topics;
    let found = known.into_iter().find(|it| it.topic_id == id).and_then(|it| it.name);
    Ok(found.unwrap_or_default())
}

const BODY_BYTES_MAX: usize = 256 << 20;
