//! The tables of keys: consistent in themselves, and with Kafka's names and defaults.

use std::collections::BTreeSet;

use metadata::configs::{Effect, Family, Importance, Kind, Scope, broker_keys, nearest};

const FAMILIES: [Family; 4] = [Family::Topic, Family::Broker, Family::Group, Family::ClientMetrics];

#[test]
fn every_key_is_found_by_its_name() {
    for family in FAMILIES {
        let mut seen = BTreeSet::new();
        for key in family.keys() {
            assert_eq!(family.find(key.name), Some(key), "{} is out of order", key.name);
            assert!(seen.insert(key.name), "{} is there twice", key.name);
        }
        assert_eq!(family.find("no.such.key"), None);
        assert_eq!(family.find(""), None);
    }
}

#[test]
fn every_default_is_a_value_of_its_key_in_canonical_form() {
    for key in FAMILIES.into_iter().flat_map(Family::keys) {
        let Some(default) = key.default else { continue };
        let value = key.parse(default).unwrap_or_else(|why| panic!("{}: {why}", key.name));
        assert_eq!(value.to_string(), default, "{}", key.name);
    }
}

#[test]
fn every_key_is_documented_and_every_synonym_exists() {
    for key in FAMILIES.into_iter().flat_map(Family::keys) {
        assert!(key.documentation.ends_with(['.', '…']), "{}", key.name);
        for synonym in key.synonyms {
            assert!(Family::Broker.find(synonym).is_some(), "{} of {}", synonym, key.name);
        }
        if let Effect::Inert(reason) | Effect::Refused(reason) = key.effect {
            assert!(!reason.is_empty(), "{}", key.name);
        }
    }
}

/// Topic defaults and those of the broker keys they come from are the same.
#[test]
fn a_topic_default_is_the_default_of_its_broker_key() {
    for key in Family::Topic.keys() {
        let Some(broker) = key
            .synonyms
            .iter()
            .find_map(|name| Family::Broker.find(name).filter(|key| key.default.is_some()))
        else {
            continue;
        };
        if key.synonyms.len() == 1 {
            assert_eq!(key.default, broker.default, "{}", key.name);
            assert_eq!(key.rule, broker.rule, "{}", key.name);
        }
        assert!(!matches!(broker.effect, Effect::Refused(_)), "{}", key.name);
    }
}

#[test]
fn topic_defaults_are_those_of_kafka_but_one() {
    let defaults = [
        ("cleanup.policy", "delete"),
        ("compression.type", "producer"),
        ("delete.retention.ms", "86400000"),
        ("file.delete.delay.ms", "60000"),
        ("flush.ms", "9223372036854775807"),
        ("index.interval.bytes", "4096"),
        ("local.retention.bytes", "-2"),
        ("max.message.bytes", "1048588"),
        ("message.timestamp.after.max.ms", "3600000"),
        ("min.cleanable.dirty.ratio", "0.5"),
        ("retention.bytes", "-1"),
        ("retention.ms", "604800000"),
        ("segment.bytes", "1073741824"),
        ("segment.index.bytes", "10485760"),
        ("segment.ms", "604800000"),
        ("flush.messages", "1"),
    ];
    for (name, default) in defaults {
        assert_eq!(Family::Topic.find(name).unwrap().default, Some(default), "{name}");
    }
    assert_eq!(Family::Topic.keys().count(), 37, "as many as Kafka 4.4 shows");
    assert_eq!(Family::Topic.find("message.format.version"), None, "gone in 4.0");
    assert_eq!(Family::Topic.find("message.downconversion.enable"), None);
}

#[test]
fn broker_keys_are_complete_and_scoped() {
    let public = broker_keys().filter(|key| !key.internal).count();
    assert_eq!(public, 353, "Kafka 4.4's public keys and its three dynamic rates");
    let scope = |name| Family::Broker.find(name).unwrap().scope;
    assert_eq!(scope("num.partitions"), Scope::ReadOnly);
    assert_eq!(scope("log.retention.ms"), Scope::ClusterWide);
    assert_eq!(scope("log.retention.hours"), Scope::ReadOnly);
    assert_eq!(scope("listeners"), Scope::PerNode);
    let key = Family::Broker.find("log.segment.bytes").unwrap();
    assert_eq!((key.kind, key.importance), (Kind::Int, Importance::High));
}

#[test]
fn an_unknown_name_suggests_the_nearest() {
    let broker = |name| nearest(Family::Broker, name);
    assert_eq!(broker("log.retention.mss"), Some("log.retention.ms"));
    assert_eq!(broker("num.partition"), Some("num.partitions"));
    assert_eq!(broker("auto.create.topic.enable"), Some("auto.create.topics.enable"));
    assert_eq!(broker("retention.ms"), Some("log.retention.ms"), "a topic's key");
    assert_eq!(broker("segment.bytes"), Some("log.segment.bytes"));
    assert_eq!(broker("colour"), None);
    assert_eq!(nearest(Family::Topic, "log.retention.ms"), Some("retention.ms"));
    assert_eq!(nearest(Family::Topic, "retention.msec"), Some("retention.ms"));
}
