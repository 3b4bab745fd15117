//! What scenarios are told with: topics, batches, and the shortest way to write and read them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use bytes::Bytes;
use protocol::batch::{
    BatchBuilder, BatchHeader, Batches, Codec, Compression, HEADER_BYTES, NewRecord, RecordIter,
    decompress,
};
use protocol::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest,
};
use protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use protocol::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData,
};
use protocol::messages::init_producer_id::InitProducerIdRequest;
use protocol::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic,
};
use protocol::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic,
};
use protocol::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse,
    TopicProduceData,
};
use protocol::{ErrorCode, Records, Str, Uuid};

use crate::broker::{Broker, DEADLINE};
use crate::wire::Connection;

/// A topic that is ready to be written.
#[derive(Clone, Debug)]
pub struct Topic {
    pub name: Str,
    pub id: Uuid,
    /// The slot that leads each partition.
    pub leaders: Vec<u16>,
}

impl Topic {
    /// A new topic with one partition.
    pub fn new(broker: &Broker, label: &str) -> Topic {
        Topic::create(broker, new_name(label), 1, &[])
    }

    /// A new topic with two partitions, one led by each slot.
    pub fn on_both_slots(broker: &Broker, label: &str) -> Topic {
        let topic = Topic::create(broker, new_name(label), 2, &[]);
        let mut leaders = topic.leaders.clone();
        leaders.sort_unstable();
        assert_eq!(leaders, [0, 1], "one partition for each slot");
        topic
    }

    /// A new topic with one partition and these configs.
    pub fn with_configs(broker: &Broker, label: &str, configs: &[(&str, &str)]) -> Topic {
        Topic::create(broker, new_name(label), 1, configs)
    }

    pub fn create(broker: &Broker, name: Str, partitions: i32, configs: &[(&str, &str)]) -> Topic {
        let request = creation(&name, partitions, 1, configs);
        let result = create(&mut broker.connect(0), request);
        assert_eq!(result.error_code, ErrorCode::NONE, "{:?}", result.error_message);
        Topic::find(broker, &name)
    }

    /// The topic as metadata describes it, once each leader serves it.
    pub fn find(broker: &Broker, name: &Str) -> Topic {
        let answer = describe(&mut broker.connect(0), 12, name);
        assert_eq!(answer.error_code, ErrorCode::NONE);
        let mut leaders = vec![0; answer.partitions.len()];
        for partition in &answer.partitions {
            let slot = u16::try_from(partition.leader_id - 1000).unwrap();
            leaders[partition.partition_index as usize] = slot;
        }
        let topic = Topic { name: name.clone(), id: answer.topic_id, leaders };
        for index in 0..topic.leaders.len() as i32 {
            let mut leader = topic.leader(broker, index);
            wait_until("the leader serves", || {
                leader.list_offset(&topic, index, LATEST).error_code == ErrorCode::NONE
            });
        }
        topic
    }

    /// A connection to the leader of a partition.
    pub fn leader(&self, broker: &Broker, partition: i32) -> Connection {
        broker.connect(self.leaders[partition as usize])
    }

    /// A connection to a slot that does not lead the partition.
    pub fn stranger(&self, broker: &Broker, partition: i32) -> Connection {
        broker.connect(1 - self.leaders[partition as usize])
    }

    pub fn delete(&self, broker: &Broker) {
        let topics = vec![DeleteTopicState { name: Some(self.name.clone()), ..Default::default() }];
        let request = DeleteTopicsRequest { topics, timeout_ms: 30_000, ..Default::default() };
        let answer = broker.connect(1).ask(6, &request);
        assert_eq!(answer.responses[0].error_code, ErrorCode::NONE);
    }
}

