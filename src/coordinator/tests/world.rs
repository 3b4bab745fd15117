//! Topics to subscribe to.

use metadata::record::{
    ClusterFormatted, ConfigChanged, ConfigResource, HostRegistered, MetadataRecord,
    PartitionCreated, TopicCreated, TopicRemoved,
};
use metadata::{Image, Partition, Replica};
use protocol::{HostId, SlotIndex, Uuid};

use crate::bench::text;

pub fn id(number: u8) -> Uuid {
    Uuid([number; 16])
}

/// A cluster of one host, without topics.
pub fn cluster() -> Image {
    let formatted = ClusterFormatted { cluster_id: text("a-cluster-of-tests"), format: 1 };
    let registered = HostRegistered {
        host: HostId(1),
        incarnation: 1,
        directory: id(200),
        advertised_host: text("host.example"),
        client_port: 9092,
        slots: 1,
        rack: None,
    };
    let records =
        [MetadataRecord::ClusterFormatted(formatted), MetadataRecord::HostRegistered(registered)];
    Image::default().apply(&records, 1).unwrap()
}

fn after(image: &Image, records: &[MetadataRecord]) -> Image {
    image.apply(records, image.offset() + 1).unwrap()
}

/// Creates the topic, or gives it more partitions.
pub fn with_topic(image: &Image, name: &str, number: u8, partitions: i32) -> Image {
    with_topic_of(image, name, id(number), partitions)
}

pub fn with_topic_of(image: &Image, name: &str, topic: Uuid, partitions: i32) -> Image {
    let mut records = Vec::new();
    let known = image.topic_by_id(topic).map(|it| it.partitions.len() as i32);
    if known.is_none() {
        let created = TopicCreated { name: text(name), id: topic };
        records.push(MetadataRecord::TopicCreated(created));
    }
    for index in known.unwrap_or(0)..partitions {
        let replicas = vec![Replica { host: HostId(1), slot: SlotIndex(0) }];
        records.push(MetadataRecord::PartitionCreated(PartitionCreated {
            topic,
            index,
            partition: Partition {
                replicas,
                in_sync: vec![HostId(1)],
                leader: Some(HostId(1)),
                leader_epoch: 0,
                partition_epoch: 0,
            },
        }));
    }
    after(image, &records)
}

pub fn without_topic(image: &Image, number: u8) -> Image {
    after(image, &[MetadataRecord::TopicRemoved(TopicRemoved { id: id(number) })])
}

pub fn with_group_config(image: &Image, group: &str, key: &'static str, value: &str) -> Image {
    let resource = ConfigResource::Group(text(group));
    let changed = ConfigChanged { resource, key: key.into(), value: Some(text(value)) };
    after(image, &[MetadataRecord::ConfigChanged(changed)])
}
