//! What a topic's configuration means to storage and to the validation of batches.

use metadata::configs::{CompressionType, TimestampType as Stamp, TopicSettings};
use protocol::batch::{Compression, CompressionPolicy, ProduceRules, TimestampType};
use storage::LogOptions;
use storage::compaction::plan::Wishes;

/// The part of the settings that storage obeys.
pub fn log_options(settings: &TopicSettings) -> LogOptions {
    LogOptions {
        segment_bytes: settings.segment_bytes as u64,
        // What waits to be compacted has to leave the active segment in time.
        segment_ms: match settings.cleanup_policy.compact && settings.max_compaction_lag_ms > 0 {
            true => settings.segment_ms.min(settings.max_compaction_lag_ms),
            false => settings.segment_ms,
        },
        segment_jitter_ms: settings.segment_jitter_ms,
        segment_index_bytes: settings.segment_index_bytes as u32,
        index_interval_bytes: settings.index_interval_bytes as u32,
        retention_ms: settings.retention_ms,
        retention_bytes: settings.retention_bytes,
        cleanup_delete: settings.cleanup_policy.delete,
        cleanup_compact: settings.cleanup_policy.compact,
        delete_retention_ms: settings.delete_retention_ms,
        compaction: Wishes {
            min_compaction_lag_ms: settings.min_compaction_lag_ms,
            max_compaction_lag_ms: settings.max_compaction_lag_ms,
            min_cleanable_dirty_ratio: settings.min_cleanable_dirty_ratio,
        },
        flush_messages: settings.flush_messages,
        flush_ms: settings.flush_ms,
        file_delete_delay_ms: settings.file_delete_delay_ms,
        preallocate: settings.preallocate,
    }
}

/// The part of the settings that decides on a produced batch.
pub fn produce_rules(settings: &TopicSettings, api_version: i16, now_ms: i64) -> ProduceRules {
    ProduceRules {
        api_version,
        max_message_bytes: settings.max_message_bytes as usize,
        segment_bytes: settings.segment_bytes as usize,
        timestamp_type: match settings.message_timestamp_type {
            Stamp::CreateTime => TimestampType::CreateTime,
            Stamp::LogAppendTime => TimestampType::LogAppendTime,
        },
        before_max_ms: settings.message_timestamp_before_max_ms,
        after_max_ms: settings.message_timestamp_after_max_ms,
        now_ms,
        compression: compression(settings.compression),
        compacted: settings.cleanup_policy.compact,
    }
}

fn compression(wanted: CompressionType) -> CompressionPolicy {
    CompressionPolicy::Fixed(match wanted {
        CompressionType::Producer => return CompressionPolicy::Producer,
        CompressionType::Uncompressed => Compression::None,
        CompressionType::Gzip(level) => Compression::Gzip { level },
        CompressionType::Snappy => Compression::Snappy,
        CompressionType::Lz4(level) => Compression::Lz4 { level },
        CompressionType::Zstd(level) => Compression::Zstd { level },
    })
}
