//! AlterConfigs, IncrementalAlterConfigs, DescribeConfigs, ListConfigResources: what Kafka 4.4
//! answers to the same requests, and where ours differs.

use metadata::configs::{BrokerLayers, StaticSettings};
use metadata::controller::{
    Asked, LevelChange, Levels, alter_configs, describe_configs, incremental_alter_configs,
    list_config_resources,
};
use metadata::{ConfigResource, Decision, Image};
use protocol::messages::alter_configs as legacy;
use protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResult,
};
use protocol::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
};
use protocol::messages::list_config_resources::ListConfigResourcesRequest;
use protocol::{ErrorCode, NodeId, SlotIndex};

use crate::world::{HOST, after, context, one_host, text, with_topics};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const METRICS: i8 = 16;
const GROUP: i8 = 32;
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

const LOGGERS: &[(&str, &str)] = &[("root", "INFO"), ("storage", "INFO")];

type Change<'a> = (&'a str, i8, Option<&'a str>);

fn resource(kind: i8, name: &str, changes: &[Change<'_>]) -> AlterConfigsResource {
    let configs = changes.iter().map(|(key, operation, value)| AlterableConfig {
        name: text(key),
        config_operation: *operation,
        value: value.map(text),
    });
    AlterConfigsResource {
        resource_type: kind,
        resource_name: text(name),
        configs: configs.collect(),
    }
}

fn decide(
    image: &Image,
    resources: Vec<AlterConfigsResource>,
) -> (Decision<IncrementalAlterConfigsResponse>, Vec<LevelChange>) {
    let request = IncrementalAlterConfigsRequest { resources, validate_only: false };
    let levels = Levels { node: NodeId(1000), loggers: LOGGERS };
    incremental_alter_configs(&context(image, &StaticSettings::default()), levels, &request)
}

/// The code for one resource, and the image that follows.
fn alter(image: &Image, kind: i8, name: &str, changes: &[Change<'_>]) -> (Image, ErrorCode) {
    let (decision, _) = decide(image, vec![resource(kind, name, changes)]);
    let code = decision.response.responses[0].error_code;
    if code != ErrorCode::NONE {
        assert_eq!(decision.records, [], "what is refused leaves no record");
        assert!(decision.response.responses[0].error_message.is_some());
    }
    (after(image, &decision.records), code)
}

fn image_with_t() -> Image {
    with_topics(&one_host(2), &[("t", 1)])
}

fn of_t(image: &Image, key: &str) -> Option<String> {
    image.config(&ConfigResource::Topic(text("t")), key).map(|value| value.to_string())
}

#[test]
fn set_and_delete() {
    let (image, code) = alter(
        &image_with_t(),
        TOPIC,
        "t",
        &[("retention.ms", SET, Some("1234")), ("max.message.bytes", SET, Some(" +2000 "))],
    );
    assert_eq!(code, ErrorCode::NONE);
    assert_eq!(of_t(&image, "retention.ms").as_deref(), Some("1234"));
    assert_eq!(of_t(&image, "max.message.bytes").as_deref(), Some("2000"), "in one form");
    let (image, code) = alter(&image, TOPIC, "t", &[("retention.ms", DELETE, None)]);
    assert_eq!((code, of_t(&image, "retention.ms")), (ErrorCode::NONE, None));
    let never_set = [("segment.ms", DELETE, None), ("no.such", DELETE, None)];
    let (decision, _) = decide(&image, vec![resource(TOPIC, "t", &never_set)]);
    assert_eq!(decision.response.responses[0].error_code, ErrorCode::NONE);
    assert_eq!(decision.records, [], "nothing changes");
}

#[test]
fn setting_what_is_set_changes_nothing() {
    let set = [("retention.ms", SET, Some("1234"))];
    let (image, _) = alter(&image_with_t(), TOPIC, "t", &set);
    let (decision, _) = decide(&image, vec![resource(TOPIC, "t", &set)]);
    assert_eq!(decision.records, []);
}

/// §7: SUBTRACT may empty cleanup.policy; adding twice and taking what is not there are no errors.
#[test]
fn lists_grow_and_shrink() {
    let key = "leader.replication.throttled.replicas";
    let (image, code) = alter(&image_with_t(), TOPIC, "t", &[(key, APPEND, Some("0:1000,1:1000"))]);
    assert_eq!(code, ErrorCode::NONE);
    let (image, _) = alter(&image, TOPIC, "t", &[(key, APPEND, Some("1:1000, 2:1000"))]);
    assert_eq!(of_t(&image, key).as_deref(), Some("0:1000,1:1000,2:1000"));
    let (image, _) = alter(&image, TOPIC, "t", &[(key, SUBTRACT, Some("0:1000,7:7"))]);
    assert_eq!(of_t(&image, key).as_deref(), Some("1:1000,2:1000"));
    let (image, code) =
        alter(&image, TOPIC, "t", &[("cleanup.policy", SUBTRACT, Some("delete,foo"))]);
    assert_eq!(code, ErrorCode::NONE, "what is subtracted starts from the default");
    assert_eq!(of_t(&image, "cleanup.policy").as_deref(), Some(""));
    let (image, _) = alter(&image, TOPIC, "t", &[("cleanup.policy", APPEND, Some("delete"))]);
    assert_eq!(of_t(&image, "cleanup.policy").as_deref(), Some("delete"));
    for operation in [APPEND, SUBTRACT] {
        let (_, code) = alter(&image, TOPIC, "t", &[("retention.ms", operation, Some("5"))]);
        assert_eq!(code, ErrorCode::INVALID_CONFIG, "no list");
    }
    let (image, code) = alter(&image, TOPIC, "t", &[("cleanup.policy", APPEND, Some("compact"))]);
    assert_eq!(code, ErrorCode::NONE);
    assert_eq!(of_t(&image, "cleanup.policy").as_deref(), Some("delete,compact"));
}

#[test]
fn mistakes_are_refused_as_a_whole() {
    let image = image_with_t();
    let cases: [(&[Change<'_>], ErrorCode); 12] = [
        (&[("no.such.key", SET, Some("1"))], ErrorCode::INVALID_CONFIG),
        (&[("", SET, Some("1"))], ErrorCode::INVALID_CONFIG),
        (&[("retention.ms", SET, Some("soon"))], ErrorCode::INVALID_CONFIG),
        (&[("min.cleanable.dirty.ratio", SET, Some("2"))], ErrorCode::INVALID_CONFIG),
        (&[("retention.ms", SET, None)], ErrorCode::INVALID_REQUEST),
        (&[("cleanup.policy", APPEND, None)], ErrorCode::INVALID_REQUEST),
        (&[("retention.ms", 9, Some("1"))], ErrorCode::INVALID_REQUEST),
        (&[("retention.ms", -1, Some("1"))], ErrorCode::INVALID_REQUEST),
        (
            &[("retention.ms", SET, Some("1")), ("retention.ms", SET, Some("2"))],
            ErrorCode::INVALID_REQUEST,
        ),
        (
            &[("segment.ms", SET, Some("77777")), ("retention.ms", SET, Some("soon"))],
            ErrorCode::INVALID_CONFIG,
        ),
        (&[("remote.storage.enable", SET, Some("true"))], ErrorCode::INVALID_CONFIG),
        (
            &[("min.compaction.lag.ms", SET, Some("9")), ("max.compaction.lag.ms", SET, Some("5"))],
            ErrorCode::INVALID_CONFIG,
        ),
    ];
    for (changes, wanted) in cases {
        assert_eq!(alter(&image, TOPIC, "t", changes).1, wanted, "{changes:?}");
    }
    let lower = [("max.compaction.lag.ms", SET, Some("5"))];
    let (image, _) = alter(&image, TOPIC, "t", &lower);
    let (_, code) = alter(&image, TOPIC, "t", &[("min.compaction.lag.ms", SET, Some("9"))]);
    assert_eq!(code, ErrorCode::INVALID_CONFIG, "against what was set before");
}

#[test]
fn resources_that_are_none_are_refused() {
    let set = [("retention.ms", SET, Some("1"))];
    for (kind, name, wanted) in [
        (TOPIC, "missing", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode::INVALID_REQUEST),
        (TOPIC, "a/b", ErrorCode::INVALID_TOPIC_EXCEPTION),
        (BROKER, "987654", ErrorCode::INVALID_REQUEST),
        (BROKER, "-1", ErrorCode::INVALID_REQUEST),
        (BROKER, "one", ErrorCode::INVALID_REQUEST),
        (METRICS, "", ErrorCode::INVALID_REQUEST),
        (GROUP, "", ErrorCode::INVALID_REQUEST),
        (0, "x", ErrorCode::INVALID_REQUEST),
        (99, "x", ErrorCode::INVALID_REQUEST),
        (-1, "x", ErrorCode::INVALID_REQUEST),
    ] {
        assert_eq!(alter(&image_with_t(), kind, name, &set).1, wanted, "{kind} {name:?}");
    }
    let (decision, _) = decide(&image_with_t(), vec![]);
    assert_eq!(decision.response.responses, []);
}

#[test]
fn a_resource_in_a_request_twice_is_refused_both_times() {
    let one = resource(TOPIC, "t", &[("retention.ms", SET, Some("1"))]);
    let two = resource(TOPIC, "t", &[("segment.ms", SET, Some("77777"))]);
    let (decision, _) = decide(&image_with_t(), vec![one, two]);
    let codes: Vec<_> = decision.response.responses.iter().map(|it| it.error_code).collect();
    assert_eq!(codes, [ErrorCode::INVALID_REQUEST; 2]);
    assert_eq!(decision.records, []);
}

#[test]
fn validating_changes_nothing() {
    let changes = [("retention.ms", SET, Some("1"))];
    let request = IncrementalAlterConfigsRequest {
        resources: vec![resource(TOPIC, "t", &changes)],
        validate_only: true,
    };
    let levels = Levels { node: NodeId(1000), loggers: LOGGERS };
    let image = image_with_t();
    let statics = StaticSettings::default();
    let (decision, _) = incremental_alter_configs(&context(&image, &statics), levels, &request);
    assert_eq!(decision.response.responses[0].error_code, ErrorCode::NONE);
    assert_eq!(decision.records, []);
}

// ---- nodes

#[test]
fn broker_keys_have_a_scope() {
    let image = image_with_t();
    let code = |name: &str, change: Change<'_>| alter(&image, BROKER, name, &[change]).1;
    assert_eq!(code("", ("log.retention.ms", SET, Some("5"))), ErrorCode::NONE);
    assert_eq!(code("1000", ("log.retention.ms", SET, Some("5"))), ErrorCode::NONE);
    for (name, change) in [
        ("1000", ("num.partitions", SET, Some("5"))),
        ("", ("num.partitions", SET, Some("5"))),
        ("1000", ("broker.id", SET, Some("7"))),
        ("1000", ("log.retention.ms", SET, Some("soon"))),
        ("", ("message.max.bytes", SET, Some("-1"))),
        ("", ("listeners", SET, Some("PLAINTEXT://:1"))),
        ("1000", ("listeners", SET, Some("PLAINTEXT://:1"))),
        ("1000", ("ssl.keystore.location", SET, Some("/etc/passwd"))),
        ("", ("log.cleanup.policy", SET, Some("squeeze"))),
        ("", ("a.key", SET, Some("a\0b"))),
        ("", ("", SET, Some("a"))),
    ] {
        assert_eq!(code(name, change), ErrorCode::INVALID_REQUEST, "{name:?} {change:?}");
    }
}

/// As Kafka with eligible leader replicas: one number for the whole cluster.
#[test]
fn in_sync_replicas_are_a_matter_of_the_cluster() {
    let image = image_with_t();
    let key = "min.insync.replicas";
    let code = |name: &str, change: Change<'_>| alter(&image, BROKER, name, &[change]).1;
    assert_eq!(code("1000", (key, SET, Some("1"))), ErrorCode::INVALID_CONFIG);
    assert_eq!(code("", (key, DELETE, None)), ErrorCode::INVALID_CONFIG);
    assert_eq!(code("", (key, SET, Some("2"))), ErrorCode::NONE);
}

/// What was set in the cluster outranks what a start is given, and is told.
#[test]
fn what_a_start_is_given_in_vain_is_told() {
    let mut statics = StaticSettings::default();
    statics.set("min.insync.replicas", "2").unwrap();
    statics.set("num.partitions", "3").unwrap();
    statics.set("log.retention.bytes", "100").unwrap();
    let (image, _) = alter(&image_with_t(), BROKER, "", &[("min.insync.replicas", SET, Some("1"))]);
    let (image, _) = alter(&image, BROKER, "", &[("num.partitions", SET, Some(" 3"))]);
    let layers = BrokerLayers::of_node(&image, NodeId(1000), &statics);
    let told: Vec<String> = layers.outranked().iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("min.insync.replicas=2 was given at start"), "{told:?}");
    assert!(told[0].contains("set to 1 for the whole cluster"), "{told:?}");
    let (image, _) = alter(&image, BROKER, "1000", &[("log.retention.bytes", SET, Some("7"))]);
    let layers = BrokerLayers::of_node(&image, NodeId(1000), &statics);
    assert!(layers.outranked()[0].to_string().contains("for this node"));
}

#[test]
fn an_unknown_broker_key_is_kept_with_a_warning() {
    let (decision, _) =
        decide(&image_with_t(), vec![resource(BROKER, "", &[("no.such.key", SET, Some("1"))])]);
    assert_eq!(decision.response.responses[0].error_code, ErrorCode::NONE);
    assert_eq!(decision.records.len(), 1);
    assert!(decision.warnings[0].contains("no.such.key"), "{:?}", decision.warnings);
}

#[test]
fn a_broker_key_that_does_nothing_is_kept_with_a_warning() {
    let change = ("num.io.threads", SET, Some("16"));
    let (decision, _) = decide(&image_with_t(), vec![resource(BROKER, "", &[change])]);
    assert_eq!(decision.response.responses[0].error_code, ErrorCode::NONE);
    assert!(decision.warnings[0].contains("num.io.threads"), "{:?}", decision.warnings);
}

// ---- loggers, client metrics, groups

#[test]
fn levels_of_loggers_are_for_the_process_to_set() {
    let image = image_with_t();
    let change = [("storage", SET, Some("debug")), ("root", SET, Some("WARN"))];
    let (decision, levels) = decide(&image, vec![resource(LOGGER, "1001", &change)]);
    assert_eq!(decision.response.responses[0].error_code, ErrorCode::NONE);
    assert_eq!(decision.records, []);
    let wanted = [("storage", Some("DEBUG")), ("root", Some("WARN"))];
    assert_eq!(levels, wanted.map(|(logger, level)| LevelChange { logger, level }));
    for (name, change, wanted) in [
        ("1000", ("no.such", SET, Some("INFO")), ErrorCode::INVALID_CONFIG),
        ("1000", ("root", SET, Some("LOUD")), ErrorCode::INVALID_CONFIG),
        ("1000", ("root", DELETE, None), ErrorCode::INVALID_REQUEST),
        ("1000", ("root", APPEND, Some("INFO")), ErrorCode::INVALID_REQUEST),
        ("2000", ("root", SET, Some("INFO")), ErrorCode::INVALID_REQUEST),
    ] {
        assert_eq!(alter(&image, LOGGER, name, &[change]).1, wanted, "{change:?}");
    }
}

#[test]
fn subscriptions_to_client_metrics_are_kept() {
    let code = |change: Change<'_>| alter(&image_with_t(), METRICS, "sub", &[change]).1;
    assert_eq!(code(("interval.ms", SET, Some("1000"))), ErrorCode::NONE);
    assert_eq!(code(("interval.ms", SET, Some("10"))), ErrorCode::INVALID_REQUEST);
    assert_eq!(code(("foo", SET, Some("10"))), ErrorCode::INVALID_REQUEST);
    let good = "client_id=bar,client_software_name=x";
    assert_eq!(code(("match", SET, Some(good))), ErrorCode::NONE);
    assert_eq!(code(("match", SET, Some("foo=bar"))), ErrorCode::INVALID_CONFIG);
    assert_eq!(code(("match", SET, Some("client_id=["))), ErrorCode::INVALID_CONFIG);
}

#[test]
fn configs_of_groups_stay_within_the_brokers_bounds() {
    let code = |change: Change<'_>| alter(&image_with_t(), GROUP, "g", &[change]).1;
    assert_eq!(code(("consumer.session.timeout.ms", SET, Some("50000"))), ErrorCode::NONE);
    for text in ["10", "70000"] {
        let change = ("consumer.session.timeout.ms", SET, Some(text));
        assert_eq!(code(change), ErrorCode::INVALID_CONFIG, "{text}");
    }
    assert_eq!(code(("foo", SET, Some("10"))), ErrorCode::INVALID_CONFIG);
}

// ---- AlterConfigs

fn replace(
    image: &Image,
    kind: i8,
    name: &str,
    configs: &[(&str, Option<&str>)],
) -> (Image, ErrorCode) {
    let configs = configs
        .iter()
        .map(|(key, value)| legacy::AlterableConfig { name: text(key), value: value.map(text) });
    let resources = vec![legacy::AlterConfigsResource {
        resource_type: kind,
        resource_name: text(name),
        configs: configs.collect(),
    }];
    let request = legacy::AlterConfigsRequest { resources, validate_only: false };
    let decision = alter_configs(&context(image, &StaticSettings::default()), &request);
    (after(image, &decision.records), decision.response.responses[0].error_code)
}

#[test]
fn altering_replaces_everything() {
    let set = [("segment.ms", SET, Some("77777")), ("retention.ms", SET, Some("1"))];
    let (image, _) = alter(&image_with_t(), TOPIC, "t", &set);
    let (image, code) = replace(&image, TOPIC, "t", &[("retention.ms", Some("77"))]);
    assert_eq!(code, ErrorCode::NONE);
    assert_eq!(of_t(&image, "retention.ms").as_deref(), Some("77"));
    assert_eq!(of_t(&image, "segment.ms"), None);
    let (image, _) = replace(&image, TOPIC, "t", &[]);
    assert_eq!(of_t(&image, "retention.ms"), None);
}

#[test]
fn mistakes_in_altering_are_refused() {
    let image = image_with_t();
    let code =
        |kind, name: &str, configs: &[(&str, Option<&str>)]| replace(&image, kind, name, configs).1;
    assert_eq!(code(TOPIC, "t", &[("retention.ms", None)]), ErrorCode::INVALID_REQUEST);
    assert_eq!(code(TOPIC, "t", &[("retention.ms", Some("x"))]), ErrorCode::INVALID_CONFIG);
    assert_eq!(code(TOPIC, "t", &[("no.such", Some("1"))]), ErrorCode::INVALID_CONFIG);
    let twice = [("retention.ms", Some("1")), ("retention.ms", Some("2"))];
    assert_eq!(code(TOPIC, "t", &twice), ErrorCode::INVALID_REQUEST);
    let missing = code(TOPIC, "missing", &[("retention.ms", Some("1"))]);
    assert_eq!(missing, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(code(LOGGER, "1000", &[("root", Some("INFO"))]), ErrorCode::INVALID_REQUEST);
}

/// Kafka never answers this one.
#[test]
fn altering_a_resource_twice_is_answered() {
    let resource = legacy::AlterConfigsResource {
        resource_type: TOPIC,
        resource_name: text("t"),
        configs: vec![],
    };
    let request = legacy::AlterConfigsRequest {
        resources: vec![resource.clone(), resource],
        validate_only: false,
    };
    let image = image_with_t();
    let decision = alter_configs(&context(&image, &StaticSettings::default()), &request);
    let codes: Vec<_> = decision.response.responses.iter().map(|it| it.error_code).collect();
    assert_eq!(codes, [ErrorCode::INVALID_REQUEST; 2]);
}

// ---- DescribeConfigs

fn describe(image: &Image, kind: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsResult {
    let keys = keys.map(|keys| keys.iter().map(|key| text(key)).collect());
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: kind,
            resource_name: text(name),
            configuration_keys: keys,
        }],
        include_synonyms: true,
        include_documentation: true,
    };
    let asked = Asked { node: NodeId(1000), loggers: LOGGERS };
    let statics = StaticSettings::default();
    describe_configs(&context(image, &statics), asked, &request, &request.resources[0])
}

#[test]
fn unknown_resources_are_told_apart() {
    for (kind, name, wanted) in [
        (TOPIC, "missing", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", ErrorCode::INVALID_TOPIC_EXCEPTION),
        (BROKER, "987654", ErrorCode::INVALID_REQUEST),
        (BROKER, "one", ErrorCode::INVALID_REQUEST),
        (LOGGER, "", ErrorCode::INVALID_REQUEST),
        (LOGGER, "2000", ErrorCode::INVALID_REQUEST),
        (METRICS, "", ErrorCode::INVALID_REQUEST),
        (GROUP, "", ErrorCode::INVALID_REQUEST),
        (0, "x", ErrorCode::INVALID_REQUEST),
        (99, "x", ErrorCode::INVALID_REQUEST),
        (-1, "x", ErrorCode::INVALID_REQUEST),
    ] {
        let result = describe(&image_with_t(), kind, name, None);
        assert_eq!((result.error_code, result.configs.len()), (wanted, 0), "{kind} {name:?}");
        assert_eq!(result.resource_type, kind);
    }
}

/// Kafka calls an empty topic name invalid here and malformed when altering.
#[test]
fn an_empty_topic_name_is_an_invalid_topic() {
    let code = describe(&image_with_t(), TOPIC, "", None).error_code;
    assert_eq!(code, ErrorCode::INVALID_TOPIC_EXCEPTION);
}

#[test]
fn a_topic_is_described_with_documentation() {
    let result = describe(&image_with_t(), TOPIC, "t", Some(&["flush.messages", "retention.ms"]));
    assert_eq!(result.error_code, ErrorCode::NONE);
    assert_eq!(result.error_message, Some(text("")), "as Kafka");
    let [flush, retention] = &result.configs[..] else { panic!("{:?}", result.configs) };
    assert_eq!(
        (&*flush.value.clone().unwrap(), flush.config_source, flush.config_type),
        ("1", 5, 5)
    );
    assert_eq!(&*flush.synonyms[0].name, "log.flush.interval.messages");
    assert!(retention.documentation.as_ref().is_some_and(|text| text.len() > 20));
}

/// Nodes of one host answer for each other; all of them share flags and file.
#[test]
fn a_node_is_described_by_its_host() {
    let (image, _) =
        alter(&image_with_t(), BROKER, "1001", &[("message.max.bytes", SET, Some("7"))]);
    let of = |name: &str| {
        let result = describe(&image, BROKER, name, Some(&["message.max.bytes", "node.id"]));
        assert_eq!(result.error_code, ErrorCode::NONE);
        let all = result.configs.into_iter();
        all.map(|it| (it.value.unwrap().to_string(), it.config_source)).collect::<Vec<_>>()
    };
    assert_eq!(of("1000"), [("1048588".into(), 5), ("1000".into(), 4)]);
    assert_eq!(of("1001"), [("7".into(), 2), ("1001".into(), 4)]);
    assert_eq!(describe(&image, BROKER, "", None).configs, [], "nothing is set for all");
    assert!(describe(&image, BROKER, "1000", None).configs.len() > 300);
}

#[test]
fn loggers_metrics_and_groups_are_described() {
    let image = image_with_t();
    let loggers = describe(&image, LOGGER, "1001", None).configs;
    assert_eq!(loggers.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["root", "storage"]);
    assert!(loggers.iter().all(|it| it.config_source == 6));
    let (image, _) = alter(&image, METRICS, "sub", &[("interval.ms", SET, Some("1000"))]);
    let metrics = describe(&image, METRICS, "sub", None).configs;
    let sources: Vec<_> = metrics.iter().map(|it| (&*it.name, it.config_source)).collect();
    assert_eq!(sources, [("interval.ms", 7), ("match", 5), ("metrics", 5)]);
    let change = [("consumer.session.timeout.ms", SET, Some("50000"))];
    let (image, _) = alter(&image, GROUP, "g", &change);
    let group = describe(&image, GROUP, "g", Some(&["consumer.session.timeout.ms"])).configs;
    let synonyms: Vec<_> = group[0].synonyms.iter().map(|it| (&*it.name, it.source)).collect();
    assert_eq!(
        synonyms,
        [("consumer.session.timeout.ms", 8), ("group.consumer.session.timeout.ms", 5)]
    );
    assert_eq!(describe(&image, GROUP, "nope", None).configs.len(), 21);
}

// ---- ListConfigResources

#[test]
fn resources_are_listed_by_type() {
    let (image, _) = alter(&image_with_t(), METRICS, "sub", &[("interval.ms", SET, Some("1000"))]);
    let change = [("consumer.session.timeout.ms", SET, Some("50000"))];
    let (image, _) = alter(&image, GROUP, "g", &change);
    let list = |types: &[i8], version| {
        let request = ListConfigResourcesRequest { resource_types: types.to_vec() };
        let answer = list_config_resources(&image, &request, version);
        let names = answer.config_resources.iter().map(|it| it.resource_name.to_string());
        (answer.error_code, names.collect::<Vec<_>>())
    };
    assert_eq!(list(&[TOPIC], 1).1, ["t"]);
    assert_eq!(list(&[BROKER], 1).1, ["1000", "1001"]);
    assert_eq!(list(&[LOGGER], 1).1, ["1000", "1001"]);
    assert_eq!(list(&[GROUP, METRICS], 1).1, ["sub", "g"]);
    assert_eq!(list(&[], 1).1.len(), 7);
    assert_eq!(list(&[TOPIC], 0).1, ["sub"], "version 0 knows nothing else");
    assert_eq!(list(&[TOPIC, 99], 1), (ErrorCode::UNSUPPORTED_VERSION, vec![]));
}

#[test]
fn an_override_of_a_node_is_kept_by_host_and_slot() {
    let (image, _) =
        alter(&image_with_t(), BROKER, "1001", &[("message.max.bytes", SET, Some("7"))]);
    let of_slot_1 = ConfigResource::Node { host: HOST, slot: SlotIndex(1) };
    assert_eq!(image.config(&of_slot_1, "message.max.bytes"), Some(&text("7")));
}
