//! What one load core counts, and the sums over all of them.
//!
//! Requests, records and bytes count when they are done within the counted window. Latency counts
//! for what was due within it, also when the answer comes later. Errors count whenever they happen.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use runtime::time::Instant;

use crate::requests::Size;
use crate::stage::Window;

/// Sums that the progress line shows while the cores count on. All time, warm-up included.
#[derive(Debug, Default)]
pub struct Live {
    pub requests: AtomicU64,
    pub acknowledged_records: AtomicU64,
    pub read_records: AtomicU64,
    /// Read records that this run has sent.
    pub delivered_records: AtomicU64,
    pub bytes: AtomicU64,
    pub errors: AtomicU64,
    /// The latencies of the span that runs, if lines about spans are wanted.
    pub recent: Option<Mutex<Latency>>,
}

impl Live {
    /// One that keeps the latencies of the span that runs.
    pub fn with_spans() -> Live {
        Live { recent: Some(Mutex::new(latency())), ..Live::default() }
    }

    fn on_latency(&self, taken: Duration) {
        if let Some(recent) = &self.recent {
            record(&mut recent.lock().unwrap_or_else(PoisonError::into_inner), taken);
        }
    }
}

/// What is kept besides the totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Detail {
    /// Answers by the second in which they came.
    pub by_second: bool,
    /// What lines about spans tell the latency of.
    pub spans: Option<Told>,
}

/// Which latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Answers,
    Deliveries,
}

/// What moved in one direction within the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    pub requests: u64,
    pub batches: u64,
    pub records: u64,
    pub bytes: u64,
}

impl Flow {
    fn add(&mut self, size: Size) {
        self.requests += 1;
        self.batches += size.batches;
        self.records += size.records;
        self.bytes += size.bytes;
    }

