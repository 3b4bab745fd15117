//! Readers: fetches anywhere in a partition, offsets by time, deletions of records, and the last
//! reading of everything.

use std::rc::Rc;

use bytes::Bytes;
use protocol::ErrorCode;
use protocol::batch::header::crc_ok;
use protocol::batch::{BatchHeader, Batches, HEADER_BYTES, RecordIter, decompress};
use protocol::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopic,
};
use protocol::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData,
};
use protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use runtime::time::{now, sleep, wall_ms};

use super::client::Lost;
use super::history::{
    Deletion, EARLIEST, Fetch, FinalLog, LATEST, Offsets, SeenBatch, SeenRecord, Sequence,
};
use super::run::{PAUSE, Session, TIMEOUT, Topic, below, one_in};

const BATCH_BYTES_MAX: usize = 16 << 20;

impl Session {
    /// One fetch of one partition, noted in the history.
    pub async fn fetch(
        &mut self,
        topic: &Topic,
        partition: i32,
        offset: i64,
    ) -> Result<Fetch, Lost> {
        let span = self.run.span();
        let client = self.leader(topic, partition).await?;
        let by_id = topic.shares_name || one_in(2);
        let version = if by_id { 13 + below(5) as i16 } else { 4 + below(9) as i16 };
        let request = FetchRequest {
            max_wait_ms: below(300) as i32,
            min_bytes: 1,
            max_bytes: if one_in(3) { 1 } else { 1 << 20 },
            topics: vec![FetchTopic {
                topic: topic.name.clone(),
                topic_id: topic.id,
                partitions: vec![FetchPartition {
                    partition,
                    fetch_offset: offset,
                    partition_max_bytes: if one_in(3) { 1 } else { 1 << 20 },
                    ..FetchPartition::default()
                }],
            }],
            ..FetchRequest::default()
        };
        let answer: Result<FetchResponse, Lost> = client.call(&request, version, TIMEOUT).await;
        let answer = answer.inspect_err(|_| {
            self.drop_connection(&client);
            self.forget_leaders();
        })?;
        let data = answer.responses.first().and_then(|topic| topic.partitions.first());
        let Some(data) = data else { return Err(Lost) };
        if data.error_code != ErrorCode::NONE {
            self.forget_leaders();
        }
        let mut fetch = Fetch {
            key: topic.key(partition),
            span,
            offset,
            error: data.error_code,
            high_watermark: data.high_watermark,
            last_stable_offset: data.last_stable_offset,
            log_start_offset: if version >= 5 { data.log_start_offset } else { 0 },
            batches: self.seen_batches(data),
        };
        fetch.span.completed = now().as_nanos();
        if version < 5 {
            // Without its log start offset an answer would look as if the log had grown downwards.
            fetch.log_start_offset = self.known_start(topic, partition);
        }
        if fetch.error == ErrorCode::OFFSET_OUT_OF_RANGE {
            self.run.reach("fetch out of range");
        }
        self.run.history.borrow_mut().fetches.push(fetch.clone());
        Ok(fetch)
    }

    fn known_start(&self, topic: &Topic, partition: i32) -> i64 {
        let key = topic.key(partition);
        let history = self.run.history.borrow();
        let fetched = history.fetches.iter().filter(|fetch| fetch.key == key);
        let listed = history.offsets.iter().filter(|o| o.key == key && o.wanted == EARLIEST);
        let low = history.deletions.iter().filter(|deletion| deletion.key == key);
        let fetched = fetched.map(|fetch| fetch.log_start_offset);
        let listed = listed.map(|offsets| offsets.offset);
        let low = low.filter_map(|deletion| deletion.low_watermark);
        fetched.chain(listed).chain(low).max().unwrap_or(0)
    }

    fn seen_batches(&self, data: &PartitionData) -> Vec<SeenBatch> {
        let bytes = data.records.clone().map(|records| records.into_bytes()).unwrap_or_default();
        let mut seen = Vec::new();
        for batch in Batches::of(bytes) {
            // Kafka may cut an answer inside its last batch.
            let Ok((header, bytes)) = batch else { break };
            match seen_batch(&header, &bytes) {
                Ok(batch) => seen.push(batch),
                Err(why) => self.run.find(format!("a broken batch was served: {why} {header:?}")),
            }
        }
        seen
    }

