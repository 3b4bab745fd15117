//! An image is the sum of its records: replay, queries, and what a slot sees of a change.

use crate::world::{HOST, after, id, one_host, partition, replica, text, topic};
use metadata::image::{ApplyError, Closed, HandOver};
use metadata::record::{
    ConfigChanged, ConfigResource, HostStarted, MetadataRecord, NextLeader, PartitionChanged,
    PreviousStop, ProducerIdsAllocated, TopicRemoved,
};
use metadata::{Image, Replica};
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use protocol::{HostId, NodeId, SlotIndex};

fn with_topic_a(slots: u16) -> Image {
    after(
        &one_host(slots),
        &[topic("a", 1), partition(1, 0, &[replica(1, 0)]), partition(1, 1, &[replica(1, 1)])],
    )
}

fn config(resource: ConfigResource, key: &'static str, value: Option<&str>) -> MetadataRecord {
    let (key, value) = (key.into(), value.map(text));
    MetadataRecord::ConfigChanged(ConfigChanged { resource, key, value })
}

fn moved(index: i32, to: Replica) -> MetadataRecord {
    MetadataRecord::PartitionChanged(PartitionChanged {
        topic: id(1),
        index,
        replicas: Some(vec![to]),
        in_sync: None,
        leader: None,
    })
}

fn started(previous_stop: PreviousStop) -> MetadataRecord {
    MetadataRecord::HostStarted(HostStarted { host: HOST, incarnation: 2, previous_stop })
}

#[test]
fn every_slot_is_a_node() {
    let nodes: Vec<_> = one_host(3).nodes().map(|node| (node.id.0, node.port)).collect();
    assert_eq!(nodes, [(1000, 9092), (1001, 9093), (1002, 9094)]);
    let image = one_host(3);
    assert_eq!(image.node(NodeId(1002)).map(|node| node.port), Some(9094));
    assert_eq!(image.node(NodeId(1003)), None);
    assert_eq!(image.node(NodeId(-1)), None);
    assert_eq!(image.node(NodeId(2000)), None);
}

#[test]
fn topics_are_found_by_name_and_by_id() {
    let image = with_topic_a(2);
    assert_eq!(image.topic("a").map(|topic| topic.id), Some(id(1)));
    assert_eq!(image.topic_by_id(id(1)).map(|topic| topic.name.to_string()), Some("a".into()));
    assert!(image.topic("b").is_none());
    let leaders: Vec<_> = image
        .topic("a")
        .unwrap()
        .indexed()
        .map(|(index, partition)| (index, partition.leader_node().unwrap().0))
        .collect();
    assert_eq!(leaders, [(0, 1000), (1, 1001)]);
}

#[test]
fn topics_are_listed_from_a_name_on() {
    let image = after(&one_host(1), &[topic("a", 1), topic("c", 2), topic("d", 3)]);
    let from = |name| image.topics_from(name).map(|it| it.name.to_string()).collect::<Vec<_>>();
    assert_eq!(from("b"), ["c", "d"]);
    assert_eq!(from("c"), ["c", "d"]);
    assert_eq!(from(""), ["a", "c", "d"]);
}

/// §3.24: metrics cannot tell "a.b" from "a_b".
#[test]
fn names_that_differ_in_dots_only_collide() {
    let image = after(&one_host(1), &[topic("a.b", 1)]);
    assert_eq!(image.colliding_topic("a_b").map(|name| name.to_string()), Some("a.b".into()));
    assert_eq!(image.colliding_topic("a.b"), None, "a name does not collide with itself");
    assert_eq!(image.colliding_topic("a-b"), None);
    let image = after(&image, &[MetadataRecord::TopicRemoved(TopicRemoved { id: id(1) })]);
    assert_eq!(image.colliding_topic("a_b"), None);
}

#[test]
fn a_slot_knows_its_partitions() {
    let image = with_topic_a(2);
    let of = |slot| {
        let on_slot = image.partitions_of(HOST, SlotIndex(slot));
        on_slot.map(|(topic, index, _)| (topic.name.to_string(), index)).collect::<Vec<_>>()
    };
    assert_eq!(of(0), [("a".into(), 0)]);
    assert_eq!(of(1), [("a".into(), 1)]);
    assert_eq!(image.load_of(HOST, SlotIndex(0)), 1);
    assert_eq!(image.load_of(HOST, SlotIndex(7)), 0);
}

