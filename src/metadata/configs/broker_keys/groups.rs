//! Group coordination and committed offsets.

use super::super::key::{ConfigKey, Kind, Rule};
use super::super::reason;
use super::super::served::GROUPS;

pub(super) static GROUPS_KEYS: &[ConfigKey] = &[
    ConfigKey::new("group.consumer.assignment.interval.ms", Kind::Int, "1000")
        .at_least(0)
        .cluster_wide()
        .needs(GROUPS, reason::GROUPS)
        .doc("The least time between two assignments of a consumer group."),
    ConfigKey::new("group.consumer.assignor.offload.enable", Kind::Boolean, "true")
        .internal()
        .inert(reason::THREADS)
        .doc("Whether assignments are computed by threads of their own."),
    ConfigKey::new("group.consumer.assignors", Kind::List, "uniform,range")
        .rule(Rule::EachOneOf(&["uniform", "range"]))
        .needs(GROUPS, reason::GROUPS)
        .doc("The assignors that a consumer group may name; the first is its default."),
    ConfigKey::new("group.consumer.heartbeat.interval.ms", Kind::Int, "5000")
        .at_least(1)
        .needs(GROUPS, reason::GROUPS)
        .doc("How often members of a consumer group say that they live."),
    ConfigKey::new("group.consumer.max.assignment.interval.ms", Kind::Int, "15000")
        .at_least(0)
        .needs(GROUPS, reason::GROUPS)
        .doc("The highest assignment interval that a group may set for itself."),
    ConfigKey::new("group.consumer.max.heartbeat.interval.ms", Kind::Int, "15000")
        .at_least(1)
        .needs(GROUPS, reason::GROUPS)
        .doc("The highest heartbeat interval that a group may set for itself."),
    ConfigKey::new("group.consumer.max.session.timeout.ms", Kind::Int, "60000")
        .at_least(1)
        .needs(GROUPS, reason::GROUPS)
        .doc("The highest session timeout that a group may set for itself."),
    ConfigKey::new("group.consumer.max.size", Kind::Int, "2147483647")
        .at_least(1)
        .needs(GROUPS, reason::GROUPS)
        .doc("How many members a consumer group may have."),
    ConfigKey::new("group.consumer.migration.policy", Kind::Text, "bidirectional")
        .rule(Rule::OneOfIgnoringCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"]))
        .needs(GROUPS, reason::GROUPS)
        .doc(
            "In which directions a group may change between the classic and the consumer \
             protocol.",
        ),
    ConfigKey::new("group.consumer.min.assignment.interval.ms", Kind::Int, "0")
        .at_least(0)
        .needs(GROUPS, reason::GROUPS)
        .doc("The lowest assignment interval that a group may set for itself."),
    ConfigKey::new("group.consumer.min.heartbeat.interval.ms", Kind::Int, "5000")
        .at_least(1)
        .needs(GROUPS, reason::GROUPS)
        .doc("The lowest heartbeat interval that a group may set for itself."),
    ConfigKey::new("group.consumer.min.session.timeout.ms", Kind::Int, "45000")
        .at_least(1)
        .needs(GROUPS, reason::GROUPS)
        .doc("The lowest session timeout that a group may set for itself."),
    ConfigKey::new("group.consumer.regex.refresh.interval.ms", Kind::Int, "600000")
        .at_least(10_000)
        .internal()
        .needs(GROUPS, reason::GROUPS)
        .doc("How often a group looks again which topics its patterns stand for."),
    ConfigKey::new("group.consumer.session.timeout.ms", Kind::Int, "45000")
        .at_least(1)
        .needs(GROUPS, reason::GROUPS)
        .doc("After how long without a heartbeat a member of a consumer group is removed."),
    ConfigKey::new("group.coordinator.append.linger.ms", Kind::Int, "-1")
        .at_least(-1)
        .inert(reason::BATCHED_COMMITS)
        .doc(
            "How long a coordinator collects writes before it appends them; -1 adapts to the \
             load.",
        ),
    ConfigKey::new("group.coordinator.background.threads", Kind::Int, "2")
        .at_least(1)
        .high()
        .inert(reason::THREADS)
        .doc("How many threads compute assignments."),
    ConfigKey::new("group.coordinator.cached.buffer.max.bytes", Kind::Int, "1048588")
        .at_least(524_288)
        .cluster_wide()
        .inert(reason::BATCHED_COMMITS)
        .doc("The largest write buffer that a coordinator keeps for later use."),
    ConfigKey::new("group.coordinator.rebalance.protocols", Kind::List, "classic,consumer,streams")
        .rule(Rule::EachOneOf(&["consumer", "classic", "share", "streams"]))
        .needs(GROUPS, reason::GROUPS)
        .doc("Which kinds of group are served."),
    ConfigKey::new("group.coordinator.threads", Kind::Int, "4")
        .at_least(1)
        .high()
        .inert(reason::THREADS)
        .doc("How many threads coordinate groups."),
    ConfigKey::new("group.initial.rebalance.delay.ms", Kind::Int, "3000").doc(
        "How long an empty classic group waits for more members before its first \
             rebalance.",
    ),
    ConfigKey::new("group.max.session.timeout.ms", Kind::Int, "1800000")
        .doc("The highest session timeout that a member of a classic group may ask for."),
    ConfigKey::new("group.max.size", Kind::Int, "2147483647")
        .at_least(1)
        .doc("How many members a classic group may have."),
    ConfigKey::new("group.min.session.timeout.ms", Kind::Int, "6000")
        .doc("The lowest session timeout that a member of a classic group may ask for."),
    ConfigKey::new("offset.metadata.max.bytes", Kind::Int, "4096")
        .high()
        .doc("How much text may accompany a committed offset."),
    ConfigKey::new("offsets.commit.timeout.ms", Kind::Int, "5000")
        .at_least(1)
        .high()
        .inert(reason::BATCHED_COMMITS)
        .doc("How long an offset commit may wait for its replicas."),
    ConfigKey::new("offsets.load.buffer.size", Kind::Int, "5242880")
        .at_least(1)
        .high()
        .inert(reason::BATCHED_COMMITS)
        .doc("How much is read at once when a coordinator loads its offsets."),
    ConfigKey::new("offsets.retention.check.interval.ms", Kind::Long, "600000")
        .at_least(1)
        .high()
        .doc("How often offsets are looked at for those that may go."),
    ConfigKey::new("offsets.retention.minutes", Kind::Int, "10080")
        .at_least(1)
        .high()
        .doc("How long offsets of a group without members are kept."),
    ConfigKey::new("offsets.topic.compression.codec", Kind::Int, "0")
        .high()
        .inert(reason::INTERNAL_CODEC)
        .doc("The codec of the topic of committed offsets."),
    ConfigKey::new("offsets.topic.num.partitions", Kind::Int, "50")
        .at_least(1)
        .high()
        .doc("How many partitions the topic of committed offsets is created with."),
    ConfigKey::new("offsets.topic.replication.factor", Kind::Short, "3")
        .at_least(1)
        .high()
        .doc("On how many hosts committed offsets are kept; never more than there are."),
    ConfigKey::new("offsets.topic.segment.bytes", Kind::Int, "104857600")
        .at_least(1)
        .high()
        .doc("How large segments of the topic of committed offsets grow."),
];
