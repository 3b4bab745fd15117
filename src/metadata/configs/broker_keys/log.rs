//! Topics and their logs: the defaults of topic configs, and how logs are looked after.

use super::super::key::{ConfigKey, Kind, Rule};
use super::super::reason;
use super::super::served::REPLICATION;
use super::super::topic_keys::{CLEANUP_POLICIES, COMPRESSION_TYPES, NO_LIMIT, TIMESTAMP_TYPES};

// The same setting in several units, finest first.
const RETENTION: &[&str] = &["log.retention.ms", "log.retention.minutes", "log.retention.hours"];
const ROLL: &[&str] = &["log.roll.ms", "log.roll.hours"];
const ROLL_JITTER: &[&str] = &["log.roll.jitter.ms", "log.roll.jitter.hours"];
const FLUSH_INTERVAL: &[&str] = &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"];

pub(super) static LOG_KEYS: &[ConfigKey] = &[
    ConfigKey::unset("alter.config.policy.class.name", Kind::Class)
        .low()
        .refused(reason::PLUGINS)
        .doc("A class that may refuse a change of configs."),
    ConfigKey::new("auto.create.topics.enable", Kind::Boolean, "true").high().doc(
        "Whether a topic is created when a client asks for metadata of one that does not \
             exist.",
    ),
    ConfigKey::new("background.threads", Kind::Int, "10")
        .at_least(1)
        .high()
        .cluster_wide()
        .inert(reason::THREADS)
        .doc("How many threads do housekeeping."),
    ConfigKey::new("compression.gzip.level", Kind::Int, "-1")
        .rule(Rule::GzipLevel)
        .cluster_wide()
        .doc(
            "How hard gzip tries where a topic's compression.type is gzip; -1 is its usual \
             level.",
        ),
    ConfigKey::new("compression.lz4.level", Kind::Int, "9")
        .rule(Rule::Between(1, 17))
        .cluster_wide()
        .inert(reason::LZ4_LEVEL)
        .doc("How hard lz4 tries where a topic's compression.type is lz4."),
    ConfigKey::new("compression.type", Kind::Text, "producer")
        .rule(Rule::OneOf(COMPRESSION_TYPES))
        .high()
        .cluster_wide()
        .doc(
            "The codec in which topics store batches that do not say it themselves; producer \
             leaves them as sent.",
        ),
    ConfigKey::new("compression.zstd.level", Kind::Int, "3")
        .rule(Rule::Between(-131_072, 22))
        .cluster_wide()
        .doc("How hard zstd tries where a topic's compression.type is zstd."),
    ConfigKey::new("cordoned.log.dirs", Kind::List, "")
        .per_node()
        .inert(reason::ONE_DIRECTORY)
        .doc("Directories that take no new partitions."),
    ConfigKey::unset("create.topic.policy.class.name", Kind::Class)
        .low()
        .refused(reason::PLUGINS)
        .doc("A class that may refuse the creation of a topic."),
    ConfigKey::new("default.replication.factor", Kind::Int, "1")
        .doc("On how many hosts a topic is kept when its creator does not say."),
    ConfigKey::new("delete.records.purgatory.purge.interval.requests", Kind::Int, "1")
        .inert(reason::PURGATORY)
        .doc("After how many requests waiting deletions of records are cleared up."),
    ConfigKey::new("delete.topic.enable", Kind::Boolean, "true")
        .high()
        .doc("Whether topics may be deleted."),
    ConfigKey::new("fetch.purgatory.purge.interval.requests", Kind::Int, "1000")
        .inert(reason::PURGATORY)
        .doc("After how many requests waiting fetches are cleared up."),
    ConfigKey::new("log.cleaner.backoff.ms", Kind::Long, "15000")
        .at_least(0)
        .cluster_wide()
        .doc("How long the cleaner rests when nothing has to be compacted."),
    ConfigKey::new("log.cleaner.dedupe.buffer.size", Kind::Long, "134217728").cluster_wide().doc(
        "How much memory each core's cleaner may use to remember keys; an eighth of \
             --memory-per-core at most.",
    ),
    ConfigKey::new("log.cleaner.delete.retention.ms", Kind::Long, "86400000")
        .at_least(0)
        .cluster_wide()
        .doc("How long the mark of a deleted key stays in compacted topics."),
    ConfigKey::new("log.cleaner.enable", Kind::Boolean, "true")
        .doc("Whether topics with a compact policy are compacted."),
    ConfigKey::new("log.cleaner.io.buffer.load.factor", Kind::Double, "0.9")
        .cluster_wide()
        .doc("How full the cleaner's table of keys may become."),
    ConfigKey::new("log.cleaner.io.buffer.size", Kind::Int, "524288")
        .at_least(0)
        .cluster_wide()
        .doc("How many bytes a cleaner reads at once."),
    ConfigKey::new("log.cleaner.io.max.bytes.per.second", Kind::Double, "1.7976931348623157E308")
        .cluster_wide()
        .doc(
            "How fast all cleaners together may read and write; without a limit each core keeps \
             to 32 MiB a second, so that producers hardly notice.",
        ),
    ConfigKey::new("log.cleaner.max.compaction.lag.ms", Kind::Long, NO_LIMIT)
        .at_least(1)
        .cluster_wide()
        .doc("The longest time that a record of a compacted topic may wait to be compacted."),
    ConfigKey::new("log.cleaner.min.cleanable.ratio", Kind::Double, "0.5")
        .rule(Rule::Fraction(0.0, 1.0))
        .cluster_wide()
        .doc("Which share of a compacted log has to be new before it is compacted again."),
    ConfigKey::new("log.cleaner.min.compaction.lag.ms", Kind::Long, "0")
        .at_least(0)
        .cluster_wide()
        .doc("The shortest time that a record of a compacted topic stays untouched."),
    ConfigKey::new("log.cleaner.threads", Kind::Int, "1")
        .at_least(0)
        .cluster_wide()
        .inert(reason::CLEANER_THREADS)
        .doc("How many threads compact topics."),
    ConfigKey::new("log.cleanup.policy", Kind::List, "delete")
        .rule(Rule::EachOneOf(CLEANUP_POLICIES))
        .cluster_wide()
        .doc("What happens to old segments of topics that do not say it themselves."),
    ConfigKey::new("log.dir", Kind::List, "./coretide-data")
        .high()
        .refused(reason::DIRECTORIES)
        .doc("The data directory, where log.dirs is not set."),
    ConfigKey::new("log.dir.failure.timeout.ms", Kind::Long, "30000")
        .at_least(1)
        .low()
        .inert(reason::ONE_DIRECTORY)
        .doc("How long a host with a failed directory may wait to tell the controller."),
    ConfigKey::unset("log.dirs", Kind::List)
        .high()
        .refused(reason::DIRECTORIES)
        .doc("The data directories."),
    ConfigKey::new("log.flush.interval.messages", Kind::Long, "1")
        .at_least(1)
        .high()
        .cluster_wide()
        .doc(
            "After how many records a write has to be on stable storage; 1, the default here, \
             means each.",
        ),
    ConfigKey::unset("log.flush.interval.ms", Kind::Long)
        .high()
        .cluster_wide()
        .synonyms(FLUSH_INTERVAL)
        .doc("After how long records that were left in the page cache are synced."),
    ConfigKey::new("log.flush.offset.checkpoint.interval.ms", Kind::Int, "60000")
        .at_least(0)
        .high()
        .inert(reason::CHECKPOINTS)
        .doc("How often the points from which logs recover are written down."),
    ConfigKey::new("log.flush.scheduler.interval.ms", Kind::Long, NO_LIMIT)
        .high()
        .doc("How often logs are looked at for records that have to be synced."),
    ConfigKey::new("log.flush.start.offset.checkpoint.interval.ms", Kind::Int, "60000")
        .at_least(0)
        .high()
        .inert(reason::CHECKPOINTS)
        .doc("How often the first offsets of logs are written down."),
    ConfigKey::new("log.index.interval.bytes", Kind::Int, "4096")
        .at_least(0)
        .cluster_wide()
        .doc("How many bytes of records lie between two entries of an offset index."),
    ConfigKey::new("log.index.size.max.bytes", Kind::Int, "10485760")
        .at_least(4)
        .cluster_wide()
        .doc("How large an index may grow; a full index begins the next segment."),
    ConfigKey::new("log.local.retention.bytes", Kind::Long, "-2")
        .at_least(-2)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How many bytes stay on local disk when older ones are in remote storage."),
    ConfigKey::new("log.local.retention.ms", Kind::Long, "-2")
        .at_least(-2)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How long records stay on local disk when older ones are in remote storage."),
    ConfigKey::new("log.message.timestamp.after.max.ms", Kind::Long, "3600000")
        .at_least(0)
        .cluster_wide()
        .doc("How far a record's own time may lie in the future."),
    ConfigKey::new("log.message.timestamp.before.max.ms", Kind::Long, NO_LIMIT)
        .at_least(0)
        .cluster_wide()
        .doc("How far a record's own time may lie in the past."),
    ConfigKey::new("log.message.timestamp.type", Kind::Text, "CreateTime")
        .rule(Rule::OneOf(TIMESTAMP_TYPES))
        .cluster_wide()
        .doc("Whether records carry the time they were made or the time they were appended."),
    ConfigKey::new("log.preallocate", Kind::Boolean, "false")
        .cluster_wide()
        .inert(reason::PREALLOCATION)
        .doc("Whether the space of a new segment is taken from the file system at once."),
    ConfigKey::new("log.remote.copy.lag.bytes", Kind::Long, "-1")
        .at_least(-1)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How many bytes may wait before they are copied to remote storage."),
    ConfigKey::new("log.remote.copy.lag.ms", Kind::Long, "0")
        .at_least(-1)
        .cluster_wide()
        .inert(reason::REMOTE_STORAGE)
        .doc("How long a segment may wait before it is copied to remote storage."),
    ConfigKey::new("log.retention.bytes", Kind::Long, "-1")
        .high()
        .cluster_wide()
        .doc("How large a partition may grow before its oldest segments go; -1: no limit."),
    ConfigKey::new("log.retention.check.interval.ms", Kind::Long, "300000")
        .at_least(1)
        .doc("How often logs are looked at for segments that may go."),
    ConfigKey::new("log.retention.hours", Kind::Int, "168").high().synonyms(RETENTION).doc(
        "How long records are kept, in hours; log.retention.minutes and log.retention.ms \
             go before it.",
    ),
    ConfigKey::unset("log.retention.minutes", Kind::Int)
        .high()
        .synonyms(RETENTION)
        .doc("How long records are kept, in minutes; log.retention.ms goes before it."),
    ConfigKey::unset("log.retention.ms", Kind::Long)
        .high()
        .cluster_wide()
        .synonyms(RETENTION)
        .doc("How long records are kept; -1: for ever."),
    ConfigKey::new("log.roll.hours", Kind::Int, "168").at_least(1).high().synonyms(ROLL).doc(
        "After how many hours the next segment begins even if this one is not full; \
             log.roll.ms goes before it.",
    ),
    ConfigKey::new("log.roll.jitter.hours", Kind::Int, "0")
        .at_least(0)
        .high()
        .synonyms(ROLL_JITTER)
        .doc(
            "The most that is taken off log.roll.hours at random; log.roll.jitter.ms goes \
             before it.",
        ),
    ConfigKey::unset("log.roll.jitter.ms", Kind::Long)
        .high()
        .cluster_wide()
        .synonyms(ROLL_JITTER)
        .doc("The most that is taken off log.roll.ms at random, so that segments end apart."),
    ConfigKey::unset("log.roll.ms", Kind::Long)
        .high()
        .cluster_wide()
        .synonyms(ROLL)
        .doc("After how long the next segment begins even if this one is not full."),
    ConfigKey::new("log.segment.bytes", Kind::Int, "1073741824")
        .at_least(1_048_576)
        .high()
        .cluster_wide()
        .doc("How large a segment grows before the next begins."),
    ConfigKey::new("log.segment.delete.delay.ms", Kind::Long, "60000")
        .at_least(0)
        .high()
        .cluster_wide()
        .doc("How long the files of a dropped segment stay on disk for readers in flight."),
    ConfigKey::new("max.decompressed.message.bytes", Kind::Int, "2147483639")
        .rule(Rule::Between(1, 2_147_483_639))
        .cluster_wide()
        .inert(reason::DECOMPRESSION)
        .doc("How large a batch may become when it is decompressed."),
    ConfigKey::new("message.max.bytes", Kind::Int, "1048588")
        .at_least(0)
        .high()
        .cluster_wide()
        .doc("The largest batch that is accepted, as it is sent: after compression."),
    ConfigKey::new("min.insync.replicas", Kind::Int, "1").at_least(1).high().cluster_wide().doc(
        "How many replicas have to hold a write before a producer with acks=all hears of \
             success. Given at the cluster's first start it becomes the value of the whole \
             cluster, which is changed at run time.",
    ),
    ConfigKey::new("num.partitions", Kind::Int, "1")
        .at_least(1)
        .doc("How many partitions a topic has when its creator does not say."),
    ConfigKey::new("num.recovery.threads.per.data.dir", Kind::Int, "2")
        .at_least(1)
        .high()
        .cluster_wide()
        .inert(reason::THREADS)
        .doc("How many threads recover logs at start and close them at the end."),
    ConfigKey::new("producer.id.expiration.ms", Kind::Int, "86400000")
        .at_least(1)
        .low()
        .cluster_wide()
        .doc("After how long without a write a partition forgets an idempotent producer."),
    ConfigKey::new("producer.purgatory.purge.interval.requests", Kind::Int, "1000")
        .inert(reason::PURGATORY)
        .doc("After how many requests waiting produce requests are cleared up."),
    ConfigKey::new("share.fetch.purgatory.purge.interval.requests", Kind::Int, "1000")
        .inert(reason::PURGATORY)
        .doc("After how many requests waiting fetches of share groups are cleared up."),
    ConfigKey::new("unclean.leader.election.enable", Kind::Boolean, "false")
        .high()
        .cluster_wide()
        .needs(REPLICATION, reason::ELECTIONS)
        .doc("Whether a replica that is behind may lead when no other is left."),
];
