//! Metadata: who is there, who leads, and what asking may create.

use protocol::messages::describe_cluster::DescribeClusterRequest;
use protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponseTopic};
use protocol::{ErrorCode, Str, Uuid};

use crate::broker::Broker;
use crate::scenario::{Topic, batch, describe, metadata, metadata_request, new_name, wait_until};
use crate::wire::Connection;

/// H15: what is named again and again is described once, by name and by id, as in Kafka.
#[test]
fn a_topic_named_twice_is_described_once() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "twice");
    let mut node = broker.connect(0);
    let by_name = MetadataRequestTopic { name: Some(topic.name.clone()), ..Default::default() };
    let request = |named: MetadataRequestTopic| MetadataRequest {
        topics: Some(vec![named; 1000]),
        ..MetadataRequest::default()
    };
    let answer = node.ask(12, &request(by_name));
    assert_eq!(answer.topics.len(), 1);
    let topic_id = answer.topics[0].topic_id;
    let by_id = MetadataRequestTopic { topic_id, name: None };
    let answer = node.ask(12, &request(by_id));
    assert_eq!(answer.topics.len(), 1);
    assert_eq!(answer.topics[0].topic_id, topic_id);
}

/// Kafka protocol behaviour 15: version 0 asks for all topics by an empty list; from version 1 on
/// null does, and an empty list asks for none.
#[test]
fn all_topics_and_none_are_told_apart() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "all");
    let mut connection = broker.connect(0);
    let (none, all) = (Some(Vec::new()), None);
    let mut lists = |version, topics: &Option<Vec<MetadataRequestTopic>>| {
        let request = MetadataRequest { topics: topics.clone(), ..Default::default() };
        let answer = connection.ask(version, &request);
        (answer.topics.iter().any(|it| it.name.as_ref() == Some(&topic.name)), answer.topics.len())
    };
    assert!(lists(0, &none).0);
    for version in 1..=13 {
        assert_eq!(lists(version, &none), (false, 0), "version {version}");
        assert!(lists(version, &all).0, "version {version}");
    }
}

/// Kafka protocol behaviour 16: the cluster id is the same everywhere, and the controller named is
/// a node that is alive: the one that was asked.
#[test]
fn every_node_tells_the_same_cluster_and_offers_itself() {
    let broker = Broker::shared();
    let mut ids = Vec::new();
    for slot in [0, 1] {
        let mut connection = broker.connect(slot);
        for version in 2..=13 {
            let answer = connection.ask(version, &MetadataRequest::default());
            assert_eq!(answer.controller_id, 1000 + i32::from(slot), "version {version}");
            ids.push(answer.cluster_id.unwrap());
        }
        let answer = connection.ask(0, &DescribeClusterRequest::default());
        assert_eq!(answer.controller_id, 1000 + i32::from(slot));
        ids.push(answer.cluster_id);
    }
    assert!(!ids[0].is_empty());
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

/// Kafka protocol behaviour 17: the nodes listed are those that listen, each with its own port.
#[test]
fn every_node_listed_can_be_reached() {
    let broker = Broker::shared();
    let mut answer = broker.connect(1).ask(9, &MetadataRequest::default());
    answer.brokers.sort_by_key(|node| node.node_id);
    let told: Vec<_> = answer.brokers.iter().map(|it| (it.node_id, &*it.host, it.port)).collect();
    let port = i32::from(broker.port);
    assert_eq!(told, [(1000, "127.0.0.1", port), (1001, "127.0.0.1", port + 1)]);
    for node in &answer.brokers {
        let mut there = broker.connect((node.node_id - 1000) as u16);
        assert_eq!(there.ask(9, &MetadataRequest::default()).controller_id, node.node_id);
    }
}

/// Kafka protocol behaviour 18: topics have ids; asking by id works from version 12 on and is an
/// invalid request in 10 and 11.
#[test]
fn topics_are_found_by_id_from_version_12() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "by-id");
    assert!(!topic.id.is_zero());
    let mut connection = broker.connect(0);
    for version in 10..=13 {
        assert_eq!(describe(&mut connection, version, &topic.name).topic_id, topic.id);
        let by_id = MetadataRequestTopic { topic_id: topic.id, name: None };
        let answer = connection.ask(version, &asking(by_id));
        let [found] = answer.topics.as_slice() else { panic!("{answer:?}") };
        match version {
            12.. => {
                assert_eq!(found.error_code, ErrorCode::NONE);
                assert_eq!(found.name.as_ref(), Some(&topic.name));
                assert_eq!(found.partitions.len(), 1);
            }
            _ => {
                assert_eq!(found.error_code, ErrorCode::INVALID_REQUEST);
                let told = (answer.brokers.len(), &answer.cluster_id, answer.controller_id);
                assert_eq!(told, (0, &None, -1));
            }
        }
    }
    let unknown = MetadataRequestTopic { topic_id: Uuid([7; 16]), name: None };
    let found = connection.ask(12, &asking(unknown)).topics.remove(0);
    assert_eq!((found.error_code, found.topic_id), (ErrorCode::UNKNOWN_TOPIC_ID, Uuid([7; 16])));
}

