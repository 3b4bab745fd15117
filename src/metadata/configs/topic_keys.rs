//! The keys of a topic: Kafka 4.4's, with one default of our own (`flush.messages`).

use super::key::{ConfigKey, Kind, Rule};
use super::reason;
use super::served::REPLICATION;

/// The names of `compression.type`.
pub const COMPRESSION_TYPES: &[&str] =
    &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];
pub const TIMESTAMP_TYPES: &[&str] = &["CreateTime", "LogAppendTime"];
pub const CLEANUP_POLICIES: &[&str] = &["compact", "delete"];

/// The largest `i64`, as Kafka writes "no limit".
pub const NO_LIMIT: &str = "9223372036854775807";

/// In the order of their names.
pub static TOPIC_KEYS: &[ConfigKey] = &[
    ConfigKey::new("cleanup.policy", Kind::List, "delete")
        .rule(Rule::EachOneOf(CLEANUP_POLICIES))
        .synonyms(&["log.cleanup.policy"])
        .doc(
            "What happens to old segments: delete drops them once retention.ms or \
             retention.bytes is exceeded, compact keeps the latest value of each key, and both \
             together do both.",
        ),
    ConfigKey::new("compression.gzip.level", Kind::Int, "-1")
        .rule(Rule::GzipLevel)
        .synonyms(&["compression.gzip.level"])
        .doc("How hard gzip tries when compression.type is gzip; -1 is its usual level."),
    ConfigKey::new("compression.lz4.level", Kind::Int, "9")
        .rule(Rule::Between(1, 17))
        .synonyms(&["compression.lz4.level"])
        .inert(reason::LZ4_LEVEL)
        .doc("How hard lz4 tries when compression.type is lz4."),
    ConfigKey::new("compression.type", Kind::Text, "producer")
        .rule(Rule::OneOf(COMPRESSION_TYPES))
        .synonyms(&["compression.type"])
        .doc(
            "The codec in which batches are stored. With producer they stay as they were sent; \
             with any other value the broker compresses again what arrives in another codec.",
        ),
    ConfigKey::new("compression.zstd.level", Kind::Int, "3")
        .rule(Rule::Between(-131_072, 22))
        .synonyms(&["compression.zstd.level"])
        .doc("How hard zstd tries when compression.type is zstd."),
    ConfigKey::new("delete.retention.ms", Kind::Long, "86400000")
        .at_least(0)
        .synonyms(&["log.cleaner.delete.retention.ms"])
        .doc(
            "How long the mark of a deleted key stays in a compacted topic, and with it the time \
             a reader has to go from the first offset to the end without missing a deletion.",
        ),
    ConfigKey::new("errors.deadletterqueue.group.enable", Kind::Boolean, "false")
        .refused(reason::SHARE_GROUPS)
        .doc("Whether share groups may put records here that they could not process."),
    ConfigKey::new("file.delete.delay.ms", Kind::Long, "60000")
        .at_least(0)
        .synonyms(&["log.segment.delete.delay.ms"])
        .doc("How long the files of a dropped segment stay on disk for readers in flight."),
    ConfigKey::new("flush.messages", Kind::Long, "1")
        .at_least(1)
        .synonyms(&["log.flush.interval.messages"])
        .doc(
            "After how many records a write has to be on stable storage. With 1, the default \
             here, every acknowledged write survives a power loss. With more, writes are \
             acknowledged from the page cache: they survive a killed process only.",
        ),
    ConfigKey::new("flush.ms", Kind::Long, NO_LIMIT)
        .at_least(0)
        .synonyms(&["log.flush.interval.ms", "log.flush.scheduler.interval.ms"])
        .doc("After how long records that flush.messages left in the page cache are synced."),
    ConfigKey::new("follower.replication.throttled.replicas", Kind::List, "")
        .rule(Rule::ThrottledReplicas)
        .inert(reason::THROTTLED_REPLICATION)
        .doc("Replicas whose copying is slowed down at the follower: partition:node, or *."),
    ConfigKey::new("index.interval.bytes", Kind::Int, "4096")
        .at_least(0)
        .synonyms(&["log.index.interval.bytes"])
        .doc("How many bytes of records lie between two entries of the offset index."),
    ConfigKey::unset("internal.segment.bytes", Kind::Int)
        .at_least(1024)
        .internal()
        .doc("Replaces segment.bytes in tests that need many small segments."),
    ConfigKey::new("leader.replication.throttled.replicas", Kind::List, "")
        .rule(Rule::ThrottledReplicas)
        .inert(reason::THROTTLED_REPLICATION)
        .doc("Replicas whose copying is slowed down at the leader: partition:node, or *."),
    ConfigKey::new("local.retention.bytes", Kind::Long, "-2")
        .at_least(-2)
        .synonyms(&["log.local.retention.bytes"])
        .inert(reason::REMOTE_STORAGE)
        .doc("How many bytes stay on local disk when older ones are elsewhere; -2: as retained."),
    ConfigKey::new("local.retention.ms", Kind::Long, "-2")
        .at_least(-2)
        .synonyms(&["log.local.retention.ms"])
        .inert(reason::REMOTE_STORAGE)
        .doc("How long records stay on local disk when older ones are elsewhere; -2: as retained."),
    ConfigKey::new("max.compaction.lag.ms", Kind::Long, NO_LIMIT)
        .at_least(1)
        .synonyms(&["log.cleaner.max.compaction.lag.ms"])
        .doc("The longest time that a record of a compacted topic may wait to be compacted."),
    ConfigKey::new("max.decompressed.message.bytes", Kind::Int, "2147483639")
        .rule(Rule::Between(1, 2_147_483_639))
        .synonyms(&["max.decompressed.message.bytes"])
        .inert(reason::DECOMPRESSION)
        .doc("How large a batch may become when it is decompressed; a larger one is refused."),
    ConfigKey::new("max.message.bytes", Kind::Int, "1048588")
        .at_least(0)
        .synonyms(&["message.max.bytes"])
        .doc("The largest batch that is accepted, as it is sent: after compression."),
    ConfigKey::new("message.timestamp.after.max.ms", Kind::Long, "3600000")
        .at_least(0)
        .synonyms(&["log.message.timestamp.after.max.ms"])
        .doc("How far a record's own time may lie in the future; later ones are refused."),
    ConfigKey::new("message.timestamp.before.max.ms", Kind::Long, NO_LIMIT)
        .at_least(0)
        .synonyms(&["log.message.timestamp.before.max.ms"])
        .doc("How far a record's own time may lie in the past; earlier ones are refused."),
    ConfigKey::new("message.timestamp.type", Kind::Text, "CreateTime")
        .rule(Rule::OneOf(TIMESTAMP_TYPES))
        .synonyms(&["log.message.timestamp.type"])
        .doc("Whether records carry the time they were made or the time they were appended."),
    ConfigKey::new("min.cleanable.dirty.ratio", Kind::Double, "0.5")
        .rule(Rule::Fraction(0.0, 1.0))
        .synonyms(&["log.cleaner.min.cleanable.ratio"])
        .doc("Which share of a compacted log has to be new before it is compacted again."),
    ConfigKey::new("min.compaction.lag.ms", Kind::Long, "0")
        .at_least(0)
        .synonyms(&["log.cleaner.min.compaction.lag.ms"])
        .doc("The shortest time that a record of a compacted topic stays untouched."),
    ConfigKey::new("min.insync.replicas", Kind::Int, "1")
        .at_least(1)
        .synonyms(&["min.insync.replicas"])
        .doc(
            "How many replicas have to hold a write before a producer with acks=all hears of \
             success. Never more than the partition has.",
        ),
    ConfigKey::new("preallocate", Kind::Boolean, "false")
        .synonyms(&["log.preallocate"])
        .inert(reason::PREALLOCATION)
        .doc("Whether the space of a new segment is taken from the file system at once."),
    ConfigKey::new("remote.copy.lag.bytes", Kind::Long, "-1")
        .at_least(-1)
        .synonyms(&["log.remote.copy.lag.bytes"])
        .inert(reason::REMOTE_STORAGE)
        .doc("How many bytes may wait before they are copied to remote storage."),
    ConfigKey::new("remote.copy.lag.ms", Kind::Long, "0")
        .at_least(-1)
        .synonyms(&["log.remote.copy.lag.ms"])
        .inert(reason::REMOTE_STORAGE)
        .doc("How long a segment may wait before it is copied to remote storage."),
    ConfigKey::new("remote.log.copy.disable", Kind::Boolean, "false")
        .inert(reason::REMOTE_STORAGE)
        .doc("Whether copying to remote storage is suspended."),
    ConfigKey::new("remote.log.delete.on.disable", Kind::Boolean, "false")
        .inert(reason::REMOTE_STORAGE)
        .doc("Whether remote data goes when remote storage is turned off for the topic."),
    ConfigKey::new("remote.storage.enable", Kind::Boolean, "false")
        .refused(reason::REMOTE_STORAGE)
        .doc("Whether older segments of this topic move to remote storage."),
    ConfigKey::new("retention.bytes", Kind::Long, "-1")
        .synonyms(&["log.retention.bytes"])
        .doc("How large a partition may grow before its oldest segments go; -1: no limit."),
    ConfigKey::new("retention.ms", Kind::Long, "604800000")
        .at_least(-1)
        .synonyms(&["log.retention.ms", "log.retention.minutes", "log.retention.hours"])
        .doc("How long records are kept, by the largest timestamp of a segment; -1: for ever."),
    ConfigKey::new("segment.bytes", Kind::Int, "1073741824")
        .at_least(1_048_576)
        .synonyms(&["log.segment.bytes"])
        .doc("How large a segment grows before the next begins; retention drops whole segments."),
    ConfigKey::new("segment.index.bytes", Kind::Int, "10485760")
        .at_least(4)
        .synonyms(&["log.index.size.max.bytes"])
        .doc("How large an index may grow; a full index begins the next segment."),
    ConfigKey::new("segment.jitter.ms", Kind::Long, "0")
        .at_least(0)
        .synonyms(&["log.roll.jitter.ms", "log.roll.jitter.hours"])
        .doc("The most that is taken off segment.ms at random, so that segments end apart."),
    ConfigKey::new("segment.ms", Kind::Long, "604800000")
        .at_least(1)
        .synonyms(&["log.roll.ms", "log.roll.hours"])
        .doc("After how long the next segment begins even if this one is not full."),
    ConfigKey::new("unclean.leader.election.enable", Kind::Boolean, "false")
        .synonyms(&["unclean.leader.election.enable"])
        .needs(REPLICATION, reason::ELECTIONS)
        .doc(
            "Whether a replica that is behind may lead when no other is left, which loses what \
             it does not have.",
        ),
];
