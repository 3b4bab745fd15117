//! Remote storage.

use super::super::key::{ConfigKey, Kind};
use super::super::reason;
use super::super::topic_keys::NO_LIMIT;

pub(super) static REMOTE_KEYS: &[ConfigKey] = &[
    ConfigKey::new("follower.replication.throttled.rate", Kind::Long, NO_LIMIT)
        .at_least(0)
        .cluster_wide()
        .inert(reason::THROTTLED_REPLICATION)
        .doc("How fast throttled replicas are copied to here, in bytes a second."),
    ConfigKey::new("leader.replication.throttled.rate", Kind::Long, NO_LIMIT)
        .at_least(0)
        .cluster_wide()
        .inert(reason::THROTTLED_REPLICATION)
        .doc("How fast throttled replicas are copied from here, in bytes a second."),
    ConfigKey::new("remote.fetch.max.wait.ms", Kind::Int, "500")
        .at_least(1)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How long a fetch may wait for remote data."),
    ConfigKey::new("remote.list.offsets.request.timeout.ms", Kind::Long, "30000")
        .at_least(1)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How long a lookup of offsets may wait for remote data."),
    ConfigKey::new("remote.log.index.file.cache.total.size.bytes", Kind::Long, "1073741824")
        .at_least(1)
        .low()
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How much of remote indexes is kept on local disk."),
    ConfigKey::new("remote.log.manager.copier.thread.pool.size", Kind::Int, "10")
        .at_least(1)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How many threads copy segments away."),
    ConfigKey::new("remote.log.manager.copy.max.bytes.per.second", Kind::Long, NO_LIMIT)
        .at_least(1)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How fast segments are copied away."),
    ConfigKey::new("remote.log.manager.copy.quota.window.num", Kind::Int, "11")
        .at_least(1)
        .inert(reason::REMOTE_STORAGE)
        .doc("Over how many samples that is measured."),
    ConfigKey::new("remote.log.manager.copy.quota.window.size.seconds", Kind::Int, "1")
        .at_least(1)
        .inert(reason::REMOTE_STORAGE)
        .doc("How long such a sample is."),
    ConfigKey::new("remote.log.manager.expiration.thread.pool.size", Kind::Int, "10")
        .at_least(1)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How many threads drop remote segments."),
    ConfigKey::new("remote.log.manager.fetch.max.bytes.per.second", Kind::Long, NO_LIMIT)
        .at_least(1)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How fast remote data is read."),
    ConfigKey::new("remote.log.manager.fetch.quota.window.num", Kind::Int, "11")
        .at_least(1)
        .inert(reason::REMOTE_STORAGE)
        .doc("Over how many samples that is measured."),
    ConfigKey::new("remote.log.manager.fetch.quota.window.size.seconds", Kind::Int, "1")
        .at_least(1)
        .inert(reason::REMOTE_STORAGE)
        .doc("How long such a sample is."),
    ConfigKey::new("remote.log.manager.follower.thread.pool.size", Kind::Int, "2")
        .at_least(1)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How many threads keep followers informed of remote data."),
    ConfigKey::new("remote.log.manager.task.interval.ms", Kind::Long, "30000")
        .at_least(1)
        .low()
        .inert(reason::REMOTE_STORAGE)
        .doc("How often work on remote data is looked for."),
    ConfigKey::new("remote.log.manager.thread.pool.size", Kind::Int, "2")
        .at_least(1)
        .inert(reason::REMOTE_STORAGE)
        .doc("How many threads do work on remote data."),
    ConfigKey::new("remote.log.metadata.custom.metadata.max.bytes", Kind::Int, "128")
        .at_least(0)
        .low()
        .inert(reason::REMOTE_STORAGE)
        .doc("How much a storage plugin may note about a segment."),
    ConfigKey::new(
        "remote.log.metadata.manager.class.name",
        Kind::Text,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
    )
    .inert(reason::REMOTE_STORAGE)
    .doc("The class that keeps track of remote segments."),
    ConfigKey::unset("remote.log.metadata.manager.class.path", Kind::Text)
        .inert(reason::REMOTE_STORAGE)
        .doc("Where that class is found."),
    ConfigKey::new("remote.log.metadata.manager.impl.prefix", Kind::Text, "rlmm.config.")
        .inert(reason::REMOTE_STORAGE)
        .doc("How keys meant for that class begin."),
    ConfigKey::unset("remote.log.metadata.manager.listener.name", Kind::Text)
        .inert(reason::REMOTE_STORAGE)
        .doc("The listener that this class connects to."),
    ConfigKey::new("remote.log.reader.max.pending.tasks", Kind::Int, "100")
        .at_least(1)
        .inert(reason::REMOTE_STORAGE)
        .doc("How many reads of remote data may wait."),
    ConfigKey::new("remote.log.reader.threads", Kind::Int, "10")
        .at_least(1)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How many threads read remote data."),
    ConfigKey::unset("remote.log.storage.manager.class.name", Kind::Text)
        .inert(reason::REMOTE_STORAGE)
        .doc("The class that stores segments elsewhere."),
    ConfigKey::unset("remote.log.storage.manager.class.path", Kind::Text)
        .inert(reason::REMOTE_STORAGE)
        .doc("Where that class is found."),
    ConfigKey::new("remote.log.storage.manager.impl.prefix", Kind::Text, "rsm.config.")
        .inert(reason::REMOTE_STORAGE)
        .doc("How keys meant for that class begin."),
    ConfigKey::new("remote.log.storage.system.enable", Kind::Boolean, "false")
        .refused(reason::REMOTE_STORAGE)
        .doc("Whether this broker can keep segments elsewhere."),
    ConfigKey::new("replica.alter.log.dirs.io.max.bytes.per.second", Kind::Long, NO_LIMIT)
        .at_least(0)
        .cluster_wide()
        .inert(reason::ONE_DIRECTORY)
        .doc("How fast replicas move between directories."),
];