/// Kafka protocol behaviour 20: a topic that is missing and not to be created is unknown; a name
/// that no topic can have is invalid.
#[test]
fn missing_topics_and_impossible_names_are_told_apart() {
    let mut connection = Broker::shared().connect(0);
    let mut error = |name: &Str| {
        let found = describe(&mut connection, 12, name);
        assert_eq!(found.topic_id, Uuid::ZERO);
        found.error_code
    };
    assert_eq!(error(&new_name("missing")), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    for name in ["", ".", "..", "a/b", "a b", "ü", &"x".repeat(250)] {
        assert_eq!(error(&Str::from(name.to_owned())), ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
}

/// Kafka protocol behaviour 20, where Coretide does better: the first answer of auto-creation
/// already names the leader, who serves.
#[test]
fn the_first_answer_of_auto_creation_carries_the_leader() {
    let broker = Broker::shared();
    let name = new_name("auto");
    let mut connection = broker.connect(1);
    let found = ask_with_creation(&mut connection, &name);
    assert_eq!((found.error_code, found.partitions.len()), (ErrorCode::NONE, 1), "{found:?}");
    assert!(found.partitions[0].leader_id >= 1000);
    assert!(found.partitions[0].leader_epoch >= 0);
    let topic = Topic::find(broker, &name);
    assert_eq!(topic.id, found.topic_id);
    assert_eq!(topic.leader(broker, 0).write(&topic, 0, batch(&["x"])), 0);
}

/// Kafka protocol behaviour 21: nothing is created unless the request permits it, nor by asking
/// for all topics, nor under an impossible name.
#[test]
fn auto_creation_needs_the_request_to_permit_it() {
    let broker = Broker::shared();
    let name = new_name("not-auto");
    let mut connection = broker.connect(0);
    metadata(&mut connection, 9, &name);
    connection.ask(9, &MetadataRequest { topics: None, ..Default::default() });
    let error = describe(&mut connection, 9, &name).error_code;
    assert_eq!(error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let odd = ask_with_creation(&mut connection, &Str::from_static("not/a/topic"));
    assert_eq!(odd.error_code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    // Below version 4 a request cannot say no.
    wait_until("version 3 created it", || {
        describe(&mut connection, 3, &name).error_code == ErrorCode::NONE
    });
}

/// Kafka protocol behaviour 21: nothing is created when the broker forbids it.
#[test]
fn auto_creation_needs_the_broker_to_permit_it() {
    let broker = Broker::start_with(&["auto.create.topics.enable=false"]);
    let mut connection = broker.connect(0);
    let name = new_name("forbidden");
    let error = ask_with_creation(&mut connection, &name).error_code;
    assert_eq!(error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let error = describe(&mut connection, 9, &name).error_code;
    assert_eq!(error, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

/// Kafka protocol behaviour 22: leader epochs are told from version 7 on, the same by every node.
#[test]
fn leader_epochs_are_told() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "epochs");
    let epochs = |slot, version| -> Vec<i32> {
        let found = describe(&mut broker.connect(slot), version, &topic.name);
        found.partitions.iter().map(|it| it.leader_epoch).collect()
    };
    assert!(epochs(0, 7).iter().all(|&epoch| epoch >= 0));
    assert_eq!(epochs(0, 7), epochs(1, 13));
}

/// Kafka protocol behaviour 23: the operations that a client may do are the minimum when it did
/// not ask for them.
#[test]
fn operations_nobody_asked_for_are_the_minimum() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "operations");
    let mut connection = broker.connect(0);
    for version in 8..=13 {
        let answer = metadata(&mut connection, version, &topic.name);
        assert_eq!(answer.topics[0].topic_authorized_operations, i32::MIN, "version {version}");
        assert_eq!(answer.cluster_authorized_operations, i32::MIN, "version {version}");
    }
    let answer = connection.ask(0, &DescribeClusterRequest::default());
    assert_eq!(answer.cluster_authorized_operations, i32::MIN);
}

/// Who asks in Metadata for the operations is told them (KIP-430), in the versions that have room
/// for them: of topics that are named, whether or not they exist, but of no unknown id.
#[test]
fn operations_are_told_to_who_asks() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "operations");
    let mut connection = broker.connect(0);
    let asked = |topics| MetadataRequest {
        include_topic_authorized_operations: true,
        include_cluster_authorized_operations: true,
        ..MetadataRequest { allow_auto_topic_creation: false, topics, ..Default::default() }
    };
    let named = |name: &str| MetadataRequestTopic {
        name: Some(Str::from(name.to_owned())),
        ..Default::default()
    };
    for version in 8..=13 {
        let names = vec![named(&topic.name), named("never-made"), named("bad name!")];
        let answer = connection.ask(version, &asked(Some(names)));
        let told: Vec<_> = answer.topics.iter().map(|it| it.topic_authorized_operations).collect();
        assert_eq!(told, [TOPIC_OPERATIONS; 3], "version {version}");
        let expected = if version <= 10 { CLUSTER_OPERATIONS } else { i32::MIN };
        assert_eq!(answer.cluster_authorized_operations, expected, "version {version}");
        let all = connection.ask(version, &asked(None));
        let mut told = all.topics.iter().map(|it| it.topic_authorized_operations);
        assert!(told.all(|it| it == TOPIC_OPERATIONS), "version {version}");
    }
    let unknown = MetadataRequestTopic { topic_id: Uuid([9; 16]), ..Default::default() };
    let answer = connection.ask(12, &asked(Some(vec![unknown])));
    assert_eq!(answer.topics[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(answer.topics[0].topic_authorized_operations, i32::MIN);
}

/// Bits of READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS.
const TOPIC_OPERATIONS: i32 = 3576;
/// Bits of CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS and
/// IDEMPOTENT_WRITE.
const CLUSTER_OPERATIONS: i32 = 8096;

/// Asks for a topic and permits its creation.
fn ask_with_creation(connection: &mut Connection, name: &Str) -> MetadataResponseTopic {
    let request = MetadataRequest { allow_auto_topic_creation: true, ..metadata_request(name) };
    connection.ask(12, &request).topics.remove(0)
}

fn asking(topic: MetadataRequestTopic) -> MetadataRequest {
    let allow_auto_topic_creation = false;
    MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation, ..Default::default() }
}
