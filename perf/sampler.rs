//! The thread beside the load cores that shows progress and looks at the broker's process.
//!
//! It sleeps but for a moment each second, and touches nothing that the load cores wait for.

use std::io::{IsTerminal, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use runtime::time::{Instant, now};

use crate::spans::Spans;
use crate::stage::{Stage, Window};
use crate::usage::Usage;

/// What the broker's process used within the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BrokerUsage {
    pub elapsed: Duration,
    pub cpu: Duration,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// The most that was seen within the window.
    pub resident_bytes: u64,
}

/// A running sampler.
pub struct Sampler {
    stop: Arc<Stop>,
    thread: JoinHandle<Option<BrokerUsage>>,
}

#[derive(Default)]
struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Waits until `at`; whether it was stopped meanwhile.
    fn wait_until(&self, at: Instant) -> bool {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped && now() < at {
            let waited = self.changed.wait_timeout(stopped, at.since(now()));
            stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *stopped
    }
}

impl Sampler {
    pub fn start(
        stage: Arc<Stage>,
        pid: Option<u32>,
        interval: Option<Duration>,
    ) -> std::io::Result<Sampler> {
        let stop = Arc::new(Stop::default());
        let watch = Watch { stop: Arc::clone(&stop), stage, pid, interval };
        let thread = std::thread::Builder::new().name("sampler".to_owned());
        Ok(Sampler { stop, thread: thread.spawn(move || watch.run())? })
    }

    /// Ends it; what the broker used, if it could be seen.
    pub fn finish(self) -> Option<BrokerUsage> {
        *self.stop.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.changed.notify_all();
        self.thread.join().unwrap_or(None)
    }
}

struct Watch {
    stop: Arc<Stop>,
    stage: Arc<Stage>,
    pid: Option<u32>,
    interval: Option<Duration>,
}

impl Watch {
    fn run(self) -> Option<BrokerUsage> {
        let window = loop {
            if let Some(window) = self.stage.window() {
                break window;
            }
            if self.stop.wait_until(now() + BEFORE_START) {
                return None;
            }
        };
        let mut progress = Progress::new(window);
        let mut spans = self.interval.map(|length| Spans::new(window, length));
        let mut tick = window.start + Duration::from_secs(1);
        let mut first = None;
        let mut resident_bytes = 0;
        loop {
            let wanted = if first.is_none() { window.counted_from } else { window.end };
            let span = spans.as_ref().map_or(window.end, Spans::due);
            let stopped = self.stop.wait_until(tick.min(wanted).min(span));
            let at = now();
            let usage = self.pid.and_then(|pid| Usage::of(pid).ok());
            if let (Some(usage), true) = (usage, at >= window.counted_from) {
                resident_bytes = usage.resident_bytes.max(resident_bytes);
                first.get_or_insert((at, usage));
            } else if at >= window.counted_from {
                first.get_or_insert((at, Usage::default()));
            }
            if at >= tick {
                tick = tick + Duration::from_secs(1);
                progress.show(&self.stage, at);
            }
            if let Some(spans) = spans.as_mut().filter(|spans| at >= spans.due())
                && let Some(line) = spans.line(&self.stage.live, at)
            {
                progress.end();
                eprintln!("{line}");
            }
            if stopped || at >= window.end {
                progress.end();
                let (since, before) = first?;
                let usage = usage?;
                return Some(BrokerUsage {
                    elapsed: at.since(since),
                    cpu: usage.cpu.saturating_sub(before.cpu),
                    read_bytes: usage.read_bytes.saturating_sub(before.read_bytes),
                    written_bytes: usage.written_bytes.saturating_sub(before.written_bytes),
                    resident_bytes,
                });
            }
        }
    }
}

/// The line that tells how it goes; on a terminal only.
struct Progress {
    window: Window,
    shown: bool,
    requests: u64,
    records: u64,
    bytes: u64,
    at: Instant,
}

impl Progress {
    fn new(window: Window) -> Progress {
        let shown = std::io::stderr().is_terminal();
        Progress { window, shown, requests: 0, records: 0, bytes: 0, at: window.start }
    }

    fn show(&mut self, stage: &Stage, at: Instant) {
        let live = &stage.live;
        let requests = live.requests.load(Ordering::Relaxed);
        let acknowledged = live.acknowledged_records.load(Ordering::Relaxed);
        let records = acknowledged.max(live.read_records.load(Ordering::Relaxed));
        let bytes = live.bytes.load(Ordering::Relaxed);
        let errors = live.errors.load(Ordering::Relaxed);
        let seconds = at.since(self.at).as_secs_f64().max(1e-9);
        let phase = if at < self.window.counted_from { "warm-up" } else { "running" };
        let line = format!(
            "{phase} {:>4.0} s  {:>9.0} requests/s  {:>10.0} records/s  {:>8.1} MB/s  \
             {errors} errors",
            at.since(self.window.start).as_secs_f64(),
            (requests - self.requests) as f64 / seconds,
            (records - self.records) as f64 / seconds,
            (bytes - self.bytes) as f64 / seconds / 1e6,
        );
        if self.shown {
            // A terminal that went away takes nothing from the run.
            let _written = write!(std::io::stderr(), "\r\x1b[K{line}");
        }
        (self.requests, self.records, self.bytes, self.at) = (requests, records, bytes, at);
    }

    fn end(&self) {
        if self.shown {
            let _written = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

const BEFORE_START: Duration = Duration::from_millis(5);
