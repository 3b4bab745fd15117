//! Keepers: clients that keep a table in a compacted topic, and at the end look whether the topic
//! still says what they were told to be in it (checker 23).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use protocol::batch::{
    BatchBuilder, BatchHeader, Batches, Codec, Compression, HEADER_BYTES, NewRecord, RecordIter,
    decompress, header::crc_ok,
};
use protocol::messages::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use protocol::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};
use protocol::{ErrorCode, Records, Str};
use runtime::time::{sleep, wall_ms};

use super::client::Lost;
use super::run::{PAUSE, Run, Session, TIMEOUT, Topic, below, one_in};

/// Keys of one table.
const KEYS: u64 = 12;
const BATCH_BYTES_MAX: usize = 16 << 20;

/// A value, or the mark that the key is gone.
type Entry = Option<u64>;

/// What a keeper knows of one key.
#[derive(Default)]
struct KnownKey {
    /// The newest entry that was acknowledged, and where.
    newest: Option<(i64, Entry)>,
    /// Entries of which nobody said what became of them, since they were sent.
    unsure: Vec<Entry>,
    /// All that was ever sent.
    sent: BTreeSet<Entry>,
}

pub struct Keeper {
    session: Session,
    topic: Rc<Topic>,
    keys: BTreeMap<u64, KnownKey>,
    next_value: u64,
}

/// A record of the table as it was read.
struct Read {
    offset: i64,
    key: u64,
    entry: Entry,
}

pub fn table_name(number: u64) -> Str {
    Str::from(format!("table-{number}"))
}

/// Makes a table, changes it until the run stops, and then reads it.
pub async fn keep(run: Rc<Run>, number: u64) {
    let configs = [
        ("cleanup.policy", "compact".to_owned()),
        ("min.cleanable.dirty.ratio", "0.01".to_owned()),
        // What is deleted stays told for ever, whatever the clocks do.
        ("delete.retention.ms", i64::MAX.to_string()),
        ("segment.index.bytes", (32 + 8 * below(30)).to_string()),
        ("index.interval.bytes", below(300).to_string()),
        ("flush.messages", "1".to_owned()),
    ];
    let mut session = Session::new(&run);
    let Some(topic) = session.create_unshared(&table_name(number), 1, &configs).await else {
        return;
    };
    let mut keeper = Keeper { session, topic, keys: BTreeMap::new(), next_value: 1 };
    while !run.stopping.get() {
        keeper.change().await;
        sleep(Duration::from_millis(below(60))).await;
    }
    while let Err(why) = keeper.look().await {
        let key = keeper.topic.key(0);
        run.unread.borrow_mut().insert(key, format!("{} {why}", keeper.topic.name));
        keeper.session.forget_leaders();
        sleep(PAUSE).await;
    }
    run.unread.borrow_mut().remove(&keeper.topic.key(0));
}

impl Keeper {
    /// Writes some entries in one batch.
    async fn change(&mut self) {
        let codec = if one_in(3) { Codec::ALL[below(5) as usize] } else { Codec::None };
        let mut builder = BatchBuilder::new(Compression::of(codec));
        let mut changes = Vec::new();
        for _ in 0..=below(6) {
            let key = below(KEYS);
            let entry = (!one_in(4)).then_some(self.next_value);
            self.next_value += 1;
            let value = entry.map(|value| {
                let size = if one_in(10) { 2000 } else { 40 };
                [&value.to_be_bytes()[..], &[0x5a; 2000][..size]].concat()
            });
            builder.append(&NewRecord {
                timestamp: wall_ms(),
                key: Some(&key.to_be_bytes()),
                value: value.as_deref(),
                headers: &[],
            });
            changes.push((key, entry));
        }
        for (key, entry) in &changes {
            let known = self.keys.entry(*key).or_default();
            known.sent.insert(*entry);
        }
        let base_offset = self.send(builder.build()).await;
        for (number, (key, entry)) in changes.into_iter().enumerate() {
            let known = self.keys.entry(key).or_default();
            match base_offset {
                Ok(Some(base_offset)) => {
                    known.newest = Some((base_offset + number as i64, entry));
                }
                Ok(None) => {}
                Err(Lost) => known.unsure.push(entry),
            }
        }
    }

