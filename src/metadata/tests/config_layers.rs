//! Which of several values counts, what is given at start, and what the broker reads of it.

use metadata::Image;
use metadata::configs::{
    BrokerLayers, BrokerSettings, CleanupPolicy, CompressionType, ConfigError, Described, Family,
    Source, StaticSettings, TimestampType, TopicSettings, describe_all_nodes, describe_node,
    describe_topic,
};
use metadata::image::Overrides;
use metadata::record::{ConfigChanged, ConfigResource, MetadataRecord};
use protocol::{NodeId, SlotIndex, Str};

use crate::world::{HOST, after, one_host, text};

const NODE: NodeId = NodeId(1000);

fn given(pairs: &[(&str, &str)]) -> StaticSettings {
    let mut statics = StaticSettings::default();
    for (name, value) in pairs {
        statics.set(name, value).unwrap();
    }
    statics
}

fn set(image: &Image, resource: ConfigResource, key: &'static str, value: &str) -> Image {
    let value = Some(text(value));
    let change = ConfigChanged { resource, key: key.into(), value };
    after(image, &[MetadataRecord::ConfigChanged(change)])
}

fn for_node() -> ConfigResource {
    ConfigResource::Node { host: HOST, slot: SlotIndex(0) }
}

fn overrides(pairs: &[(&'static str, &'static str)]) -> Overrides {
    pairs.iter().map(|&(key, value)| (Str::from(key), Str::from(value))).collect()
}

#[test]
fn defaults_make_every_write_durable() {
    let (image, statics) = (one_host(1), StaticSettings::default());
    let layers = BrokerLayers::of_node(&image, NODE, &statics);
    let settings = TopicSettings::resolve(&layers, None);
    assert_eq!(settings.flush_messages, 1);
    assert_eq!(settings.flush_ms, i64::MAX);
    assert_eq!(settings.cleanup_policy, CleanupPolicy { delete: true, compact: false });
    assert_eq!(settings.compression, CompressionType::Producer);
    assert_eq!(settings.message_timestamp_type, TimestampType::CreateTime);
    assert_eq!(settings.retention_ms, 604_800_000);
    assert_eq!(settings.segment_bytes, 1 << 30);
    assert_eq!(settings.needed_in_sync(1), 1);
    let broker = BrokerSettings::resolve(&layers);
    assert!(broker.auto_create_topics && broker.delete_topics);
    assert_eq!(broker.num_partitions, 1);
    assert_eq!(broker.offsets_topic.replication_factor, 3);
    assert_eq!(broker.socket_request_max_bytes, 104_857_600);
}

#[test]
fn the_strongest_layer_counts() {
    let statics = given(&[("max.connections", "1"), ("message.max.bytes", "1")]);
    let image = one_host(2);
    let limit = |image: &Image, node| {
        BrokerSettings::resolve(&BrokerLayers::of_node(image, node, &statics)).max_connections
    };
    assert_eq!(limit(&image, NODE), 1);
    let image = set(&image, ConfigResource::AllNodes, "max.connections", "2");
    assert_eq!(limit(&image, NODE), 2);
    let image = set(&image, for_node(), "max.connections", "3");
    assert_eq!(limit(&image, NODE), 3);
    assert_eq!(limit(&image, NodeId(1001)), 2, "only that node");
    let image = set(&image, for_node(), "message.max.bytes", "3");
    let layers = BrokerLayers::of_node(&image, NODE, &statics);
    let own = overrides(&[("max.message.bytes", "4")]);
    assert_eq!(TopicSettings::resolve(&layers, Some(&own)).max_message_bytes, 4);
    assert_eq!(TopicSettings::resolve(&layers, None).max_message_bytes, 3);
}

#[test]
fn the_finest_unit_counts() {
    let retention = |pairs: &[(&str, &str)]| {
        let (image, statics) = (one_host(1), given(pairs));
        let layers = BrokerLayers::of_node(&image, NODE, &statics);
        TopicSettings::resolve(&layers, None).retention_ms
    };
    assert_eq!(retention(&[("log.retention.hours", "2")]), 7_200_000);
    let both = [("log.retention.hours", "2"), ("log.retention.minutes", "3")];
    assert_eq!(retention(&both), 180_000);
    let all = [("log.retention.hours", "2"), ("log.retention.ms", "5")];
    assert_eq!(retention(&all), 5);
    assert_eq!(retention(&[("log.retention.ms", "-7")]), -1, "any negative is for ever");
    assert_eq!(retention(&[("log.retention.hours", "-1")]), -1);
}