    /// Asks for an offset by time or for an end of the log, noted in the history.
    pub async fn list_offsets(
        &mut self,
        topic: &Topic,
        partition: i32,
        wanted: i64,
    ) -> Result<Offsets, Lost> {
        let span = self.run.span();
        let client = self.leader(topic, partition).await?;
        let request = ListOffsetsRequest {
            replica_id: -1,
            topics: vec![ListOffsetsTopic {
                name: topic.name.clone(),
                partitions: vec![ListOffsetsPartition {
                    partition_index: partition,
                    timestamp: wanted,
                    ..ListOffsetsPartition::default()
                }],
            }],
            ..ListOffsetsRequest::default()
        };
        let version = 1 + below(7) as i16;
        let answer: Result<ListOffsetsResponse, Lost> =
            client.call(&request, version, TIMEOUT).await;
        let answer = answer.inspect_err(|_| {
            self.drop_connection(&client);
            self.forget_leaders();
        })?;
        let found = &answer.topics[0].partitions[0];
        if found.error_code != ErrorCode::NONE {
            self.forget_leaders();
        }
        let mut offsets = Offsets {
            key: topic.key(partition),
            span,
            wanted,
            error: found.error_code,
            offset: found.offset,
            timestamp: found.timestamp,
        };
        offsets.span.completed = now().as_nanos();
        self.run.history.borrow_mut().offsets.push(offsets.clone());
        Ok(offsets)
    }

    /// Deletes the records before `before`, noted in the history.
    pub async fn delete_records(
        &mut self,
        topic: &Topic,
        partition: i32,
        before: i64,
    ) -> Result<(), Lost> {
        let client = self.leader(topic, partition).await?;
        let place = {
            let span = self.run.span();
            let mut history = self.run.history.borrow_mut();
            let key = topic.key(partition);
            history.deletions.push(Deletion { key, span, before, low_watermark: None });
            history.deletions.len() - 1
        };
        let request = DeleteRecordsRequest {
            topics: vec![DeleteRecordsTopic {
                name: topic.name.clone(),
                partitions: vec![DeleteRecordsPartition {
                    partition_index: partition,
                    offset: before,
                }],
            }],
            timeout_ms: 3000,
        };
        let answer: DeleteRecordsResponse = client.call(&request, 2, TIMEOUT).await?;
        let result = &answer.topics[0].partitions[0];
        let mut history = self.run.history.borrow_mut();
        let deletion = &mut history.deletions[place];
        if result.error_code == ErrorCode::NONE {
            deletion.span.completed = now().as_nanos();
            deletion.low_watermark = Some(result.low_watermark);
            self.run.reach("records deleted");
        }
        Ok(())
    }

    /// Reads, lists and deletes here and there until the run stops.
    pub async fn browse(mut self) {
        while !self.run.stopping.get() {
            sleep(PAUSE / 4 * (1 + below(8) as u32)).await;
            let Some(topic) = self.run.any_topic() else { continue };
            let partition = below(topic.partitions.get() as u64) as i32;
            let lost = self.browse_once(&topic, partition).await.is_err();
            if lost {
                self.forget_leaders();
                sleep(PAUSE).await;
            }
        }
    }

    async fn browse_once(&mut self, topic: &Rc<Topic>, partition: i32) -> Result<(), Lost> {
        if one_in(3) && !topic.shares_name {
            let wanted = match below(4) {
                0 => EARLIEST,
                1 | 2 => LATEST,
                _ => wall_ms() - below(20_000) as i64,
            };
            let _ = self.list_offsets(topic, partition, wanted).await?;
            return Ok(());
        }
        let key = topic.key(partition);
        let seen = self.run.history.borrow().fetches.iter().rev().find(|f| f.key == key).cloned();
        let end = seen.as_ref().map_or(0, |seen| seen.high_watermark.max(0));
        let offset = match below(4) {
            0 => 0,
            1 => below(end as u64 + 1) as i64,
            _ => end,
        };
        let fetched = self.fetch(topic, partition, offset).await?;
        if one_in(12) && !topic.shares_name && fetched.high_watermark > 0 {
            let before = if one_in(8) { -1 } else { below(fetched.high_watermark as u64) as i64 };
            self.delete_records(topic, partition, before).await?;
        }
        Ok(())
    }

