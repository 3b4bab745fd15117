//! The life of topics: creation, growth, deletion, and a namesake.

use protocol::messages::create_partitions::{CreatePartitionsRequest, CreatePartitionsTopic};
use protocol::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest,
};
use protocol::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use protocol::{ErrorCode, Str, Uuid};

use crate::broker::Broker;
use crate::scenario::{
    Topic, batch, create, creation, describe, fetch_request, fetched, new_name, only_outcome,
    produce_request,
};

/// Kafka protocol behaviour 24: names that differ only in '.' and '_' collide.
#[test]
fn dots_and_underscores_collide() {
    let broker = Broker::shared();
    let mut connection = broker.connect(0);
    let name = new_name("a.b");
    let twin = Str::from(name.replace('.', "_"));
    let created = create(&mut connection, creation(&name, 1, 1, &[]));
    assert_eq!(created.error_code, ErrorCode::NONE);
    let refused = create(&mut connection, creation(&twin, 1, 1, &[]));
    assert_eq!(refused.error_code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    let again = create(&mut connection, creation(&name, 1, 1, &[]));
    assert_eq!(again.error_code, ErrorCode::TOPIC_ALREADY_EXISTS);
}

/// Kafka protocol behaviour 25: -1 for partitions and replication factor means the broker's
/// defaults; from version 5 on the answer holds all configs with their sources.
#[test]
fn minus_one_means_the_brokers_default() {
    let broker = Broker::shared();
    let name = new_name("defaults");
    let request = creation(&name, -1, -1, &[("retention.ms", "1234567")]);
    let created = create(&mut broker.connect(1), request);
    let told = (created.error_code, created.num_partitions, created.replication_factor);
    assert_eq!(told, (ErrorCode::NONE, 1, 1));
    assert!(!created.topic_id.is_zero());
    let configs = created.configs.unwrap();
    let config = |name: &str| configs.iter().find(|it| &*it.name == name).unwrap();
    let retention = config("retention.ms");
    assert_eq!(retention.value.as_deref(), Some("1234567"));
    assert_eq!(retention.config_source, DYNAMIC_TOPIC);
    assert_eq!(config("segment.bytes").config_source, DEFAULT);
    assert_eq!(Topic::find(broker, &name).leaders.len(), 1);
}

/// Kafka protocol behaviour 25: an assignment by hand goes with -1 for both numbers only.
#[test]
fn assignments_by_hand_leave_the_numbers_open() {
    let broker = Broker::shared();
    let mut connection = broker.connect(0);
    let assigned = |partitions, factor| {
        let mut request = creation(&new_name("assigned"), partitions, factor, &[]);
        request.topics[0].assignments = [(0, 1001), (1, 1001)]
            .map(|(partition_index, node)| CreatableReplicaAssignment {
                partition_index,
                broker_ids: vec![node],
            })
            .to_vec();
        request
    };
    let refused = create(&mut connection, assigned(2, 1));
    assert_eq!(refused.error_code, ErrorCode::INVALID_REQUEST);
    let request = assigned(-1, -1);
    let name = request.topics[0].name.clone();
    let created = create(&mut connection, request);
    assert_eq!(created.error_code, ErrorCode::NONE, "{:?}", created.error_message);
    assert_eq!(Topic::find(broker, &name).leaders, [1, 1]);
}

/// Kafka protocol behaviour 25: validate_only makes nothing.
#[test]
fn validation_makes_nothing() {
    let broker = Broker::shared();
    let mut connection = broker.connect(0);
    let name = new_name("validated");
    let request = CreateTopicsRequest { validate_only: true, ..creation(&name, 3, 1, &[]) };
    let result = create(&mut connection, request);
    assert_eq!((result.error_code, result.num_partitions), (ErrorCode::NONE, 3));
    let found = describe(&mut connection, 9, &name);
    assert_eq!(found.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

/// Kafka protocol behaviour 25: configs that are null, unknown or out of range are INVALID_CONFIG,
/// with words that say which.
#[test]
fn odd_configs_are_refused_with_a_reason() {
    let broker = Broker::shared();
    let mut connection = broker.connect(0);
    let mut refusal = |key: &str, value: Option<&str>| -> CreatableTopicResult {
        let name = Str::from(key.to_owned());
        let value = value.map(|value| Str::from(value.to_owned()));
        let mut request = creation(&new_name("odd"), 1, 1, &[]);
        request.topics[0].configs = vec![CreatableTopicConfig { name, value }];
        create(&mut connection, request)
    };
    let odd = [
        ("retention.ms", None),
        ("retention.ms", Some("soon")),
        ("retention.ms", Some("-2")),
        ("retention.mss", Some("1")),
        ("cleanup.policy", Some("shred")),
        ("compression.type", Some("rar")),
    ];
    for (key, value) in odd {
        let result = refusal(key, value);
        assert_eq!(result.error_code, ErrorCode::INVALID_CONFIG, "{key}={value:?}");
        assert!(result.error_message.unwrap().contains(key), "{key}={value:?}");
    }
}

/// A config given twice counts as it was given last, and names that would collide with one another
/// are both made when they come in one request, as in Kafka.
#[test]
fn repetitions_within_a_request_are_taken() {
    let broker = Broker::shared();
    let mut connection = broker.connect(0);
    let configs = [("retention.ms", "1000"), ("retention.ms", "2000")];
    let result = create(&mut connection, creation(&new_name("given-twice"), 1, 1, &configs));
    assert_eq!(result.error_code, ErrorCode::NONE, "{:?}", result.error_message);
    let configs = result.configs.unwrap();
    let retention = configs.iter().find(|it| &*it.name == "retention.ms").unwrap();
    assert_eq!(retention.value.as_deref(), Some("2000"));

    let dotted = new_name("one.request");
    let mut request = creation(&dotted, 1, 1, &[]);
    let mut twin = request.topics[0].clone();
    twin.name = Str::from(dotted.replace('.', "_"));
    request.topics.push(twin);
    let results = connection.ask(7, &request).topics;
    assert!(results.iter().all(|it| it.error_code == ErrorCode::NONE), "{results:?}");

    let mut request = creation(&new_name("named-twice"), 1, 1, &[]);
    request.topics.push(request.topics[0].clone());
    let results = connection.ask(7, &request).topics;
    let errors: Vec<_> = results.iter().map(|it| it.error_code).collect();
    assert_eq!(errors, [ErrorCode::INVALID_REQUEST]);
}

/// What cannot be honoured is refused with a reason instead of being ignored.
#[test]
fn what_cannot_be_honoured_is_refused() {
    let mut connection = Broker::shared().connect(0);
    let unserved =
        [("remote.storage.enable", "true"), ("errors.deadletterqueue.group.enable", "true")];
    for config in unserved {
        let result = create(&mut connection, creation(&new_name("unserved"), 1, 1, &[config]));
        assert_eq!(result.error_code, ErrorCode::INVALID_CONFIG, "{config:?}");
        assert!(result.error_message.is_some_and(|reason| !reason.is_empty()));
    }
}

/// A replication factor counts hosts: on one host 1 is all there is, however many slots it has.
#[test]
fn the_replication_factor_counts_hosts() {
    let mut connection = Broker::shared().connect(0);
    for factor in [2, 3, 0, -2] {
        let result = create(&mut connection, creation(&new_name("factor"), 1, factor, &[]));
        assert_eq!(result.error_code, ErrorCode::INVALID_REPLICATION_FACTOR, "{factor}");
        assert!(result.error_message.is_some());
    }
}

/// Partitions can be added, and are spread over the slots; their number never shrinks.
#[test]
fn topics_grow() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "grows");
    topic.leader(broker, 0).write(&topic, 0, batch(&["kept"]));
    let mut connection = broker.connect(1);
    let mut grow = |count| {
        let asked = CreatePartitionsTopic { name: topic.name.clone(), count, assignments: None };
        let request = CreatePartitionsRequest {
            topics: vec![asked],
            timeout_ms: 30_000,
            ..Default::default()
        };
        connection.ask(3, &request).results.remove(0).error_code
    };
    assert_eq!(grow(4), ErrorCode::NONE);
    for count in [4, 3, 0] {
        assert_eq!(grow(count), ErrorCode::INVALID_PARTITIONS, "{count}");
    }
    let grown = Topic::find(broker, &topic.name);
    assert_eq!((grown.leaders.len(), grown.id), (4, topic.id));
    assert!(grown.leaders.contains(&0) && grown.leaders.contains(&1));
    assert_eq!(grown.leader(broker, 0).read(&grown, 0, 0), [(0, "kept".to_owned())]);
    assert_eq!(grown.leader(broker, 3).write(&grown, 3, batch(&["new"])), 0);
}

/// Kafka protocol behaviour 19: a topic made anew under the name of a deleted one has a new id and
/// none of the old data, on every slot, and its epochs do not look older.
#[test]
fn a_namesake_is_a_new_topic() {
    let broker = Broker::shared();
    let old = Topic::on_both_slots(broker, "namesake");
    for partition in [0, 1] {
        old.leader(broker, partition).write(&old, partition, batch(&["old", "data"]));
    }
    let epoch_of =
        |name: &Str| describe(&mut broker.connect(0), 12, name).partitions[0].leader_epoch;
    let old_epoch = epoch_of(&old.name);
    for round in 0..3 {
        old.delete(broker);
        let new = Topic::create(broker, old.name.clone(), 2, &[]);
        assert_ne!(new.id, old.id, "round {round}");
        assert!(epoch_of(&new.name) >= old_epoch);
        for partition in [0, 1] {
            let mut leader = new.leader(broker, partition);
            assert_eq!(leader.list_offset(&new, partition, -1).offset, 0);
            assert!(leader.read(&new, partition, 0).is_empty());
            assert_eq!(leader.write(&new, partition, batch(&["new"])), 0);
            assert_eq!(leader.read(&new, partition, 0), [(0, "new".to_owned())]);
        }
    }
    for slot in [0, 1] {
        let mut connection = broker.connect(slot);
        let stale = only_outcome(connection.ask(13, &produce_request(-1, &old, 0, batch(&["x"]))));
        assert_eq!(stale.error_code, ErrorCode::UNKNOWN_TOPIC_ID);
        let answer = connection.ask(13, &fetch_request(&[(&old, 0, 0)]));
        assert_eq!(fetched(&answer)[0].1.error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    }
}

/// A deleted topic is gone for every node, by name and by id; deleting it again is an error.
#[test]
fn deleted_topics_are_gone() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "deleted");
    topic.delete(broker);
    for slot in [0, 1] {
        let mut connection = broker.connect(slot);
        let found = describe(&mut connection, 12, &topic.name);
        assert_eq!(found.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        for partition in [0, 1] {
            let outcome = connection.produce_in(9, &topic, partition, batch(&["x"]));
            assert_eq!(outcome.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
            let data = connection.fetch_in(12, &topic, partition, 0);
            assert_eq!(data.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
    }
    let mut connection = broker.connect(0);
    let mut error_of = |state: DeleteTopicState| {
        let request =
            DeleteTopicsRequest { topics: vec![state], timeout_ms: 1, ..Default::default() };
        connection.ask(6, &request).responses.remove(0).error_code
    };
    let by_name = DeleteTopicState { name: Some(topic.name.clone()), topic_id: Uuid::ZERO };
    assert_eq!(error_of(by_name), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let by_id = DeleteTopicState { name: None, topic_id: topic.id };
    assert_eq!(error_of(by_id), ErrorCode::UNKNOWN_TOPIC_ID);
}

/// Sources in config answers.
const DYNAMIC_TOPIC: i8 = 1;
const DEFAULT: i8 = 5;