#[test]
fn min_insync_replicas_is_capped_by_the_replicas_there_are() {
    let (image, statics) = (one_host(1), StaticSettings::default());
    let layers = BrokerLayers::of_node(&image, NODE, &statics);
    let own = overrides(&[("min.insync.replicas", "5")]);
    let settings = TopicSettings::resolve(&layers, Some(&own));
    assert_eq!(settings.needed_in_sync(1), 1);
    assert_eq!(settings.needed_in_sync(3), 3);
}

#[test]
fn compression_comes_with_its_level() {
    let (image, statics) = (one_host(1), StaticSettings::default());
    let layers = BrokerLayers::of_node(&image, NODE, &statics);
    let own = overrides(&[("compression.type", "zstd"), ("compression.zstd.level", "7")]);
    let settings = TopicSettings::resolve(&layers, Some(&own));
    assert_eq!(settings.compression, CompressionType::Zstd(7));
}

#[test]
fn small_segments_are_for_tests_and_stay_hidden() {
    let (image, statics) = (one_host(1), StaticSettings::default());
    let layers = BrokerLayers::of_node(&image, NODE, &statics);
    let own = overrides(&[("internal.segment.bytes", "4096")]);
    assert_eq!(TopicSettings::resolve(&layers, Some(&own)).segment_bytes, 4096);
    let shown = describe_topic(&layers, Some(&own), &Described::all());
    assert!(shown.iter().all(|config| config.name != "internal.segment.bytes"));
}

#[test]
fn how_often_patterns_are_matched_is_honoured_and_stays_hidden() {
    let (name, image) = ("group.consumer.regex.refresh.interval.ms", one_host(1));
    let refresh_ms = |statics: &StaticSettings| {
        let layers = BrokerLayers::of_node(&image, NODE, statics);
        BrokerSettings::resolve(&layers).groups.consumer.pattern_refresh_ms
    };
    assert_eq!(refresh_ms(&StaticSettings::default()), 600_000);
    assert_eq!(refresh_ms(&given(&[(name, "10000")])), 10_000);
    assert!(Family::Broker.find(name).is_some_and(|key| key.parse("9999").is_err()));
    assert!(Family::Broker.keys().all(|key| key.name != name));
}

// ---- given at start

#[test]
fn an_unknown_key_is_an_error_that_suggests_another() {
    let error = StaticSettings::default().set("log.segment.byte", "1").unwrap_err();
    assert!(error.to_string().contains("log.segment.bytes"), "{error}");
    let error = StaticSettings::default().set("retention.ms", "1").unwrap_err();
    assert!(error.to_string().contains("log.retention.ms"), "{error}");
}

#[test]
fn a_key_that_does_nothing_is_accepted_with_the_reason() {
    let mut statics = StaticSettings::default();
    for (name, value) in [
        ("zookeeper.connect", "localhost:2181"),
        ("num.io.threads", "16"),
        ("log.flush.offset.checkpoint.interval.ms", "1"),
        ("inter.broker.protocol.version", "3.9"),
    ] {
        let warning = statics.set(name, value).unwrap().expect("a warning");
        assert!(warning.to_string().starts_with(name), "{warning}");
    }
    assert_eq!(statics.set("num.io.threads", "8"), Ok(None), "its default needs no warning");
    assert_eq!(statics.set("num.partitions", "3"), Ok(None), "a key that counts needs none");
}

#[test]
fn a_setting_that_would_deceive_is_refused() {
    let mut statics = StaticSettings::default();
    for (name, value) in [
        ("ssl.client.auth", "required"),
        ("sasl.enabled.mechanisms", "PLAIN"),
        ("authorizer.class.name", "org.example.Authorizer"),
        ("listeners", "SSL://:9093"),
        ("log.dirs", "/a,/b"),
        ("remote.log.storage.system.enable", "true"),
    ] {
        let error = statics.set(name, value).unwrap_err();
        assert!(matches!(error, ConfigError::Refused { .. }), "{name}: {error}");
    }
    assert_eq!(statics.set("security.inter.broker.protocol", "PLAINTEXT"), Ok(None));
}

#[test]
fn a_value_given_at_start_has_to_parse() {
    let error = StaticSettings::default().set("num.partitions", "many").unwrap_err();
    assert!(matches!(error, ConfigError::Invalid { key: "num.partitions", .. }), "{error}");
    let error = StaticSettings::default().set("num.partitions", "0").unwrap_err();
    assert!(error.to_string().contains("at least 1"), "{error}");
}

// ---- shown

