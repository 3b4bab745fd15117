//! The keys of a group, and the broker keys that bound them.

use super::key::{ConfigKey, Kind, Rule};
use super::reason;
use super::served::GROUPS;

/// In the order of their names.
pub static GROUP_KEYS: &[ConfigKey] = &[
    ConfigKey::new("consumer.assignment.interval.ms", Kind::Int, "1000")
        .at_least(0)
        .synonyms(&["group.consumer.assignment.interval.ms"])
        .needs(GROUPS, reason::GROUPS)
        .doc("The least time between two assignments of this consumer group."),
    ConfigKey::new("consumer.heartbeat.interval.ms", Kind::Int, "5000")
        .at_least(1)
        .synonyms(&["group.consumer.heartbeat.interval.ms"])
        .needs(GROUPS, reason::GROUPS)
        .doc("How often members of this consumer group say that they live."),
    ConfigKey::new("consumer.session.timeout.ms", Kind::Int, "45000")
        .at_least(1)
        .synonyms(&["group.consumer.session.timeout.ms"])
        .needs(GROUPS, reason::GROUPS)
        .doc("After how long without a heartbeat a member of this consumer group is removed."),
    ConfigKey::new("errors.deadletterqueue.copy.record.enable", Kind::Boolean, "false")
        .inert(reason::SHARE_GROUPS)
        .doc("Whether a record that could not be processed is copied with its content."),
    ConfigKey::new("errors.deadletterqueue.topic.name", Kind::Text, "")
        .inert(reason::SHARE_GROUPS)
        .doc("Where records go that could not be processed."),
    ConfigKey::new("share.assignment.interval.ms", Kind::Int, "1000")
        .at_least(0)
        .synonyms(&["group.share.assignment.interval.ms"])
        .inert(reason::SHARE_GROUPS)
        .doc("The least time between two assignments of this share group."),
    ConfigKey::new("share.auto.offset.reset", Kind::Text, "latest")
        .inert(reason::SHARE_GROUPS)
        .doc("Where this share group begins to read: latest, earliest or by_duration:…"),
    ConfigKey::new("share.delivery.count.limit", Kind::Int, "5")
        .at_least(2)
        .synonyms(&["group.share.delivery.count.limit"])
        .inert(reason::SHARE_GROUPS)
        .doc("How often a record is delivered in this share group before it is given up."),
    ConfigKey::new("share.heartbeat.interval.ms", Kind::Int, "5000")
        .at_least(1)
        .synonyms(&["group.share.heartbeat.interval.ms"])
        .inert(reason::SHARE_GROUPS)
        .doc("How often members of this share group say that they live."),
    ConfigKey::new("share.isolation.level", Kind::Text, "read_uncommitted")
        .rule(Rule::OneOf(&["read_committed", "read_uncommitted"]))
        .inert(reason::SHARE_GROUPS)
        .doc("Whether this share group sees records of open and aborted transactions."),
    ConfigKey::new("share.partition.max.record.locks", Kind::Int, "2000")
        .at_least(100)
        .synonyms(&["group.share.partition.max.record.locks"])
        .inert(reason::SHARE_GROUPS)
        .doc("How many records of a partition this share group may have locked at once."),
    ConfigKey::new("share.record.lock.duration.ms", Kind::Int, "30000")
        .at_least(1000)
        .synonyms(&["group.share.record.lock.duration.ms"])
        .inert(reason::SHARE_GROUPS)
        .doc("How long a record stays locked for the member of this share group that got it."),
    ConfigKey::new("share.renew.acknowledge.enable", Kind::Boolean, "true")
        .inert(reason::SHARE_GROUPS)
        .doc("Whether members of this share group may prolong a lock."),
    ConfigKey::new("share.session.timeout.ms", Kind::Int, "45000")
        .at_least(1)
        .synonyms(&["group.share.session.timeout.ms"])
        .inert(reason::SHARE_GROUPS)
        .doc("After how long without a heartbeat a member of this share group is removed."),
    ConfigKey::new("streams.assignment.interval.ms", Kind::Int, "1000")
        .at_least(0)
        .synonyms(&["group.streams.assignment.interval.ms"])
        .inert(reason::STREAMS_GROUPS)
        .doc("The least time between two assignments of this streams group."),
    ConfigKey::unset("streams.assignor.name", Kind::Text)
        .synonyms(&["group.streams.assignors"])
        .inert(reason::STREAMS_GROUPS)
        .doc("The assignor of this streams group."),
    ConfigKey::new("streams.heartbeat.interval.ms", Kind::Int, "5000")
        .at_least(1)
        .synonyms(&["group.streams.heartbeat.interval.ms"])
        .inert(reason::STREAMS_GROUPS)
        .doc("How often members of this streams group say that they live."),
    ConfigKey::new("streams.initial.rebalance.delay.ms", Kind::Int, "3000")
        .at_least(0)
        .synonyms(&["group.streams.initial.rebalance.delay.ms"])
        .inert(reason::STREAMS_GROUPS)
        .doc("How long this streams group waits for more members while it is empty."),
    ConfigKey::new("streams.num.standby.replicas", Kind::Int, "0")
        .at_least(0)
        .synonyms(&["group.streams.num.standby.replicas"])
        .inert(reason::STREAMS_GROUPS)
        .doc("How many standby tasks each task of this streams group has."),
    ConfigKey::new("streams.rack.aware.assignment.tags", Kind::List, "")
        .low()
        .synonyms(&["group.streams.rack.aware.assignment.tags"])
        .inert(reason::STREAMS_GROUPS)
        .doc("Client tags over which this streams group spreads standby tasks."),
    ConfigKey::new("streams.session.timeout.ms", Kind::Int, "45000")
        .at_least(1)
        .synonyms(&["group.streams.session.timeout.ms"])
        .inert(reason::STREAMS_GROUPS)
        .doc("After how long without a heartbeat a member of this streams group is removed."),
];