#[test]
fn an_unclean_start_raises_the_leader_epochs_of_the_host() {
    let image = after(&with_topic_a(2), &[started(PreviousStop::Unclean)]);
    for (_, partition) in image.topic("a").unwrap().indexed() {
        assert_eq!((partition.leader_epoch, partition.partition_epoch), (1, 1));
    }
    assert_eq!(image.host(HOST).unwrap().incarnation, 2);
}

#[test]
fn a_clean_start_raises_none() {
    let image = after(&with_topic_a(2), &[started(PreviousStop::Clean)]);
    assert!(image.topic("a").unwrap().indexed().all(|(_, it)| it.leader_epoch == 0));
    assert_eq!(image.host(HOST).unwrap().incarnation, 2);
}

#[test]
fn a_move_between_slots_is_a_change_of_leader() {
    let image = after(&with_topic_a(2), &[moved(0, replica(1, 1))]);
    let partition = image.partition(id(1), 0).unwrap();
    assert_eq!(partition.leader_node(), Some(NodeId(1001)));
    assert_eq!((partition.leader_epoch, partition.partition_epoch), (1, 1));
    assert_eq!(partition.in_sync, [HOST], "the in-sync set counts hosts");
    assert_eq!(image.load_of(HOST, SlotIndex(0)), 0);
    assert_eq!(image.load_of(HOST, SlotIndex(1)), 2);
}

#[test]
fn a_deleted_topic_takes_its_configs_along() {
    let of_a = ConfigResource::Topic(text("a"));
    let image = after(&with_topic_a(1), &[config(of_a.clone(), "retention.ms", Some("7"))]);
    assert_eq!(image.config(&of_a, "retention.ms"), Some(&text("7")));
    let image = after(&image, &[MetadataRecord::TopicRemoved(TopicRemoved { id: id(1) })]);
    assert_eq!(image.overrides(&of_a), None);
    assert_eq!(image.topic_count(), 0);
    assert_eq!(image.load_of(HOST, SlotIndex(0)), 0);
}

#[test]
fn records_that_contradict_the_image_are_refused_whole() {
    let image = with_topic_a(1);
    let refused = |record: MetadataRecord| {
        image.apply(&[topic("b", 2), record], 9).expect_err("a contradiction")
    };
    assert!(matches!(refused(topic("a", 3)), ApplyError::TopicExists(_)));
    assert!(matches!(refused(topic("c", 1)), ApplyError::TopicExists(_)));
    let gap = refused(partition(1, 5, &[replica(1, 0)]));
    assert!(matches!(gap, ApplyError::NotTheNextPartition { index: 5, .. }));
    let twice = refused(partition(1, 2, &[replica(1, 0), replica(1, 1)]));
    assert!(matches!(twice, ApplyError::BrokenPartition { .. }), "two slots of one host");
    let nobody = refused(partition(1, 2, &[]));
    assert!(matches!(nobody, ApplyError::BrokenPartition { .. }));
    let fewer_slots = refused(crate::world::registered(1, 0));
    assert!(matches!(fewer_slots, ApplyError::SlotsOutOfRange { .. }));
    let negative = refused(crate::world::registered(-1, 1));
    assert_eq!(negative, ApplyError::HostOutOfRange(HostId(-1)));
    assert!(image.topic("b").is_none(), "the image itself never changes");
}

#[test]
fn producer_ids_only_go_up() {
    let block = |next| {
        let slot = SlotIndex(0);
        MetadataRecord::ProducerIdsAllocated(ProducerIdsAllocated { host: HOST, slot, next })
    };
    let image = after(&one_host(1), &[block(1000)]);
    assert_eq!(image.next_producer_id(), 1000);
    let again = image.apply(&[block(1000)], 9);
    assert_eq!(again, Err(ApplyError::ProducerIdsBackwards { have: 1000, next: 1000 }));
}

// ---- what a slot sees

#[test]
fn from_nothing_a_slot_opens_what_it_has() {
    let image = with_topic_a(2);
    let delta = image.delta_since(&Image::default(), HOST, SlotIndex(1));
    let opened: Vec<_> = delta.opened.iter().map(|it| (it.topic.to_string(), it.index)).collect();
    assert_eq!(opened, [("a".into(), 1)]);
    assert!(delta.closed.is_empty() && delta.changed.is_empty() && delta.hosts);
}

