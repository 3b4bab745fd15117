//! Share groups and streams groups.

use super::super::key::{ConfigKey, Kind, Rule};
use super::super::reason;

pub(super) static SHARE_KEYS: &[ConfigKey] = &[
    ConfigKey::new("errors.deadletterqueue.auto.create.topics.enable", Kind::Boolean, "false")
        .cluster_wide()
        .inert(reason::SHARE_GROUPS)
        .doc("Whether topics for records that could not be processed are created when needed."),
    ConfigKey::new("errors.deadletterqueue.topic.name.prefix", Kind::Text, "dlq.")
        .cluster_wide()
        .inert(reason::SHARE_GROUPS)
        .doc("How the names of such topics have to begin."),
    ConfigKey::new("group.share.assignment.interval.ms", Kind::Int, "1000")
        .at_least(0)
        .cluster_wide()
        .inert(reason::SHARE_GROUPS)
        .doc("The least time between two assignments of a share group."),
    ConfigKey::new("group.share.assignors", Kind::List, "simple")
        .inert(reason::SHARE_GROUPS)
        .doc("The assignors of share groups."),
    ConfigKey::new("group.share.delivery.count.limit", Kind::Int, "5")
        .rule(Rule::Between(2, 10))
        .inert(reason::SHARE_GROUPS)
        .doc("How often a record is delivered before it is given up."),
    ConfigKey::new("group.share.heartbeat.interval.ms", Kind::Int, "5000")
        .at_least(1)
        .inert(reason::SHARE_GROUPS)
        .doc("How often members of a share group say that they live."),
    ConfigKey::new("group.share.max.assignment.interval.ms", Kind::Int, "15000")
        .at_least(0)
        .inert(reason::SHARE_GROUPS)
        .doc("The highest assignment interval that a share group may set for itself."),
    ConfigKey::new("group.share.max.delivery.count.limit", Kind::Int, "10")
        .rule(Rule::Between(5, 25))
        .inert(reason::SHARE_GROUPS)
        .doc("The highest delivery count that a share group may set for itself."),
    ConfigKey::new("group.share.max.heartbeat.interval.ms", Kind::Int, "15000")
        .at_least(1)
        .inert(reason::SHARE_GROUPS)
        .doc("The highest heartbeat interval that a share group may set for itself."),
    ConfigKey::new("group.share.max.partition.max.record.locks", Kind::Int, "4000")
        .rule(Rule::Between(2000, 10000))
        .inert(reason::SHARE_GROUPS)
        .doc("The highest number of locked records that a share group may set for itself."),
    ConfigKey::new("group.share.max.record.lock.duration.ms", Kind::Int, "60000")
        .rule(Rule::Between(30000, 3_600_000))
        .inert(reason::SHARE_GROUPS)
        .doc("The longest lock that a share group may set for itself."),
    ConfigKey::new("group.share.max.session.timeout.ms", Kind::Int, "60000")
        .at_least(1)
        .inert(reason::SHARE_GROUPS)
        .doc("The highest session timeout that a share group may set for itself."),
    ConfigKey::new("group.share.max.share.sessions", Kind::Int, "2000")
        .at_least(1)
        .inert(reason::SHARE_GROUPS)
        .doc("How many sessions of share consumers a broker remembers."),
    ConfigKey::new("group.share.max.size", Kind::Int, "200")
        .rule(Rule::Between(1, 1000))
        .inert(reason::SHARE_GROUPS)
        .doc("How many members a share group may have."),
    ConfigKey::new("group.share.min.assignment.interval.ms", Kind::Int, "0")
        .at_least(0)
        .inert(reason::SHARE_GROUPS)
        .doc("The lowest assignment interval that a share group may set for itself."),
    ConfigKey::new("group.share.min.delivery.count.limit", Kind::Int, "2")
        .rule(Rule::Between(2, 5))
        .inert(reason::SHARE_GROUPS)
        .doc("The lowest delivery count that a share group may set for itself."),
    ConfigKey::new("group.share.min.heartbeat.interval.ms", Kind::Int, "5000")
        .at_least(1)
        .inert(reason::SHARE_GROUPS)
        .doc("The lowest heartbeat interval that a share group may set for itself."),
    ConfigKey::new("group.share.min.partition.max.record.locks", Kind::Int, "100")
        .rule(Rule::Between(100, 2000))
        .inert(reason::SHARE_GROUPS)
        .doc("The lowest number of locked records that a share group may set for itself."),
    ConfigKey::new("group.share.min.record.lock.duration.ms", Kind::Int, "15000")
        .rule(Rule::Between(1000, 30000))
        .inert(reason::SHARE_GROUPS)
        .doc("The shortest lock that a share group may set for itself."),
    ConfigKey::new("group.share.min.session.timeout.ms", Kind::Int, "45000")
        .at_least(1)
        .inert(reason::SHARE_GROUPS)
        .doc("The lowest session timeout that a share group may set for itself."),
    ConfigKey::new("group.share.partition.max.record.locks", Kind::Int, "2000")
        .rule(Rule::Between(100, 10000))
        .inert(reason::SHARE_GROUPS)
        .doc("How many records of a partition may be locked at once."),
    ConfigKey::new("group.share.record.lock.duration.ms", Kind::Int, "30000")
        .rule(Rule::Between(1000, 3_600_000))
        .inert(reason::SHARE_GROUPS)
        .doc("How long a record stays locked for the member that got it."),
    ConfigKey::new("group.share.session.timeout.ms", Kind::Int, "45000")
        .at_least(1)
        .inert(reason::SHARE_GROUPS)
        .doc("After how long without a heartbeat a member of a share group is removed."),
    ConfigKey::new("group.streams.assignment.interval.ms", Kind::Int, "1000")
        .at_least(0)
        .cluster_wide()
        .inert(reason::STREAMS_GROUPS)
        .doc("The least time between two assignments of a streams group."),
    ConfigKey::new("group.streams.assignors", Kind::List, "sticky")
        .inert(reason::STREAMS_GROUPS)
        .doc("The assignors of streams groups."),
    ConfigKey::new("group.streams.heartbeat.interval.ms", Kind::Int, "5000")
        .at_least(1)
        .inert(reason::STREAMS_GROUPS)
        .doc("How often members of a streams group say that they live."),
    ConfigKey::new("group.streams.initial.rebalance.delay.ms", Kind::Int, "3000")
        .at_least(0)
        .inert(reason::STREAMS_GROUPS)
        .doc("How long an empty streams group waits for more members."),
    ConfigKey::new("group.streams.max.assignment.interval.ms", Kind::Int, "15000")
        .at_least(0)
        .inert(reason::STREAMS_GROUPS)
        .doc("The highest assignment interval that a streams group may set for itself."),
    ConfigKey::new("group.streams.max.heartbeat.interval.ms", Kind::Int, "15000")
        .at_least(1)
        .inert(reason::STREAMS_GROUPS)
        .doc("The highest heartbeat interval that a streams group may set for itself."),
    ConfigKey::new("group.streams.max.session.timeout.ms", Kind::Int, "60000")
        .at_least(1)
        .inert(reason::STREAMS_GROUPS)
        .doc("The highest session timeout that a streams group may set for itself."),
    ConfigKey::new("group.streams.max.size", Kind::Int, "2147483647")
        .at_least(1)
        .inert(reason::STREAMS_GROUPS)
        .doc("How many members a streams group may have."),
    ConfigKey::new("group.streams.max.standby.replicas", Kind::Int, "2")
        .at_least(0)
        .inert(reason::STREAMS_GROUPS)
        .doc("The highest number of standby tasks that a streams group may set for itself."),
    ConfigKey::new("group.streams.min.assignment.interval.ms", Kind::Int, "0")
        .at_least(0)
        .inert(reason::STREAMS_GROUPS)
        .doc("The lowest assignment interval that a streams group may set for itself."),
    ConfigKey::new("group.streams.min.heartbeat.interval.ms", Kind::Int, "5000")
        .at_least(1)
        .inert(reason::STREAMS_GROUPS)
        .doc("The lowest heartbeat interval that a streams group may set for itself."),
    ConfigKey::new("group.streams.min.session.timeout.ms", Kind::Int, "45000")
        .at_least(1)
        .inert(reason::STREAMS_GROUPS)
        .doc("The lowest session timeout that a streams group may set for itself."),
    ConfigKey::new("group.streams.num.standby.replicas", Kind::Int, "0")
        .at_least(0)
        .inert(reason::STREAMS_GROUPS)
        .doc("How many standby tasks each task of a streams group has."),
    ConfigKey::new("group.streams.rack.aware.assignment.tags", Kind::List, "")
        .low()
        .inert(reason::STREAMS_GROUPS)
        .doc("Client tags over which standby tasks are spread."),
    ConfigKey::new("group.streams.session.timeout.ms", Kind::Int, "45000")
        .at_least(1)
        .inert(reason::STREAMS_GROUPS)
        .doc("After how long without a heartbeat a member of a streams group is removed."),
    ConfigKey::unset("group.streams.topology.description.plugin.class", Kind::Class)
        .refused(reason::PLUGINS)
        .doc("A class that keeps descriptions of topologies."),
    ConfigKey::new("share.coordinator.append.linger.ms", Kind::Int, "-1")
        .at_least(-1)
        .inert(reason::SHARE_GROUPS)
        .doc("How long the coordinator of share state collects writes."),
    ConfigKey::new("share.coordinator.cached.buffer.max.bytes", Kind::Int, "1048588")
        .at_least(524_288)
        .cluster_wide()
        .inert(reason::SHARE_GROUPS)
        .doc("The largest write buffer that it keeps for later use."),
    ConfigKey::new("share.coordinator.load.buffer.size", Kind::Int, "5242880")
        .at_least(1)
        .high()
        .inert(reason::SHARE_GROUPS)
        .doc("How much it reads at once when it loads."),
    ConfigKey::new("share.coordinator.snapshot.update.records.per.snapshot", Kind::Int, "500")
        .rule(Rule::Between(0, 500))
        .inert(reason::SHARE_GROUPS)
        .doc("How many updates follow one snapshot of share state."),
    ConfigKey::new("share.coordinator.state.topic.compression.codec", Kind::Int, "0")
        .high()
        .inert(reason::SHARE_GROUPS)
        .doc("The codec of the topic of share state."),
    ConfigKey::new("share.coordinator.state.topic.min.isr", Kind::Short, "2")
        .at_least(1)
        .high()
        .inert(reason::SHARE_GROUPS)
        .doc("How many replicas have to hold a write of share state."),
    ConfigKey::new("share.coordinator.state.topic.num.partitions", Kind::Int, "50")
        .at_least(1)
        .high()
        .inert(reason::SHARE_GROUPS)
        .doc("How many partitions the topic of share state is created with."),
    ConfigKey::new("share.coordinator.state.topic.replication.factor", Kind::Short, "3")
        .at_least(1)
        .high()
        .inert(reason::SHARE_GROUPS)
        .doc("On how many hosts share state is kept."),
    ConfigKey::new("share.coordinator.state.topic.segment.bytes", Kind::Int, "104857600")
        .at_least(1)
        .high()
        .inert(reason::SHARE_GROUPS)
        .doc("How large segments of the topic of share state grow."),
    ConfigKey::new("share.coordinator.threads", Kind::Int, "1")
        .at_least(1)
        .inert(reason::THREADS)
        .doc("How many threads coordinate share state."),
    ConfigKey::new("share.coordinator.write.timeout.ms", Kind::Int, "5000")
        .at_least(1)
        .high()
        .inert(reason::SHARE_GROUPS)
        .doc("How long a write of share state may wait for its replicas."),
];