/// What Kafka 4.4 shows for the same history.
#[test]
fn an_override_hides_and_uncovers_synonyms() {
    let (image, statics) = (one_host(1), StaticSettings::default());
    let layers = BrokerLayers::of_node(&image, NODE, &statics);
    let own = overrides(&[("max.message.bytes", "2000"), ("retention.ms", "1234")]);
    let keys = [text("max.message.bytes"), text("retention.ms"), text("no.such.key")];
    let shown = describe_topic(&layers, Some(&own), &Described::keys(Some(&keys)));
    let lines: Vec<_> = shown.iter().map(|it| (it.name.to_string(), it.source)).collect();
    assert_eq!(
        lines,
        [("max.message.bytes".into(), Source::Topic), ("retention.ms".into(), Source::Topic)],
        "unknown keys are left out"
    );
    let names = |index: usize| {
        let synonyms = shown[index].synonyms.iter();
        synonyms
            .map(|it| (it.name.as_str(), it.value.as_deref().unwrap_or("null"), it.source))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(0),
        [
            ("max.message.bytes", "2000", Source::Topic),
            ("message.max.bytes", "1048588", Source::Default)
        ]
    );
    assert_eq!(names(1), [("retention.ms", "1234", Source::Topic)]);
    let shown = describe_topic(&layers, None, &Described::keys(Some(&keys)));
    assert_eq!(shown[1].value.as_deref(), Some("604800000"));
    assert_eq!((shown[1].source, shown[1].synonyms.len()), (Source::Default, 0));
}

#[test]
fn an_empty_list_of_keys_is_all_of_them() {
    let (image, statics) = (one_host(1), StaticSettings::default());
    let layers = BrokerLayers::of_node(&image, NODE, &statics);
    assert_eq!(describe_topic(&layers, None, &Described::keys(Some(&[]))).len(), 37);
    assert_eq!(describe_topic(&layers, None, &Described::keys(None)).len(), 37);
}

#[test]
fn a_node_shows_every_layer() {
    let image = set(&one_host(2), ConfigResource::AllNodes, "log.retention.ms", "99999999999");
    let statics = given(&[("log.retention.hours", "1")]);
    let layers = BrokerLayers::of_node(&image, NODE, &statics);
    let node = image.node(NODE).unwrap();
    let keys = [text("log.retention.ms")];
    let shown = describe_node(&layers, &node, &Described::keys(Some(&keys)));
    let synonyms: Vec<_> =
        shown[0].synonyms.iter().map(|it| (it.name.as_str(), it.source)).collect();
    assert_eq!(
        synonyms,
        [
            ("log.retention.ms", Source::AllNodes),
            ("log.retention.hours", Source::Static),
            ("log.retention.hours", Source::Default)
        ]
    );
    assert_eq!(shown[0].source, Source::AllNodes);
    let everything = describe_node(&layers, &node, &Described::all());
    let find = |name: &str| everything.iter().find(|it| it.name == *name).unwrap();
    assert_eq!(find("node.id").value.as_deref(), Some("1000"));
    let listeners = find("advertised.listeners");
    assert_eq!(listeners.value.as_deref(), Some("PLAINTEXT://host-1.example:9092"));
    let statics = {
        let mut statics = StaticSettings::default();
        statics.derive("listeners", "PLAINTEXT://[::]:9092".to_owned());
        statics
    };
    let slot_1 = image.node(NodeId(1001)).unwrap();
    let keys = [text("listeners")];
    let layers = BrokerLayers::of_node(&image, slot_1.id, &statics);
    let shown = describe_node(&layers, &slot_1, &Described::keys(Some(&keys)));
    assert_eq!(shown[0].value.as_deref(), Some("PLAINTEXT://[::]:9093"), "a port per slot");
    assert!(find("num.partitions").read_only && !find("log.retention.ms").read_only);
    assert!(find("ssl.key.password").sensitive);
    assert_eq!(find("log.retention.minutes").value, None);
}

#[test]
fn unknown_keys_of_a_node_hide_their_value() {
    let image = set(&one_host(1), for_node(), "a.plugin.secret", "hunter2");
    let image = set(&image, ConfigResource::AllNodes, "a.plugin.secret", "hunter3");
    let statics = StaticSettings::default();
    let layers = BrokerLayers::of_node(&image, NODE, &statics);
    let keys = [text("a.plugin.secret")];
    let node = image.node(NODE).unwrap();
    let shown = describe_node(&layers, &node, &Described::keys(Some(&keys)));
    assert_eq!((&shown[0].value, shown[0].sensitive), (&None, true));
    assert_eq!(shown[0].synonyms.iter().filter(|it| it.value.is_some()).count(), 0);
    let for_all = describe_all_nodes(&layers, &Described::all());
    assert_eq!(for_all.len(), 1);
    assert_eq!((for_all[0].source, &for_all[0].value), (Source::AllNodes, &None));
}