    /// Where the batch was put; none when it was refused.
    async fn send(&mut self, batch: Bytes) -> Result<Option<i64>, Lost> {
        let Ok(client) = self.session.leader(&self.topic, 0).await else {
            self.session.forget_leaders();
            return Ok(None);
        };
        let data = PartitionProduceData { index: 0, records: Some(Records::from(batch)) };
        let topic = TopicProduceData {
            name: self.topic.name.clone(),
            topic_id: self.topic.id,
            partition_data: vec![data],
        };
        let request = ProduceRequest {
            transactional_id: None,
            acks: -1,
            timeout_ms: 3000,
            topic_data: vec![topic],
        };
        let answer: Result<ProduceResponse, Lost> = client.call(&request, 12, TIMEOUT).await;
        let answer = answer.inspect_err(|_| {
            self.session.drop_connection(&client);
            self.session.forget_leaders();
        })?;
        let answer = &answer.responses[0].partition_responses[0];
        match answer.error_code {
            ErrorCode::NONE => Ok(Some(answer.base_offset)),
            ErrorCode::INVALID_RECORD => {
                self.session.run.find("a keyed record was refused".to_owned());
                Ok(None)
            }
            _ => {
                self.session.forget_leaders();
                Err(Lost)
            }
        }
    }

    /// Reads the table and compares it with what is known.
    async fn look(&mut self) -> Result<(), String> {
        let records = self.read().await?;
        let run = self.session.run.clone();
        let name = self.topic.name.clone();
        let end = records.last().map_or(0, |last| last.offset + 1);
        if (records.len() as i64) < end {
            run.reach("table compacted");
        }
        let mut found: BTreeMap<u64, (i64, Entry)> = BTreeMap::new();
        for Read { offset, key, entry } in records {
            let known = self.keys.get(&key);
            if !known.is_some_and(|known| known.sent.contains(&entry)) {
                run.find(format!("{name} offset {offset}: nobody wrote {entry:?} to {key}"));
            }
            found.insert(key, (offset, entry));
        }
        for (key, known) in &self.keys {
            let Some((offset, entry)) = known.newest else { continue };
            let there = found.get(key).copied();
            let sound = match there {
                Some((at, there)) if at == offset => there == entry,
                // One that nobody acknowledged came later.
                Some((at, there)) => at > offset && known.unsure.contains(&there),
                None => false,
            };
            if !sound {
                run.find(format!(
                    "rule 23 compaction: {name} key {key}: {entry:?} was acknowledged at {offset}, \
                     the newest there is {there:?}"
                ));
            }
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<Vec<Read>, String> {
        let (mut records, mut next) = (Vec::<Read>::new(), 0);
        loop {
            let client = self.session.leader(&self.topic, 0).await;
            let client = client.map_err(|_| "no leader".to_owned())?;
            let request = FetchRequest {
                max_wait_ms: 50,
                min_bytes: 1,
                max_bytes: 1 << 20,
                topics: vec![FetchTopic {
                    topic: self.topic.name.clone(),
                    topic_id: self.topic.id,
                    partitions: vec![FetchPartition {
                        partition: 0,
                        fetch_offset: next,
                        partition_max_bytes: if one_in(3) { 1 } else { 1 << 20 },
                        ..FetchPartition::default()
                    }],
                }],
                ..FetchRequest::default()
            };
            let answer: Result<FetchResponse, Lost> = client.call(&request, 12, TIMEOUT).await;
            let answer = answer.map_err(|_| {
                self.session.drop_connection(&client);
                "no answer".to_owned()
            })?;
            let data = answer.responses.first().and_then(|topic| topic.partitions.first());
            let Some(data) = data else { return Err("no partition".to_owned()) };
            if data.error_code != ErrorCode::NONE {
                return Err(format!("{} at {next}", data.error_code.name()));
            }
            let bytes = data.records.clone().map(|it| it.into_bytes()).unwrap_or_default();
            for batch in Batches::of(bytes) {
                // An answer may be cut inside its last batch.
                let Ok((header, batch)) = batch else { break };
                if header.next_offset() <= next {
                    let run = &self.session.run;
                    run.find(format!("{}: {} again", self.topic.name, header.base_offset));
                }
                records
                    .extend(entries(&header, &batch)?.into_iter().filter(|it| it.offset >= next));
                next = header.next_offset();
            }
            if next >= data.high_watermark {
                return Ok(records);
            }
        }
    }
}

fn entries(header: &BatchHeader, batch: &Bytes) -> Result<Vec<Read>, String> {
    if !crc_ok(batch) {
        return Err("a wrong checksum".to_owned());
    }
    let codec = header.compression().map_err(|codec| format!("codec {codec}"))?;
    let body = match header.count {
        0 => Vec::new(),
        _ => decompress(codec, &batch[HEADER_BYTES..], BATCH_BYTES_MAX)
            .map_err(|error| error.to_string())?,
    };
    let mut read = Vec::new();
    for record in RecordIter::new(&body, header.count) {
        let record = record.map_err(|error| error.to_string())?;
        let number = |bytes: &[u8]| bytes.first_chunk::<8>().map(|it| u64::from_be_bytes(*it));
        read.push(Read {
            offset: header.base_offset + i64::from(record.offset_delta),
            key: record.key.and_then(number).ok_or("no key")?,
            entry: record.value.and_then(number),
        });
    }
    Ok(read)
}