#[test]
fn between_equal_images_there_is_nothing_to_do() {
    let image = with_topic_a(2);
    let delta = image.clone().delta_since(&image, HOST, SlotIndex(0));
    assert!(delta.is_empty(), "{delta:?}");
}

#[test]
fn a_move_closes_here_and_opens_there() {
    let before = with_topic_a(2);
    let after = after(&before, &[moved(0, replica(1, 1))]);
    let here = after.delta_since(&before, HOST, SlotIndex(0));
    assert_eq!(here.closed.len(), 1);
    assert_eq!(here.closed[0].why, Closed::HandedOver(SlotIndex(1)));
    let there = after.delta_since(&before, HOST, SlotIndex(1));
    assert_eq!(there.opened.len(), 1);
    assert_eq!(there.opened[0].partition.leader_epoch, 1);
}

#[test]
fn records_tell_who_has_to_let_go_before_they_are_committed() {
    let image = with_topic_a(2);
    let to_slot_1 = HandOver { topic: id(1), index: 0, from: SlotIndex(0), to: SlotIndex(1) };
    let goes = || moved(0, replica(1, 1));
    assert_eq!(image.hand_overs(&[goes()], HOST), [to_slot_1]);
    assert_eq!(image.hand_overs(&[goes(), goes()], HOST), [to_slot_1]);
    let comes_back = moved(0, replica(1, 0));
    assert_eq!(image.hand_overs(&[goes(), comes_back], HOST), []);
    let removed = MetadataRecord::TopicRemoved(TopicRemoved { id: id(1) });
    assert_eq!(image.hand_overs(&[removed], HOST), []);
    assert_eq!(image.hand_overs(&[goes()], HostId(2)), []);
}

#[test]
fn a_deletion_closes_for_good() {
    let before = with_topic_a(2);
    let after = after(&before, &[MetadataRecord::TopicRemoved(TopicRemoved { id: id(1) })]);
    let delta = after.delta_since(&before, HOST, SlotIndex(0));
    assert_eq!(delta.closed.iter().map(|it| it.why).collect::<Vec<_>>(), [Closed::Deleted]);
}

#[test]
fn a_replica_taken_from_the_host_is_removed() {
    let before = after(
        &crate::world::hosts(2, 1),
        &[topic("a", 1), partition(1, 0, &[replica(1, 0), replica(2, 0)])],
    );
    let only_two = MetadataRecord::PartitionChanged(PartitionChanged {
        topic: id(1),
        index: 0,
        replicas: Some(vec![replica(2, 0)]),
        in_sync: Some(vec![HostId(2)]),
        leader: Some(NextLeader::Host(HostId(2))),
    });
    let after = after(&before, &[only_two]);
    let delta = after.delta_since(&before, HOST, SlotIndex(0));
    assert_eq!(delta.closed.iter().map(|it| it.why).collect::<Vec<_>>(), [Closed::Removed]);
    assert_eq!(after.partition(id(1), 0).unwrap().leader_epoch, 1);
    assert_eq!(after.delta_since(&before, HostId(2), SlotIndex(0)).changed.len(), 1);
}

#[test]
fn a_raised_leader_epoch_is_a_change() {
    let before = with_topic_a(2);
    let after = after(&before, &[started(PreviousStop::Unclean)]);
    let delta = after.delta_since(&before, HOST, SlotIndex(0));
    assert_eq!(delta.changed.iter().map(|it| it.index).collect::<Vec<_>>(), [0]);
    assert!(delta.opened.is_empty() && delta.closed.is_empty());
}

#[test]
fn a_config_change_is_seen_where_it_counts() {
    let before = with_topic_a(2);
    let of_slot_1 = ConfigResource::Node { host: HOST, slot: SlotIndex(1) };
    let after = after(
        &before,
        &[
            config(ConfigResource::Topic(text("a")), "retention.ms", Some("7")),
            config(of_slot_1, "log.retention.ms", Some("8")),
        ],
    );
    let here = after.delta_since(&before, HOST, SlotIndex(0));
    assert_eq!(here.topic_configs, ["a"]);
    assert!(!here.broker_configs);
    assert!(after.delta_since(&before, HOST, SlotIndex(1)).broker_configs);
}

// ---- snapshots