    /// Reads a partition from its beginning to its end, as often as it takes.
    pub async fn read_to_the_end(&mut self, topic: &Topic, partition: i32) {
        while let Err(why) = self.try_read_to_the_end(topic, partition).await {
            let key = topic.key(partition);
            self.run.unread.borrow_mut().insert(key, format!("{} {why}", topic.name));
            self.forget_leaders();
            sleep(PAUSE).await;
        }
    }

    async fn try_read_to_the_end(&mut self, topic: &Topic, partition: i32) -> Result<(), String> {
        let lost = |_| "no answer".to_owned();
        let probe = self.fetch(topic, partition, 0).await.map_err(lost)?;
        let start = match probe.error {
            ErrorCode::NONE => probe.log_start_offset,
            ErrorCode::OFFSET_OUT_OF_RANGE if !topic.shares_name => {
                self.list_offsets(topic, partition, EARLIEST).await.map_err(lost)?.offset
            }
            ErrorCode::OFFSET_OUT_OF_RANGE => probe.log_start_offset,
            error => return Err(error.name().to_owned()),
        };
        let mut log = FinalLog { log_start_offset: start, ..FinalLog::default() };
        let mut next = start;
        loop {
            let fetched = self.fetch(topic, partition, next).await.map_err(lost)?;
            if fetched.error != ErrorCode::NONE {
                return Err(format!("{} at {next}", fetched.error.name()));
            }
            log.high_watermark = fetched.high_watermark;
            let last = fetched.records().last().map(|(_, record)| record.offset);
            log.batches.extend(fetched.batches.iter().cloned());
            match last {
                Some(last) => next = last + 1,
                None if next >= log.high_watermark => break,
                None => {}
            }
        }
        if !topic.shares_name {
            self.ask_for_times(topic, partition, &mut log).await?;
        }
        let key = topic.key(partition);
        self.run.history.borrow_mut().finals.insert(key, log);
        self.run.unread.borrow_mut().remove(&key);
        Ok(())
    }

    async fn ask_for_times(
        &mut self,
        topic: &Topic,
        partition: i32,
        log: &mut FinalLog,
    ) -> Result<(), String> {
        let times: Vec<i64> = log.records().map(|record| record.timestamp).collect();
        for _ in 0..5 {
            let Some(time) = times.get(below(times.len() as u64) as usize) else { break };
            let time = time + below(3) as i64 - 1;
            let found = self.list_offsets(topic, partition, time).await;
            let found = found.map_err(|_| "no answer".to_owned())?;
            if found.error != ErrorCode::NONE {
                return Err(format!("{} for the time {time}", found.error.name()));
            }
            log.times.push((time, found.offset, found.timestamp));
        }
        Ok(())
    }
}

fn seen_batch(header: &BatchHeader, bytes: &Bytes) -> Result<SeenBatch, String> {
    if !crc_ok(bytes) {
        return Err("its checksum is wrong".to_owned());
    }
    let codec = header.compression().map_err(|codec| format!("codec {codec}"))?;
    let body = decompress(codec, &bytes[HEADER_BYTES..], BATCH_BYTES_MAX)
        .map_err(|error| error.to_string())?;
    let mut records = Vec::new();
    for record in RecordIter::new(&body, header.count) {
        let record = record.map_err(|error| error.to_string())?;
        let value = record.value.and_then(|value| value.first_chunk::<8>());
        records.push(SeenRecord {
            offset: header.base_offset + i64::from(record.offset_delta),
            timestamp: header.record_timestamp(record.timestamp_delta),
            value: value.map(|bytes| u64::from_be_bytes(*bytes)).ok_or("no value")?,
        });
    }
    let sequence = header.has_producer().then_some(Sequence {
        producer_id: header.producer_id,
        epoch: header.producer_epoch,
        first: header.base_sequence,
    });
    Ok(SeenBatch { epoch: header.partition_leader_epoch, sequence, records })
}
