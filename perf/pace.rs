//! When the next request of a connection is due. Pure.

use std::time::Duration;

use runtime::time::Instant;

/// The schedule of one connection, and how many requests it has left.
#[derive(Debug, Clone)]
pub struct Pace {
    left: u64,
    steps: Option<Steps>,
}

/// Request `n` is due at `first + n * step`.
#[derive(Debug, Clone)]
struct Steps {
    first: Instant,
    step_seconds: f64,
    taken: u64,
}

impl Pace {
    /// Open if there is a rate, else closed.
    pub fn of(
        requests: u64,
        start: Instant,
        rate: Option<f64>,
        index: usize,
        count: usize,
    ) -> Pace {
        match rate {
            None => Pace::closed(requests),
            Some(per_second) => Pace::open(requests, start, per_second, index, count),
        }
    }

    /// A request is due whenever the pipeline has room.
    pub fn closed(requests: u64) -> Pace {
        Pace { left: requests, steps: None }
    }

    /// The schedule of connection `index` of `count` that together make `per_second` requests in
    /// even steps from `start` on.
    pub fn open(
        requests: u64,
        start: Instant,
        per_second: f64,
        index: usize,
        count: usize,
    ) -> Pace {
        assert!(per_second > 0.0, "a rate of {per_second}");
        let first = start + Duration::from_secs_f64(index as f64 / per_second);
        let step_seconds = count as f64 / per_second;
        Pace { left: requests, steps: Some(Steps { first, step_seconds, taken: 0 }) }
    }

    /// Whether requests are due at certain moments.
    pub fn is_scheduled(&self) -> bool {
        self.steps.is_some()
    }

    /// Whether no request is left.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// When the next request is due; `now` unless there is a schedule.
    pub fn due(&self, now: Instant) -> Instant {
        match &self.steps {
            None => now,
            Some(steps) => {
                steps.first + Duration::from_secs_f64(steps.step_seconds * steps.taken as f64)
            }
        }
    }

    /// Requests that are due before `end` and were not taken.
    pub fn behind(&self, end: Instant) -> u64 {
        let Some(steps) = &self.steps else { return 0 };
        let seconds = end.since(steps.first).as_secs_f64();
        let due_by_then = if end <= steps.first { 0.0 } else { seconds / steps.step_seconds };
        (due_by_then.ceil() as u64).saturating_sub(steps.taken).min(self.left)
    }

    /// Takes the next request if one is left and due: the moment it was due at.
    pub fn take(&mut self, now: Instant) -> Option<Instant> {
        let due = self.due(now);
        if self.is_spent() || due > now {
            return None;
        }
        self.left -= 1;
        if let Some(steps) = &mut self.steps {
            steps.taken += 1;
        }
        Some(due)
    }
}