/// A group key, and the broker keys between which its value has to lie.
pub(super) static GROUP_BOUNDS: &[(&str, Option<&str>, &str)] = &[
    (
        "consumer.assignment.interval.ms",
        Some("group.consumer.min.assignment.interval.ms"),
        "group.consumer.max.assignment.interval.ms",
    ),
    (
        "consumer.heartbeat.interval.ms",
        Some("group.consumer.min.heartbeat.interval.ms"),
        "group.consumer.max.heartbeat.interval.ms",
    ),
    (
        "consumer.session.timeout.ms",
        Some("group.consumer.min.session.timeout.ms"),
        "group.consumer.max.session.timeout.ms",
    ),
    (
        "share.assignment.interval.ms",
        Some("group.share.min.assignment.interval.ms"),
        "group.share.max.assignment.interval.ms",
    ),
    (
        "share.delivery.count.limit",
        Some("group.share.min.delivery.count.limit"),
        "group.share.max.delivery.count.limit",
    ),
    (
        "share.heartbeat.interval.ms",
        Some("group.share.min.heartbeat.interval.ms"),
        "group.share.max.heartbeat.interval.ms",
    ),
    (
        "share.partition.max.record.locks",
        Some("group.share.min.partition.max.record.locks"),
        "group.share.max.partition.max.record.locks",
    ),
    (
        "share.record.lock.duration.ms",
        Some("group.share.min.record.lock.duration.ms"),
        "group.share.max.record.lock.duration.ms",
    ),
    (
        "share.session.timeout.ms",
        Some("group.share.min.session.timeout.ms"),
        "group.share.max.session.timeout.ms",
    ),
    (
        "streams.assignment.interval.ms",
        Some("group.streams.min.assignment.interval.ms"),
        "group.streams.max.assignment.interval.ms",
    ),
    (
        "streams.heartbeat.interval.ms",
        Some("group.streams.min.heartbeat.interval.ms"),
        "group.streams.max.heartbeat.interval.ms",
    ),
    ("streams.num.standby.replicas", None, "group.streams.max.standby.replicas"),
    (
        "streams.session.timeout.ms",
        Some("group.streams.min.session.timeout.ms"),
        "group.streams.max.session.timeout.ms",
    ),
];