    fn merge(&mut self, other: Flow) {
        self.requests += other.requests;
        self.batches += other.batches;
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

/// Latencies in nanoseconds.
pub type Latency = Histogram<u64>;

/// An empty one, exact to three digits up to [`LATENCY_NANOS_MAX`].
pub fn latency() -> Latency {
    match Histogram::new_with_bounds(1, LATENCY_NANOS_MAX, 3) {
        Ok(histogram) => histogram,
        Err(wrong) => unreachable!("these bounds are possible: {wrong}"),
    }
}

/// What takes longer counts as so much: an hour.
pub const LATENCY_NANOS_MAX: u64 = 3_600_000_000_000;

/// Everything that was counted.
#[derive(Debug, Clone)]
pub struct Totals {
    pub sent: Flow,
    pub received: Flow,
    /// From the moment a request was due (closed loop: was sent) to its answer.
    pub answers: Latency,
    /// From the moment a record was due to its arrival at a reader.
    pub deliveries: Latency,
    /// How late requests were handed to the socket; under a rate only.
    pub lateness: Latency,
    /// Answers by the second in which they came, if asked for.
    pub seconds: Vec<Latency>,
    pub errors: BTreeMap<String, u64>,
    /// The last completion within the window.
    pub last_at: Instant,
}

impl Totals {
    pub fn new() -> Totals {
        Totals {
            sent: Flow::default(),
            received: Flow::default(),
            answers: latency(),
            deliveries: latency(),
            lateness: latency(),
            seconds: Vec::new(),
            errors: BTreeMap::new(),
            last_at: Instant::from_nanos(0),
        }
    }

    pub fn merge(&mut self, other: &Totals) {
        self.sent.merge(other.sent);
        self.received.merge(other.received);
        add(&mut self.answers, &other.answers);
        add(&mut self.deliveries, &other.deliveries);
        add(&mut self.lateness, &other.lateness);
        while self.seconds.len() < other.seconds.len() {
            self.seconds.push(latency());
        }
        for (ours, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            add(ours, theirs);
        }
        for (name, count) in &other.errors {
            *self.errors.entry(name.clone()).or_default() += count;
        }
        self.last_at = self.last_at.max(other.last_at);
    }
}

impl Default for Totals {
    fn default() -> Self {
        Totals::new()
    }
}

fn add(ours: &mut Latency, theirs: &Latency) {
    if let Err(wrong) = ours.add(theirs) {
        unreachable!("histograms of the same bounds: {wrong}");
    }
}

/// One core's counters. Clones are the same.
#[derive(Clone)]
pub struct Tally {
    shared: Rc<Shared>,
}

struct Shared {
    window: Cell<Window>,
    detail: Detail,
    totals: RefCell<Totals>,
    live: Arc<Live>,
}

impl Tally {
    pub fn new(live: Arc<Live>, detail: Detail) -> Tally {
        let window = Cell::new(Window::never());
        let totals = RefCell::new(Totals::new());
        Tally { shared: Rc::new(Shared { window, detail, totals, live }) }
    }

    /// From now on things count.
    pub fn open(&self, window: Window) {
        self.shared.window.set(window);
    }

    pub fn window(&self) -> Window {
        self.shared.window.get()
    }

    pub fn live(&self) -> &Live {
        &self.shared.live
    }

    /// A request that was handed to the socket at `now`, late or in time.
    pub fn on_sent(&self, due: Instant, now: Instant) {
        if self.window().counts(due) {
            record(&mut self.shared.totals.borrow_mut().lateness, now.since(due));
        }
    }

    /// A produce request whose every batch was taken.
    pub fn on_acknowledged(&self, size: Size, due: Instant, now: Instant) {
        self.shared.live.acknowledged_records.fetch_add(size.records, Ordering::Relaxed);
        self.on_answer(size, Some(due), now, |totals| &mut totals.sent);
    }

    /// A fetch answer that brought something. How long it took says nothing when readers wait for
    /// senders beside them: then `asked` is not given.
    pub fn on_read(&self, size: Size, asked: Option<Instant>, now: Instant) {
        self.shared.live.read_records.fetch_add(size.records, Ordering::Relaxed);
        self.on_answer(size, asked, now, |totals| &mut totals.received);
    }

    fn on_answer(
        &self,
        size: Size,
        due: Option<Instant>,
        now: Instant,
        flow: impl Fn(&mut Totals) -> &mut Flow,
    ) {
        let live = &self.shared.live;
        live.requests.fetch_add(1, Ordering::Relaxed);
        live.bytes.fetch_add(size.bytes, Ordering::Relaxed);
        let window = self.window();
        let mut totals = self.shared.totals.borrow_mut();
        if window.counts(now) {
            flow(&mut totals).add(size);
            totals.last_at = totals.last_at.max(now);
        }
        if let Some(due) = due.filter(|&due| window.counts(due)) {
            record(&mut totals.answers, now.since(due));
            if self.shared.detail.spans == Some(Told::Answers) {
                live.on_latency(now.since(due));
            }
            if self.shared.detail.by_second {
                let second = now.since(window.counted_from).as_secs() as usize;
                while totals.seconds.len() <= second {
                    totals.seconds.push(latency());
                }
                record(&mut totals.seconds[second], now.since(due));
            }
        }
    }

    /// A record of this run that arrived at a reader.
    pub fn on_delivered(&self, due: Instant, now: Instant) {
        self.shared.live.delivered_records.fetch_add(1, Ordering::Relaxed);
        if self.window().counts(due) {
            record(&mut self.shared.totals.borrow_mut().deliveries, now.since(due));
            if self.shared.detail.spans == Some(Told::Deliveries) {
                self.shared.live.on_latency(now.since(due));
            }
        }
    }

    pub fn on_error(&self, name: &str) {
        self.on_errors(name, 1);
    }

    pub fn on_errors(&self, name: &str, count: u64) {
        if count == 0 {
            return;
        }
        self.shared.live.errors.fetch_add(count, Ordering::Relaxed);
        let mut totals = self.shared.totals.borrow_mut();
        match totals.errors.get_mut(name) {
            Some(counted) => *counted += count,
            None => {
                totals.errors.insert(name.to_owned(), count);
            }
        }
    }

    /// A copy of what was counted so far.
    pub fn totals(&self) -> Totals {
        self.shared.totals.borrow().clone()
    }
}

fn record(histogram: &mut Latency, taken: Duration) {
    histogram.saturating_record(u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX));
}
