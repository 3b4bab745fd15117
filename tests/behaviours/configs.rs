//! Configs of topics and of the broker, described and changed while it runs.

use protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult,
};
use protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use protocol::{ErrorCode, Str};

use crate::broker::Broker;
use crate::scenario::{Topic, batch, describe, metadata_request, new_name};
use crate::wire::Connection;

/// A topic's configs come with type, source, synonyms and documentation.
#[test]
fn configs_are_described_in_full() {
    let broker = Broker::shared();
    let topic = Topic::with_configs(broker, "described", &[("segment.bytes", "2097152")]);
    let mut connection = broker.connect(1);
    let configs = describe_all(&mut connection, TOPIC, &topic.name);
    let find = |name: &str| configs.iter().find(|it| &*it.name == name).unwrap();
    let segment = find("segment.bytes");
    assert_eq!((segment.value.as_deref(), segment.config_source), (Some("2097152"), DYNAMIC_TOPIC));
    let synonyms: Vec<_> = segment
        .synonyms
        .iter()
        .map(|it| (&*it.name, it.value.as_deref().unwrap(), it.source))
        .collect();
    let inherited = ("log.segment.bytes", "1073741824", DEFAULT);
    assert_eq!(synonyms, [("segment.bytes", "2097152", DYNAMIC_TOPIC), inherited]);
    assert!(configs.iter().all(|it| it.documentation.as_ref().is_some_and(|it| !it.is_empty())));
    let retention = find("retention.ms");
    assert_eq!(retention.value.as_deref(), Some("604800000"));
    assert_eq!(retention.config_source, DEFAULT);
}

/// A change holds for the next batch, on whichever slot leads, and its removal brings the default
/// back.
#[test]
fn topic_configs_change_at_once() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "changed");
    let long = "x".repeat(5_000);
    set_topic_config(broker, &topic, "max.message.bytes", "1000");
    for partition in [0, 1] {
        let outcome =
            topic.leader(broker, partition).produce_in(9, &topic, partition, batch(&[&long]));
        assert_eq!(outcome.error_code, ErrorCode::MESSAGE_TOO_LARGE);
    }
    let removal = change("max.message.bytes", DELETE, None);
    assert_eq!(alter(&mut broker.connect(1), TOPIC, &topic.name, removal).0, ErrorCode::NONE);
    for partition in [0, 1] {
        assert_eq!(topic.leader(broker, partition).write(&topic, partition, batch(&[&long])), 0);
    }
}

/// Unknown keys, impossible values and operations that do not exist are refused in words.
#[test]
fn odd_changes_are_refused() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "odd-change");
    let mut connection = broker.connect(0);
    let mut refused = |change| alter(&mut connection, TOPIC, &topic.name, change);
    let unknown = refused(change("retention.mss", SET, Some("1")));
    assert_eq!(unknown.0, ErrorCode::INVALID_CONFIG);
    assert!(unknown.1.contains("retention.ms"), "{}", unknown.1);
    assert_eq!(refused(change("retention.ms", SET, Some("x"))).0, ErrorCode::INVALID_CONFIG);
    assert_eq!(refused(change("retention.ms", 9, Some("1"))).0, ErrorCode::INVALID_REQUEST);
    assert_eq!(refused(change("retention.ms", SET, None)).0, ErrorCode::INVALID_REQUEST);
}

/// Broker configs that Kafka lets one change while brokers run can be changed here, take effect,
/// and hold after a restart in order as after kill -9.
#[test]
fn broker_configs_change_and_persist() {
    let mut broker = Broker::start_new();
    let every_node = Str::EMPTY;
    let mut connection = broker.connect(1);
    for (key, value) in [("message.max.bytes", "1000"), ("log.retention.ms", "123456789")] {
        let (error, why) =
            alter(&mut connection, BROKER, &every_node, change(key, SET, Some(value)));
        assert_eq!(error, ErrorCode::NONE, "{why}");
    }
    check_changed(&broker);
    broker.restart_in_order();
    check_changed(&broker);
    broker.restart_after_kill();
    check_changed(&broker);

    let removal = change("message.max.bytes", DELETE, None);
    let (error, why) = alter(&mut broker.connect(0), BROKER, &every_node, removal);
    assert_eq!(error, ErrorCode::NONE, "{why}");
    let topic = Topic::new(&broker, "wide-again");
    topic.leader(&broker, 0).write(&topic, 0, batch(&[&"x".repeat(5_000)]));
}