/// One step of a history that fits every image.
#[derive(Debug, Clone)]
enum Step {
    Create(u8, u8),
    Remove(u8),
    Grow(u8),
    Move(u8, u16),
    Configure(u8, u16, Option<u16>),
    Restart(bool),
    ProducerIds,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..12u8, 1..4u8).prop_map(|(name, partitions)| Step::Create(name, partitions)),
        (0..12u8).prop_map(Step::Remove),
        (0..12u8).prop_map(Step::Grow),
        (0..12u8, 0..4u16).prop_map(|(name, slot)| Step::Move(name, slot)),
        (0..12u8, 0..3u16, any::<Option<u16>>())
            .prop_map(|(name, key, value)| Step::Configure(name, key, value)),
        any::<bool>().prop_map(Step::Restart),
        prop::strategy::Just(Step::ProducerIds),
    ]
}

fn records_of(step: &Step, image: &Image) -> Vec<MetadataRecord> {
    const KEYS: [&str; 3] = ["retention.ms", "segment.ms", "flush.ms"];
    let named = |number: u8| image.topic(&format!("t.{number}")).cloned();
    match *step {
        Step::Create(number, count) if named(number).is_none() => {
            let mut records = vec![topic(&format!("t.{number}"), number)];
            records.extend(
                (0..i32::from(count))
                    .map(|index| partition(number, index, &[replica(1, (index % 4) as u16)])),
            );
            records
        }
        Step::Remove(number) if named(number).is_some() => {
            vec![MetadataRecord::TopicRemoved(TopicRemoved { id: id(number) })]
        }
        Step::Grow(number) => named(number).map_or(vec![], |topic| {
            vec![partition(number, topic.partitions.len() as i32, &[replica(1, 3)])]
        }),
        Step::Move(number, slot) if named(number).is_some() => {
            vec![MetadataRecord::PartitionChanged(PartitionChanged {
                topic: id(number),
                index: 0,
                replicas: Some(vec![replica(1, slot)]),
                in_sync: None,
                leader: None,
            })]
        }
        Step::Configure(number, key, value) => {
            let resource = ConfigResource::Topic(text(&format!("t.{number}")));
            let value = value.map(|value| value.to_string());
            vec![config(resource, KEYS[usize::from(key)], value.as_deref())]
        }
        Step::Restart(clean) => {
            vec![started(if clean { PreviousStop::Clean } else { PreviousStop::Unclean })]
        }
        Step::ProducerIds => {
            let (slot, next) = (SlotIndex(0), image.next_producer_id() + 1000);
            vec![MetadataRecord::ProducerIdsAllocated(ProducerIdsAllocated {
                host: HOST,
                slot,
                next,
            })]
        }
        _ => vec![],
    }
}

proptest! {
    /// The law of snapshots: reading one gives what replaying the log gives.
    #[test]
    fn a_snapshot_equals_the_replay(steps in prop::collection::vec(step(), 0..60)) {
        let mut live = one_host(4);
        let mut log = vec![];
        for step in &steps {
            let records = records_of(step, &live);
            let next = after(&live, &records);
            log.push((records, next.offset()));
            live = next;
        }
        assert_eq!(Image::decode(&live.encode()), Ok(live.clone()));
        let mut replayed = Image::decode(&one_host(4).encode()).unwrap();
        for (records, offset) in &log {
            let bytes = metadata::record::encode_batch(records);
            let records = metadata::record::decode_batch(&bytes).unwrap();
            replayed = replayed.apply(&records, *offset).unwrap();
        }
        assert_eq!(replayed, live);
    }

    /// Following deltas, a slot holds exactly what the image says.
    #[test]
    fn deltas_lead_to_the_image(steps in prop::collection::vec(step(), 0..60)) {
        let (slot, mut live) = (SlotIndex(1), one_host(4));
        let mut held = std::collections::BTreeMap::new();
        for step in &steps {
            let next = after(&live, &records_of(step, &live));
            let delta = next.delta_since(&live, HOST, slot);
            for closed in delta.closed {
                assert!(held.remove(&(closed.id, closed.index)).is_some());
            }
            for opened in delta.opened {
                assert!(held.insert((opened.id, opened.index), opened.partition).is_none());
            }
            for changed in delta.changed {
                assert!(held.insert((changed.id, changed.index), changed.partition).is_some());
            }
            live = next;
        }
        let wanted: Vec<_> = live
            .partitions_of(HOST, slot)
            .map(|(topic, index, partition)| ((topic.id, index), partition.clone()))
            .collect();
        assert_eq!(held.into_iter().collect::<Vec<_>>(), wanted);
    }
}
