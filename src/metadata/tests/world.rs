//! Small clusters to ask questions about.

use metadata::configs::StaticSettings;
use metadata::controller::create_topics;
use metadata::record::{
    ClusterFormatted, HostRegistered, MetadataRecord, PartitionCreated, TopicCreated,
};
use metadata::{Context, Image, Partition, Replica};
use protocol::ErrorCode;
use protocol::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use protocol::{HostId, SlotIndex, Str, Uuid};

pub const HOST: HostId = HostId(1);

pub fn id(number: u8) -> Uuid {
    Uuid([number; 16])
}

pub fn text(text: &str) -> Str {
    Str::from(text.to_owned())
}

pub fn replica(host: i32, slot: u16) -> Replica {
    Replica { host: HostId(host), slot: SlotIndex(slot) }
}

pub fn formatted() -> MetadataRecord {
    let cluster_id = text("a-cluster-of-tests");
    MetadataRecord::ClusterFormatted(ClusterFormatted { cluster_id, format: 1 })
}

pub fn registered(host: i32, slots: u16) -> MetadataRecord {
    MetadataRecord::HostRegistered(HostRegistered {
        host: HostId(host),
        incarnation: 1,
        directory: id(200),
        advertised_host: text(&format!("host-{host}.example")),
        client_port: 9092,
        slots,
        rack: None,
    })
}

/// A formatted cluster of one host.
pub fn one_host(slots: u16) -> Image {
    Image::default().apply(&[formatted(), registered(1, slots)], 1).unwrap()
}

pub fn hosts(count: i32, slots: u16) -> Image {
    let mut records = vec![formatted()];
    records.extend((1..=count).map(|host| registered(host, slots)));
    Image::default().apply(&records, 1).unwrap()
}

pub fn topic(name: &str, number: u8) -> MetadataRecord {
    MetadataRecord::TopicCreated(TopicCreated { name: text(name), id: id(number) })
}

pub fn partition(topic: u8, index: i32, replicas: &[Replica]) -> MetadataRecord {
    let in_sync: Vec<HostId> = replicas.iter().map(|replica| replica.host).collect();
    MetadataRecord::PartitionCreated(PartitionCreated {
        topic: id(topic),
        index,
        partition: Partition {
            replicas: replicas.to_vec(),
            leader: in_sync.first().copied(),
            in_sync,
            leader_epoch: 0,
            partition_epoch: 0,
        },
    })
}

/// The next image, one log entry later.
pub fn after(image: &Image, records: &[MetadataRecord]) -> Image {
    image.apply(records, image.offset() + 1).unwrap()
}

/// Decides on an image, with no settings but defaults.
pub fn context<'a>(image: &'a Image, statics: &'a StaticSettings) -> Context<'a> {
    Context { image, statics, random: 0x1234_5678_9abc_def0_0fed_cba9_8765_4321 }
}

pub fn creatable(name: &str, partitions: i32, factor: i16) -> CreatableTopic {
    CreatableTopic {
        name: text(name),
        num_partitions: partitions,
        replication_factor: factor,
        ..CreatableTopic::default()
    }
}

pub fn with_configs(mut topic: CreatableTopic, configs: &[(&str, Option<&str>)]) -> CreatableTopic {
    topic.configs = configs
        .iter()
        .map(|(name, value)| CreatableTopicConfig { name: text(name), value: value.map(text) })
        .collect();
    topic
}

/// The image once the topics are created with the broker's defaults.
pub fn with_topics(image: &Image, topics: &[(&str, i32)]) -> Image {
    let topics = topics.iter().map(|(name, partitions)| creatable(name, *partitions, 1)).collect();
    let statics = StaticSettings::default();
    let request = CreateTopicsRequest { topics, ..CreateTopicsRequest::default() };
    let decision = create_topics(&context(image, &statics), &request);
    assert!(decision.response.topics.iter().all(|it| it.error_code == ErrorCode::NONE));
    after(image, &decision.records)
}