/// A name that no other test has.
pub fn new_name(label: &str) -> Str {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    Str::from(format!("{label}-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

pub fn creation(
    name: &Str,
    num_partitions: i32,
    replication_factor: i16,
    configs: &[(&str, &str)],
) -> CreateTopicsRequest {
    let configs = configs.iter().map(|(key, value)| CreatableTopicConfig {
        name: Str::from((*key).to_owned()),
        value: Some(Str::from((*value).to_owned())),
    });
    let configs = configs.collect();
    let name = name.clone();
    let topic =
        CreatableTopic { name, num_partitions, replication_factor, configs, ..Default::default() };
    CreateTopicsRequest { topics: vec![topic], timeout_ms: 30_000, ..Default::default() }
}

/// Asks for one topic to be created and gives its result.
pub fn create(connection: &mut Connection, request: CreateTopicsRequest) -> CreatableTopicResult {
    connection.ask(7, &request).topics.remove(0)
}

pub fn metadata_request(name: &Str) -> MetadataRequest {
    let named = MetadataRequestTopic { name: Some(name.clone()), ..Default::default() };
    let allow_auto_topic_creation = false;
    MetadataRequest { topics: Some(vec![named]), allow_auto_topic_creation, ..Default::default() }
}

pub fn metadata(connection: &mut Connection, version: i16, name: &Str) -> MetadataResponse {
    connection.ask(version, &metadata_request(name))
}

/// What metadata says of one topic; nothing is created by asking.
pub fn describe(connection: &mut Connection, version: i16, name: &Str) -> MetadataResponseTopic {
    metadata(connection, version, name).topics.remove(0)
}

/// Asks again and again until it is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
    }
}

pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A batch of records with these values, made now.
pub fn batch(values: &[&str]) -> Bytes {
    batch_at(now_ms(), values)
}

/// A batch of records with these values, one millisecond apart.
pub fn batch_at(timestamp: i64, values: &[&str]) -> Bytes {
    fill(BatchBuilder::new(Compression::None), timestamp, values)
}

pub fn compressed(codec: Codec, values: &[&str]) -> Bytes {
    fill(BatchBuilder::new(Compression::of(codec)), now_ms(), values)
}

/// A batch of an idempotent producer.
pub fn idempotent((id, epoch): (i64, i16), sequence: i32, values: &[&str]) -> Bytes {
    let builder = BatchBuilder::new(Compression::None).producer(id, epoch, sequence);
    fill(builder, now_ms(), values)
}

pub fn fill(mut builder: BatchBuilder, timestamp: i64, values: &[&str]) -> Bytes {
    for (place, value) in (0..).zip(values) {
        let (timestamp, value) = (timestamp + place, Some(value.as_bytes()));
        builder.append(&NewRecord { timestamp, value, ..Default::default() });
    }
    builder.build()
}

/// The batch with some of its bytes changed and its checksum made right again.
pub fn altered(batch: &Bytes, at: usize, bytes: &[u8]) -> Bytes {
    let mut changed = batch.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = protocol::batch::header::crc_of(&changed);
    changed[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    changed.into()
}

/// Batches as they came back.
pub fn batches(records: Option<&Records>) -> Vec<(BatchHeader, Bytes)> {
    let bytes = records.cloned().unwrap_or_default().into_bytes();
    Batches::of(bytes).map_while(Result::ok).collect()
}

/// Offset and value of every record that came back.
pub fn values(records: Option<&Records>) -> Vec<(i64, String)> {
    let mut out = Vec::new();
    for (header, batch) in batches(records) {
        let codec = header.compression().unwrap();
        let body = decompress(codec, &batch[HEADER_BYTES..], 64 << 20).unwrap();
        for record in RecordIter::new(&body, header.count) {
            let record = record.unwrap();
            let value = String::from_utf8(record.value.unwrap_or_default().to_vec()).unwrap();
            out.push((header.base_offset + i64::from(record.offset_delta), value));
        }
    }
    out
}

pub fn produce_request(
    acks: i16,
    topic: &Topic,
    index: i32,
    batch: impl Into<Option<Bytes>>,
) -> ProduceRequest {
    let data = PartitionProduceData { index, records: batch.into().map(Records::from) };
    let topic_data = vec![TopicProduceData {
        name: topic.name.clone(),
        topic_id: topic.id,
        partition_data: vec![data],
    }];
    ProduceRequest { acks, timeout_ms: 30_000, topic_data, ..Default::default() }
}

/// A fetch of these partitions from these offsets, answered at once.
pub fn fetch_request(wanted: &[(&Topic, i32, i64)]) -> FetchRequest {
    let topics = wanted.iter().map(|(topic, partition, fetch_offset)| FetchTopic {
        topic: topic.name.clone(),
        topic_id: topic.id,
        partitions: vec![FetchPartition {
            partition: *partition,
            fetch_offset: *fetch_offset,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        }],
    });
    FetchRequest { min_bytes: 1, topics: topics.collect(), ..Default::default() }
}

/// Every partition of an answer: the topic's name, and what is said of it.
pub fn fetched(answer: &FetchResponse) -> Vec<(&Str, &PartitionData)> {
    let topics = answer.responses.iter();
    topics.flat_map(|it| it.partitions.iter().map(move |each| (&it.topic, each))).collect()
}

impl Connection {
    /// Writes a batch with acks=all in a version; gives the partition's outcome.
    pub fn produce_in(
        &mut self,
        version: i16,
        topic: &Topic,
        partition: i32,
        batch: Bytes,
    ) -> PartitionProduceResponse {
        only_outcome(self.ask(version, &produce_request(-1, topic, partition, batch)))
    }

    pub fn produce(&mut self, topic: &Topic, batch: Bytes) -> PartitionProduceResponse {
        self.produce_in(9, topic, 0, batch)
    }

    /// Writes a batch that has to be taken, and gives its first offset.
    pub fn write(&mut self, topic: &Topic, partition: i32, batch: Bytes) -> i64 {
        let outcome = self.produce_in(9, topic, partition, batch);
        assert_eq!(outcome.error_code, ErrorCode::NONE, "{outcome:?}");
        outcome.base_offset
    }

    /// What a fetch says of one partition, at once.
    pub fn fetch_in(
        &mut self,
        version: i16,
        topic: &Topic,
        partition: i32,
        offset: i64,
    ) -> PartitionData {
        only_partition(self.ask(version, &fetch_request(&[(topic, partition, offset)])))
    }

    /// Offsets and values of the records from an offset on, as far as one answer goes.
    pub fn read(&mut self, topic: &Topic, partition: i32, offset: i64) -> Vec<(i64, String)> {
        let data = self.fetch_in(12, topic, partition, offset);
        assert_eq!(data.error_code, ErrorCode::NONE, "{data:?}");
        values(data.records.as_ref())
    }

    pub fn list_offset(
        &mut self,
        topic: &Topic,
        partition: i32,
        timestamp: i64,
    ) -> ListOffsetsPartitionResponse {
        self.list_offset_in(9, topic, partition, timestamp)
    }

    pub fn list_offset_in(
        &mut self,
        version: i16,
        topic: &Topic,
        partition: i32,
        timestamp: i64,
    ) -> ListOffsetsPartitionResponse {
        let partition_index = partition;
        let asked = ListOffsetsPartition { partition_index, timestamp, ..Default::default() };
        let request = list_offsets_request(topic, vec![asked]);
        self.ask(version, &request).topics.remove(0).partitions.remove(0)
    }

    /// The id and epoch of a new idempotent producer.
    pub fn new_producer(&mut self) -> (i64, i16) {
        let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
        let answer = self.ask(4, &request);
        assert_eq!(answer.error_code, ErrorCode::NONE);
        (answer.producer_id, answer.producer_epoch)
    }
}

pub fn list_offsets_request(
    topic: &Topic,
    partitions: Vec<ListOffsetsPartition>,
) -> ListOffsetsRequest {
    let topics = vec![ListOffsetsTopic { name: topic.name.clone(), partitions }];
    ListOffsetsRequest { replica_id: -1, topics, timeout_ms: 30_000, ..Default::default() }
}

pub fn only_outcome(mut answer: ProduceResponse) -> PartitionProduceResponse {
    assert_eq!(answer.responses.len(), 1, "{answer:?}");
    let mut topic = answer.responses.remove(0);
    assert_eq!(topic.partition_responses.len(), 1, "{topic:?}");
    topic.partition_responses.remove(0)
}

pub fn only_partition(mut answer: FetchResponse) -> PartitionData {
    assert_eq!(answer.error_code, ErrorCode::NONE, "{answer:?}");
    assert_eq!(answer.responses.len(), 1, "{answer:?}");
    let mut topic = answer.responses.remove(0);
    assert_eq!(topic.partitions.len(), 1, "{topic:?}");
    topic.partitions.remove(0)
}

/// Marks of ListOffsets.
pub const LATEST: i64 = -1;
pub const EARLIEST: i64 = -2;
/// Where fields of a batch stand.
pub const CRC_AT: usize = 17;
pub const ATTRIBUTES_AT: usize = 21;
pub const LAST_OFFSET_DELTA_AT: usize = 23;
