//! Fetching of several partitions: one request for each node that leads some of them.

use std::collections::BTreeMap;

use anyhow::Context;
use bytes::Bytes;
use protocol::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData,
};
use protocol::messages::metadata::MetadataResponseTopic;
use protocol::{ErrorCode, Str, Uuid};

use crate::client::positions::{EARLIEST, LATEST, positions};
use crate::client::{Client, check};

/// How far one partition is read.
pub(super) struct Reading {
    pub next: i64,
    /// Where to stop, if anywhere.
    pub end: Option<i64>,
    /// Batches that were fetched and are not printed yet.
    pub kept: Bytes,
}

impl Reading {
    pub fn new(next: i64, end: Option<i64>) -> Reading {
        Reading { next, end, kept: Bytes::new() }
    }
}

/// The partitions that are read.
pub(super) struct Reader {
    topic: Str,
    topic_id: Uuid,
    leaders: BTreeMap<i32, i32>,
    bytes_max: i32,
    /// Fetches so far: each begins with another partition, so that none is always the last.
    turns: usize,
    pub readings: BTreeMap<i32, Reading>,
}

impl Reader {
    pub fn new(topic: &MetadataResponseTopic, slowly: bool) -> Reader {
        Reader {
            topic: topic.name.clone().unwrap_or_default(),
            topic_id: topic.topic_id,
            leaders: leaders(topic),
            bytes_max: if slowly { SLOW_FETCH_BYTES } else { FETCH_BYTES },
            turns: 0,
            readings: BTreeMap::new(),
        }
    }

    pub fn topic(&self) -> (&Str, Uuid) {
        (&self.topic, self.topic_id)
    }

    /// Nothing is left to read.
    pub fn is_at_end(&self) -> bool {
        self.readings.values().all(|it| it.end.is_some_and(|end| it.next >= end))
    }

    /// Batches of each partition from the next offset on: those that were kept, and of the others
    /// what there is. Waits up to half a second for some.
    pub fn fetch(&mut self, client: &mut Client) -> anyhow::Result<Vec<(i32, Bytes)>> {
        let mut of_leader: BTreeMap<i32, Vec<FetchPartition>> = BTreeMap::new();
        let first = self.turns % self.readings.len().max(1);
        self.turns += 1;
        let (mut found, mut moved) = (Vec::new(), Vec::new());
        let (last, first): (Vec<_>, Vec<_>) =
            self.readings.iter_mut().enumerate().partition(|(place, _)| *place < first);
        for (_, (&partition, reading)) in first.into_iter().chain(last) {
            let kept = std::mem::take(&mut reading.kept);
            if reading.end.is_some_and(|end| reading.next >= end) {
                continue;
            }
            if !kept.is_empty() {
                found.push((partition, kept));
                continue;
            }
            let leader = self.leaders.get(&partition).copied().unwrap_or(-1);
            of_leader.entry(leader).or_default().push(FetchPartition {
                partition,
                fetch_offset: reading.next,
                partition_max_bytes: self.bytes_max,
                ..FetchPartition::default()
            });
        }
        let waits = if found.is_empty() { WAIT_MS } else { 0 };
        let max_wait_ms = waits / of_leader.len().max(1) as i32;
        for (leader, partitions) in of_leader {
            let (topic, topic_id) = (self.topic.clone(), self.topic_id);
            let request = FetchRequest {
                max_wait_ms,
                min_bytes: 1,
                max_bytes: self.bytes_max,
                topics: vec![FetchTopic { topic, topic_id, partitions }],
                ..FetchRequest::default()
            };
            let answer: FetchResponse = client.ask_node(leader, &request)?;
            check(answer.error_code, None)?;
            for data in answer.responses.into_iter().flat_map(|it| it.partitions) {
                match data.error_code {
                    ErrorCode::NONE => {
                        let records = data.records.unwrap_or_default().into_bytes();
                        found.push((data.partition_index, records));
                    }
                    _ => moved.push(data),
                }
            }
        }
        moved.into_iter().try_for_each(|data| self.recover(client, &data))?;
        Ok(found)
    }

    /// Another node leads now, or what was to be read is gone.
    fn recover(&mut self, client: &mut Client, data: &PartitionData) -> anyhow::Result<()> {
        let index = data.partition_index;
        let topic = client.topic(&self.topic)?;
        self.leaders = leaders(&topic);
        match data.error_code {
            ErrorCode::OFFSET_OUT_OF_RANGE => {
                let first = positions(client, &topic, EARLIEST)?;
                let last = positions(client, &topic, LATEST)?;
                if let Some(reading) = self.readings.get_mut(&index) {
                    let start = first.get(&index).copied().unwrap_or(0);
                    let end = last.get(&index).copied().unwrap_or(start);
                    let next = reading.next.clamp(start, end);
                    let name = &self.topic;
                    eprintln!("{name}-{index} has no offset {}; going on at {next}", reading.next);
                    reading.next = next;
                }
                Ok(())
            }
            error if error.retriable() => Ok(()),
            error => check(error, None).with_context(|| format!("partition {index}")),
        }
    }
}

fn leaders(topic: &MetadataResponseTopic) -> BTreeMap<i32, i32> {
    topic.partitions.iter().map(|it| (it.partition_index, it.leader_id)).collect()
}

const WAIT_MS: i32 = 500;
const FETCH_BYTES: i32 = 4 << 20;
/// For who prints only some of it before the next fetch.
const SLOW_FETCH_BYTES: i32 = 64 << 10;
