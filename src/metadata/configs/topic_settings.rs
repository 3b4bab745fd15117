//! What a topic's configs come to: every value typed, overrides over the broker's defaults.

use super::key::ConfigKey;
use super::layers::BrokerLayers;
use super::topic_keys::TOPIC_KEYS;
use super::value::Value;
use crate::image::Overrides;

/// Effective values of one topic. Times in milliseconds, sizes in bytes, `i64::MAX` for "never".
#[derive(Debug, Clone, PartialEq)]
pub struct TopicSettings {
    pub cleanup_policy: CleanupPolicy,
    pub compression: CompressionType,
    pub delete_retention_ms: i64,
    pub file_delete_delay_ms: i64,
    /// 1: every write is durable before it is acknowledged.
    pub flush_messages: i64,
    pub flush_ms: i64,
    pub index_interval_bytes: i32,
    pub max_compaction_lag_ms: i64,
    pub max_message_bytes: i32,
    pub message_timestamp_after_max_ms: i64,
    pub message_timestamp_before_max_ms: i64,
    pub message_timestamp_type: TimestampType,
    pub min_cleanable_dirty_ratio: f64,
    pub min_compaction_lag_ms: i64,
    pub min_insync_replicas: i32,
    pub preallocate: bool,
    /// Negative: no limit.
    pub retention_bytes: i64,
    /// -1: for ever.
    pub retention_ms: i64,
    pub segment_bytes: i32,
    pub segment_index_bytes: i32,
    pub segment_jitter_ms: i64,
    pub segment_ms: i64,
    pub unclean_leader_election: bool,
}

/// Both may be false: then nothing is ever removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicy {
    pub delete: bool,
    pub compact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionType {
    /// As the producer sent it.
    Producer,
    Uncompressed,
    /// With the level, -1 for the usual one.
    Gzip(i32),
    Snappy,
    Lz4(i32),
    Zstd(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

impl TopicSettings {
    pub fn resolve(layers: &BrokerLayers<'_>, overrides: Option<&Overrides>) -> Self {
        let from = Effective { layers, overrides };
        let segment_bytes = from.find("internal.segment.bytes").and_then(|key| from.value(key));
        Self {
            cleanup_policy: from.cleanup_policy(),
            compression: from.compression(),
            delete_retention_ms: from.long("delete.retention.ms"),
            file_delete_delay_ms: from.long("file.delete.delay.ms"),
            flush_messages: from.long("flush.messages"),
            flush_ms: from.long("flush.ms"),
            index_interval_bytes: from.int("index.interval.bytes"),
            max_compaction_lag_ms: from.long("max.compaction.lag.ms"),
            max_message_bytes: from.int("max.message.bytes"),
            message_timestamp_after_max_ms: from.long("message.timestamp.after.max.ms"),
            message_timestamp_before_max_ms: from.long("message.timestamp.before.max.ms"),
            message_timestamp_type: match from.text("message.timestamp.type").as_str() {
                "LogAppendTime" => TimestampType::LogAppendTime,
                _ => TimestampType::CreateTime,
            },
            min_cleanable_dirty_ratio: from.fraction("min.cleanable.dirty.ratio"),
            min_compaction_lag_ms: from.long("min.compaction.lag.ms"),
            min_insync_replicas: from.int("min.insync.replicas"),
            preallocate: from.flag("preallocate"),
            retention_bytes: from.long("retention.bytes"),
            retention_ms: from.long("retention.ms"),
            segment_bytes: match segment_bytes {
                Some(Value::Whole(bytes)) => bytes as i32,
                _ => from.int("segment.bytes"),
            },
            segment_index_bytes: from.int("segment.index.bytes"),
            segment_jitter_ms: from.long("segment.jitter.ms"),
            segment_ms: from.long("segment.ms"),
            unclean_leader_election: from.flag("unclean.leader.election.enable"),
        }
    }

    /// How many replicas have to hold a write, of a partition that has `replicas`.
    pub fn needed_in_sync(&self, replicas: usize) -> usize {
        usize::try_from(self.min_insync_replicas).unwrap_or(1).clamp(1, replicas.max(1))
    }
}

/// The value of each key that counts for one topic.
pub(super) struct Effective<'a> {
    pub(super) layers: &'a BrokerLayers<'a>,
    pub(super) overrides: Option<&'a Overrides>,
}

impl Effective<'_> {
    pub(super) fn value(&self, key: &ConfigKey) -> Option<Value> {
        // What another release accepted may not parse here; then the default counts.
        let set = self.overrides.and_then(|all| all.get(key.name));
        set.and_then(|text| key.parse(text).ok()).or_else(|| self.layers.topic_default(key))
    }

    fn find(&self, name: &str) -> Option<&'static ConfigKey> {
        TOPIC_KEYS.iter().find(|key| key.name == name)
    }

    fn required(&self, name: &str) -> Value {
        match self.find(name).and_then(|key| self.value(key)) {
            Some(value) => value,
            None => panic!("the topic config {name} has no value"),
        }
    }

    fn long(&self, name: &str) -> i64 {
        match self.required(name) {
            Value::Whole(value) => value,
            other => panic!("the topic config {name} is {other:?}, no whole number"),
        }
    }

    fn int(&self, name: &str) -> i32 {
        // The parser keeps the values of such keys within 32 bits.
        self.long(name) as i32
    }

    fn fraction(&self, name: &str) -> f64 {
        match self.required(name) {
            Value::Fraction(value) => value,
            other => panic!("the topic config {name} is {other:?}, no fraction"),
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.required(name) == Value::Boolean(true)
    }

    fn text(&self, name: &str) -> String {
        self.required(name).to_string()
    }

    fn cleanup_policy(&self) -> CleanupPolicy {
        let Value::List(policies) = self.required("cleanup.policy") else {
            return CleanupPolicy { delete: true, compact: false };
        };
        let has = |name: &str| policies.iter().any(|policy| policy == name);
        CleanupPolicy { delete: has("delete"), compact: has("compact") }
    }

    fn compression(&self) -> CompressionType {
        match self.text("compression.type").as_str() {
            "uncompressed" => CompressionType::Uncompressed,
            "gzip" => CompressionType::Gzip(self.int("compression.gzip.level")),
            "snappy" => CompressionType::Snappy,
            "lz4" => CompressionType::Lz4(self.int("compression.lz4.level")),
            "zstd" => CompressionType::Zstd(self.int("compression.zstd.level")),
            _ => CompressionType::Producer,
        }
    }
}
