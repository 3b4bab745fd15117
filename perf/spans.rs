//! Lines of JSON about the spans of a run while it goes on, for who watches a long one from
//! outside. A span begins where the one before it ended; the first begins behind the warm-up.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use runtime::time::Instant;
use serde_json::json;

use crate::outcome::millis;
use crate::stage::Window;
use crate::tally::{Latency, Live, latency};

/// Where the next span ends, and what the sums were when it began.
pub struct Spans {
    length: Duration,
    counted_from: Instant,
    end: Instant,
    before: Option<Sums>,
}

#[derive(Debug, Clone, Copy)]
struct Sums {
    at: Instant,
    requests: u64,
    records: u64,
    bytes: u64,
    errors: u64,
}

impl Sums {
    fn of(live: &Live, at: Instant) -> Sums {
        let load = |sum: &std::sync::atomic::AtomicU64| sum.load(Ordering::Relaxed);
        Sums {
            at,
            requests: load(&live.requests),
            records: load(&live.acknowledged_records).max(load(&live.read_records)),
            bytes: load(&live.bytes),
            errors: load(&live.errors),
        }
    }
}

impl Spans {
    pub fn new(window: Window, length: Duration) -> Spans {
        let counted_from = window.counted_from;
        Spans { length, counted_from, end: counted_from, before: None }
    }

    /// When to ask for the next line.
    pub fn due(&self) -> Instant {
        self.end
    }

    /// The line about the span that ends now; none where the first one begins.
    pub fn line(&mut self, live: &Live, at: Instant) -> Option<String> {
        let now = Sums::of(live, at);
        let latency = take(live);
        self.end = self.end + self.length;
        let before = self.before.replace(now)?;
        let seconds = at.since(before.at).as_secs_f64().max(1e-9);
        let rate = |now: u64, before: u64| (now - before) as f64 / seconds;
        let of = |quantile: f64| millis(latency.value_at_quantile(quantile));
        let line = json!({
            "from_seconds": before.at.since(self.counted_from).as_secs_f64(),
            "seconds": seconds,
            "requests_per_second": rate(now.requests, before.requests),
            "records_per_second": rate(now.records, before.records),
            "megabytes_per_second": rate(now.bytes, before.bytes) / 1e6,
            "latency_ms": {
                "p50": of(0.5),
                "p99": of(0.99),
                "p99.9": of(0.999),
                "max": millis(latency.max()),
                "count": latency.len(),
            },
            "errors": now.errors - before.errors,
        });
        Some(line.to_string())
    }
}

/// The latencies of the span, which begins anew.
fn take(live: &Live) -> Latency {
    let Some(recent) = &live.recent else { return latency() };
    let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = recent.clone();
    recent.reset();
    taken
}
