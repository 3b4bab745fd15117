//! When the records of a partition were appended: a few moments remembered, by offset.
//!
//! Law: offsets and times of the moments rise; a record's time is that of the last moment at or
//! before its offset. Appends follow a moment by [`SPACING_MIN_MS`] at most, or by a tenth of its
//! age, so that an age is told up to a tenth too long, never too short. Times are this host's
//! clock at the append, not what producers wrote into records. What was appended before the
//! process began is not known here; whoever looks it up in the log hands it in by `learn`.

use std::collections::VecDeque;

/// Offset of a batch, and when it was appended, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    offset: i64,
    at_ms: i64,
    /// Looked up: nothing is known of what was appended behind it.
    learned: bool,
}

/// What is known of the time of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    At(i64),
    /// No earlier than this, and perhaps much later.
    After(i64),
    Unknown,
}

/// The moments of one partition.
#[derive(Debug, Default)]
pub struct Timeline {
    moments: VecDeque<Moment>,
}

impl Timeline {
    /// A batch was appended at `offset` now.
    pub fn note(&mut self, offset: i64, now_ms: i64) {
        if let Some(last) = self.moments.back() {
            if offset <= last.offset || now_ms < last.at_ms + SPACING_MIN_MS {
                return;
            }
            if self.moments.len() == MOMENTS_MAX {
                self.thin_out(now_ms);
            }
        }
        self.moments.push_back(Moment { offset, at_ms: now_ms, learned: false });
    }

    /// Somebody looked up when the record at `offset` was written.
    pub fn learn(&mut self, offset: i64, at_ms: i64) {
        let place = self.moments.partition_point(|it| it.offset < offset);
        if self.moments.len() == MOMENTS_MAX
            || self.moments.get(place).is_some_and(|it| it.offset == offset)
        {
            return;
        }
        let before = place.checked_sub(1).and_then(|before| self.moments.get(before));
        let at_ms = at_ms.max(before.map_or(i64::MIN, |it| it.at_ms));
        let at_ms = at_ms.min(self.moments.get(place).map_or(i64::MAX, |it| it.at_ms));
        self.moments.insert(place, Moment { offset, at_ms, learned: true });
    }

    /// When the record at `offset` was appended.
    pub fn appended(&self, offset: i64, now_ms: i64) -> Appended {
        let next = self.moments.partition_point(|it| it.offset <= offset);
        let Some(found) = next.checked_sub(1).and_then(|found| self.moments.get(found)) else {
            return Appended::Unknown;
        };
        match self.moments.get(next) {
            _ if !found.learned || found.offset == offset => Appended::At(found.at_ms),
            Some(next) if is_near(*found, *next, now_ms) => Appended::At(found.at_ms),
            _ => Appended::After(found.at_ms),
        }
    }

    /// Lets go of moments that others stand close enough to, and at least of the oldest.
    fn thin_out(&mut self, now_ms: i64) {
        let mut kept: VecDeque<Moment> = VecDeque::with_capacity(MOMENTS_MAX);
        let all = std::mem::take(&mut self.moments);
        for (place, moment) in all.iter().enumerate() {
            let neighbours = kept.back().zip(all.get(place + 1));
            if neighbours.is_none_or(|(before, after)| !is_near(*before, *after, now_ms)) {
                kept.push_back(*moment);
            }
        }
        if kept.len() == MOMENTS_MAX {
            kept.pop_front();
        }
        self.moments = kept;
    }
}

/// Whether a record between the two may be given the time of the first.
fn is_near(before: Moment, after: Moment, now_ms: i64) -> bool {
    let age_ms = (now_ms - before.at_ms).max(0);
    after.at_ms - before.at_ms <= (age_ms / 10).max(SPACING_MIN_MS)
}

const SPACING_MIN_MS: i64 = 200;
/// Enough for months at a tenth between them.
const MOMENTS_MAX: usize = 200;
