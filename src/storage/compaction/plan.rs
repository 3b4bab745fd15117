//! Which part of a log is to be cleaned, whether it is worth it, and which segments become one.
//!
//! Law: only sealed segments are touched, only below the last stable offset, and none that is
//! younger than `min.compaction.lag.ms`. A segment counts whole. No clock and no I/O.

/// A sealed segment, as far as cleaning wants to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub base_offset: i64,
    /// Base offset of the segment that follows.
    pub next_base: i64,
    /// Bytes of its batches.
    pub size: u64,
    /// Bytes of its offset index and of its time index.
    pub index_bytes: (u64, u64),
    /// Its largest timestamp, or the age of its file where no batch has one; milliseconds.
    pub newest_ms: i64,
    /// Timestamp of its first batch, when that counts; −1 when it does not or there is none.
    pub first_ms: i64,
}

/// What a topic wants of cleaning, under Kafka's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wishes {
    pub min_compaction_lag_ms: i64,
    pub max_compaction_lag_ms: i64,
    pub min_cleanable_dirty_ratio: f64,
}

/// Where a log stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub log_start: i64,
    /// Up to here the log was cleaned, as far as is known.
    pub cleaned_to: i64,
    /// Nothing at or behind this offset may be touched.
    pub stable_to: i64,
}

/// What could be cleaned now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cleanable {
    /// Keys are mapped from here on.
    pub first_dirty: i64,
    /// End of the last segment that may be cleaned.
    pub to: i64,
    pub clean_bytes: u64,
    pub dirty_bytes: u64,
    /// Something has waited for longer than `max.compaction.lag.ms`.
    pub overdue: bool,
    /// Dirty share of what would be read.
    pub dirty_ratio: f64,
}

impl Cleanable {
    /// Whether the log is to be cleaned now.
    pub fn is_due(&self, wishes: &Wishes) -> bool {
        self.dirty_bytes > 0
            && (self.overdue || self.dirty_ratio > wishes.min_cleanable_dirty_ratio)
    }
}

/// What of a log could be cleaned at `now_ms`. `segments` are the sealed ones, oldest first.
pub fn cleanable(
    segments: &[Candidate],
    position: Position,
    wishes: &Wishes,
    now_ms: i64,
) -> Cleanable {
    let Position { log_start, cleaned_to, stable_to } = position;
    let end = segments.last().map_or(log_start, |last| last.next_base);
    // What is below the log start, or behind an end that fell, is not known to be clean.
    let valid = cleaned_to >= log_start && cleaned_to <= end.max(stable_to);
    let first_dirty = if valid { cleaned_to } else { log_start };
    let youngest = now_ms.saturating_sub(wishes.min_compaction_lag_ms);
    let is_settled = |segment: &&Candidate| {
        let too_young = wishes.min_compaction_lag_ms > 0 && segment.newest_ms > youngest;
        segment.next_base <= stable_to && (segment.next_base <= first_dirty || !too_young)
    };
    let settled = &segments[..segments.iter().take_while(is_settled).count()];
    let to = settled.last().map_or(first_dirty, |last| last.next_base).max(first_dirty);
    let is_dirty = |segment: &&Candidate| segment.next_base > first_dirty;
    let clean = settled.iter().filter(|segment| segment.base_offset < first_dirty);
    let clean_bytes: u64 = clean.map(|segment| segment.size).sum();
    let dirty_bytes: u64 = settled.iter().filter(is_dirty).map(|segment| segment.size).sum();
    let oldest = segments.iter().filter(is_dirty).map(|segment| segment.first_ms);
    let oldest = oldest.filter(|first_ms| *first_ms > 0).min().unwrap_or(i64::MAX);
    let overdue = oldest < now_ms.saturating_sub(wishes.max_compaction_lag_ms.max(0));
    let dirty_ratio = match clean_bytes + dirty_bytes {
        0 => 0.0,
        all => dirty_bytes as f64 / all as f64,
    };
    Cleanable { first_dirty, to, clean_bytes, dirty_bytes, overdue, dirty_ratio }
}

/// How large a segment may be that several become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimits {
    pub segment_bytes: u64,
    pub index_bytes: u64,
}

/// Neighbours that together fit one segment, in order; each segment is in one group. A segment
/// that is too large by itself is a group by itself.
pub fn grouped(segments: &[Candidate], limits: GroupLimits) -> Vec<&[Candidate]> {
    let mut groups = Vec::new();
    let mut rest = segments;
    while let Some(first) = rest.first() {
        let (mut bytes, mut offsets, mut times) = (0, 0, 0);
        let fits = |segment: &&Candidate| {
            bytes += segment.size;
            offsets += segment.index_bytes.0;
            times += segment.index_bytes.1;
            // Offsets in an index are relative and have 31 bits.
            let reach = segment.next_base - 1 - first.base_offset;
            bytes <= limits.segment_bytes
                && offsets.max(times) <= limits.index_bytes
                && reach <= i64::from(i32::MAX)
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (group, behind) = rest.split_at(count);
        groups.push(group);
        rest = behind;
    }
    groups
}