fn check_changed(broker: &Broker) {
    for node in ["1000", "1001"] {
        let configs = describe_all(&mut broker.connect(0), BROKER, &Str::from_static(node));
        let limit = configs.iter().find(|it| &*it.name == "message.max.bytes").unwrap();
        assert_eq!(limit.value.as_deref(), Some("1000"));
        assert_eq!(limit.config_source, DYNAMIC_DEFAULT_BROKER);
    }
    let topic = Topic::on_both_slots(broker, "narrow");
    for partition in [0, 1] {
        let mut leader = topic.leader(broker, partition);
        let outcome = leader.produce_in(9, &topic, partition, batch(&[&"x".repeat(5_000)]));
        assert_eq!(outcome.error_code, ErrorCode::MESSAGE_TOO_LARGE);
    }
    let configs = describe_all(&mut broker.connect(1), TOPIC, &topic.name);
    let retention = configs.iter().find(|it| &*it.name == "retention.ms").unwrap();
    assert_eq!(retention.value.as_deref(), Some("123456789"));
    assert_eq!(retention.config_source, DYNAMIC_DEFAULT_BROKER);
}

/// What is read once at start cannot be changed while the broker runs.
#[test]
fn read_only_broker_configs_stay() {
    let mut connection = Broker::shared().connect(0);
    let fixed = change("auto.create.topics.enable", SET, Some("false"));
    let (error, why) = alter(&mut connection, BROKER, &Str::EMPTY, fixed);
    assert!(matches!(error, ErrorCode::INVALID_REQUEST | ErrorCode::INVALID_CONFIG), "{error:?}");
    assert!(!why.is_empty());
    let name = new_name("still-created");
    let mut request = metadata_request(&name);
    request.allow_auto_topic_creation = true;
    connection.ask(9, &request);
    assert_eq!(describe(&mut connection, 9, &name).error_code, ErrorCode::NONE);
}

/// Sets one config of a topic.
pub fn set_topic_config(broker: &Broker, topic: &Topic, key: &str, value: &str) {
    let change = change(key, SET, Some(value));
    let (error, why) = alter(&mut broker.connect(0), TOPIC, &topic.name, change);
    assert_eq!(error, ErrorCode::NONE, "{why}");
}

fn change(name: &str, config_operation: i8, value: Option<&str>) -> AlterableConfig {
    let value = value.map(|value| Str::from(value.to_owned()));
    AlterableConfig { name: Str::from(name.to_owned()), config_operation, value }
}

/// Error and words of one change.
fn alter(
    connection: &mut Connection,
    resource_type: i8,
    resource_name: &Str,
    change: AlterableConfig,
) -> (ErrorCode, String) {
    let resource_name = resource_name.clone();
    let resource = AlterConfigsResource { resource_type, resource_name, configs: vec![change] };
    let request =
        IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let answer = connection.ask(1, &request).responses.remove(0);
    (answer.error_code, answer.error_message.unwrap_or_default().to_string())
}

fn describe_all(
    connection: &mut Connection,
    resource_type: i8,
    resource_name: &Str,
) -> Vec<DescribeConfigsResourceResult> {
    let resource_name = resource_name.clone();
    let resource =
        DescribeConfigsResource { resource_type, resource_name, configuration_keys: None };
    let request = DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: true,
        include_documentation: true,
    };
    let result = connection.ask(4, &request).results.remove(0);
    assert_eq!(result.error_code, ErrorCode::NONE, "{:?}", result.error_message);
    result.configs
}

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const SET: i8 = 0;
const DELETE: i8 = 1;
/// Sources in config answers.
const DYNAMIC_TOPIC: i8 = 1;
const DYNAMIC_DEFAULT_BROKER: i8 = 3;
const DEFAULT: i8 = 5;
