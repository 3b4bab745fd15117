//! What one slot counts, and its copy for a scrape.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use ::metrics::{Counter, Histogram, Snapshot};
use protocol::ApiKey;
use runtime::local::Budget;
use runtime::time::Instant;

use crate::dispatch::{ApiIndex, pause_if_long};
use crate::slot::Slot;

/// The counters of one slot.
#[derive(Default)]
pub struct SlotMetrics {
    pub bytes_in: Counter,
    pub bytes_out: Counter,
    pub connections_accepted: Counter,
    pub connections_refused: Counter,
    pub records_produced: Counter,
    pub bytes_produced: Counter,
    pub records_fetched: Counter,
    pub bytes_fetched: Counter,
    /// How late a task ran that wanted to run at a certain time.
    pub delay: Histogram,
    /// The part of the last second or so that the core was busy.
    pub utilisation: Cell<f64>,
    requests: RefCell<BTreeMap<ApiKey, ApiMetrics>>,
}

/// When the parts of a request ended.
#[derive(Clone, Copy, Debug)]
pub struct RequestTimes {
    /// Its last byte came.
    pub arrived: Instant,
    /// Its handler began.
    pub begun: Instant,
    /// Its answer was ready, and so were those of the requests before it.
    pub done: Instant,
    /// Of the time between the two, what was spent waiting for others to write something.
    pub waited: Duration,
}

#[derive(Default)]
struct ApiMetrics {
    queue: Histogram,
    local: Histogram,
    wait: Histogram,
    total: Histogram,
}

impl SlotMetrics {
    /// Counts an answer that left, or a request that wants none.
    pub fn on_answered(&self, api: ApiIndex, times: RequestTimes, now: Instant) {
        let Some(api) = api else { return };
        let RequestTimes { arrived, begun, done, waited } = times;
        let nanos = |time: Duration| time.as_nanos() as u64;
        let mut requests = self.requests.borrow_mut();
        let metrics = requests.entry(api).or_default();
        metrics.queue.record_nanos(nanos(begun.since(arrived)));
        metrics.local.record_nanos(nanos(done.since(begun).saturating_sub(waited)));
        if !waited.is_zero() {
            metrics.wait.record_nanos(nanos(waited));
        }
        metrics.total.record_nanos(nanos(now.since(arrived)));
    }
}

/// Copies the numbers of a slot, in slices.
pub async fn snapshot(slot: &Slot) -> Snapshot {
    let mut out = Snapshot::default();
    let core = slot.index.0.to_string();
    let labels = [("core", core.as_str())];
    let m = &slot.metrics;
    let counters: [(&str, &str, u64); 9] = [
        ("coretide_network_received_bytes", "Bytes of request frames received.", m.bytes_in.get()),
        ("coretide_network_sent_bytes", "Bytes of answers sent.", m.bytes_out.get()),
        ("coretide_connections_accepted", "Connections accepted.", m.connections_accepted.get()),
        (
            "coretide_connections_refused",
            "Connections refused at a limit or closed for a bad request.",
            m.connections_refused.get(),
        ),
        ("coretide_records_produced", "Records appended by clients.", m.records_produced.get()),
        ("coretide_produced_bytes", "Bytes of record batches appended.", m.bytes_produced.get()),
        ("coretide_records_fetched", "Offsets served to readers.", m.records_fetched.get()),
        ("coretide_fetched_bytes", "Bytes of record batches served.", m.bytes_fetched.get()),
        (
            "coretide_cross_core_messages",
            "Messages sent to other slots; none of them carries or serves records.",
            slot.links.sent(),
        ),
    ];
    for (name, help, value) in counters {
        out.counter(name, help, &labels, value);
    }
    let gauges: [(&str, &str, f64); 4] = [
        ("coretide_connections", "Open client connections.", slot.connections.count() as f64),
        (
            "coretide_memory_budget_bytes",
            "Memory budget of the slot.",
            budgets(slot, |it| it.limit()),
        ),
        ("coretide_memory_used_bytes", "Budgeted memory in use.", budgets(slot, |it| it.used())),
        ("coretide_partitions", "Partitions that the slot leads.", slot.shard.count() as f64),
    ];
    for (name, help, value) in gauges {
        out.gauge(name, help, &labels, value);
    }
    core_use(&mut out, slot, &core);
    cleaning(&mut out, slot, &core);
    storage(&mut out, slot, &core);
    journal(&mut out, slot, &core);
    requests(&mut out, slot, &core).await;
    out
}

fn budgets(slot: &Slot, of: impl Fn(&Budget) -> usize) -> f64 {
    let all = [&slot.budget, slot.receive_memory.budget(), &slot.answer_budget];
    all.into_iter().map(of).sum::<usize>() as f64
}

fn storage(out: &mut Snapshot, slot: &Slot, core: &str) {
    let labels = [("core", core)];
    let stats = slot.storage.stats();
    let counters: [(&str, &str, u64); 10] = [
        ("coretide_commits", "Writes that committed appended batches.", stats.commits.get()),
        ("coretide_committed_bytes", "Bytes of batches committed.", stats.committed_bytes.get()),
        (
            "coretide_tail_read_bytes",
            "Bytes read from written buffers.",
            stats.tail_read_bytes.get(),
        ),
        (
            "coretide_disk_read_bytes",
            "Bytes read that came from disk.",
            stats.disk_read_bytes.get(),
        ),
        ("coretide_disk_reads", "Windows read from disk.", stats.window_reads.get()),
        (
            "coretide_corrupt_batches",
            "Damaged batches found by reads.",
            stats.corrupt_batches.get(),
        ),
        ("coretide_no_space", "Appends refused for lack of space.", stats.no_space.get()),
        ("coretide_checkpoints", "Recovery points written.", stats.checkpoints.get()),
        ("coretide_segments_rolled", "Segments sealed.", stats.rolls.get()),
        ("coretide_segments_deleted", "Segments deleted.", stats.deleted_segments.get()),
    ];
    for (name, help, value) in counters {
        out.counter(name, help, &labels, value);
    }
    let help = "Time of a write that makes appended batches durable.";
    out.histogram("coretide_commit_seconds", help, &labels, &stats.commit_latency);
    let cached = slot.storage.cached_bytes() as f64;
    out.gauge("coretide_cache_bytes", "Memory held for readers.", &labels, cached);
    let open = slot.storage.files_open() as f64;
    out.gauge("coretide_open_files", "Segment files open.", &labels, open);
}

/// What compaction does and what waits for it.
fn cleaning(out: &mut Snapshot, slot: &Slot, core: &str) {
    let (labels, stats) = ([("core", core)], slot.storage.stats());
    let counters: [(&str, &str, u64); 3] = [
        ("coretide_cleaner_rounds", "Rounds of compaction of a log.", stats.cleaner_rounds.get()),
        (
            "coretide_cleaner_read_bytes",
            "Bytes that compaction has read.",
            stats.cleaner_read_bytes.get(),
        ),
        (
            "coretide_cleaner_written_bytes",
            "Bytes that compaction has written.",
            stats.cleaner_written_bytes.get(),
        ),
    ];
    for (name, help, value) in counters {
        out.counter(name, help, &labels, value);
    }
    let help = "Time of a round of compaction.";
    out.histogram("coretide_cleaner_round_seconds", help, &labels, &stats.cleaner_latency);
    let help = "Largest part of a compacted log that is not compacted yet.";
    let ratio = slot.cleaning.dirty_ratio_max.get();
    out.gauge("coretide_cleaner_dirty_ratio_max", help, &labels, ratio);
}

/// The slot's journal of small commits.
fn journal(out: &mut Snapshot, slot: &Slot, core: &str) {
    let labels = [("core", core)];
    let stats = slot.storage.stats();
    let counters: [(&str, &str, u64); 5] = [
        (
            "coretide_journaled_commits",
            "Commits that went to the journal.",
            stats.journaled_commits.get(),
        ),
        ("coretide_journal_writes", "Writes to the journal.", stats.journal_writes.get()),
        ("coretide_journal_bytes", "Bytes written to the journal.", stats.journal_bytes.get()),
        (
            "coretide_destage_writes",
            "Writes that only brought journaled batches to their segment.",
            stats.destage_writes.get(),
        ),
        ("coretide_destaged_bytes", "Bytes of batches in those.", stats.destaged_bytes.get()),
    ];
    for (name, help, value) in counters {
        out.counter(name, help, &labels, value);
    }
    let undestaged = slot.storage.undestaged_bytes() as f64;
    let help = "Bytes of batches that only the journal has.";
    out.gauge("coretide_undestaged_bytes", help, &labels, undestaged);
    let help = "Partitions of which the journal has something that is not in their segments.";
    let logs = slot.storage.undestaged_logs() as f64;
    out.gauge("coretide_undestaged_partitions", help, &labels, logs);
}

/// How busy the core is, and what that costs those who wait for it.
fn core_use(out: &mut Snapshot, slot: &Slot, core: &str) {
    let (labels, stats) = ([("core", core)], runtime::stats());
    let seconds: [(&str, &str, Duration); 3] = [
        ("coretide_core_task_seconds", "Time spent running tasks.", stats.busy),
        (
            "coretide_core_cpu_seconds",
            "Processor time of the core's thread, tasks and everything around them.",
            stats.processor,
        ),
        ("coretide_core_uptime_seconds", "Time since the core started.", stats.alive),
    ];
    for (name, help, time) in seconds {
        out.float_counter(name, help, &labels, time.as_secs_f64());
    }
    let help = "Bytes copied from one buffer of the broker to another.";
    out.counter("coretide_copied_bytes", help, &labels, stats.copied_bytes);
    let help = "Times that the core made no progress for more than a second.";
    out.counter("coretide_core_stalls", help, &labels, stats.stalls);
    let help = "Part of the last second that the core was busy.";
    out.gauge("coretide_core_utilization_ratio", help, &labels, slot.metrics.utilisation.get());
    let help = "How late tasks ran that were to run at a certain time.";
    out.histogram("coretide_core_delay_seconds", help, &labels, &slot.metrics.delay);
    let records = slot.metrics.records_produced.get() + slot.metrics.records_fetched.get();
    let ratio = slot.links.sent() as f64 / records.max(1) as f64;
    let help = "Messages to other slots for each record written or read since the start.";
    out.gauge("coretide_cross_core_messages_per_record", help, &labels, ratio);
}

async fn requests(out: &mut Snapshot, slot: &Slot, core: &str) {
    let apis: Vec<ApiKey> = slot.metrics.requests.borrow().keys().copied().collect();
    for api in apis {
        if let Some(metrics) = slot.metrics.requests.borrow().get(&api) {
            requests_of(out, api, metrics, core);
        }
        pause_if_long().await;
    }
}

fn requests_of(out: &mut Snapshot, api: ApiKey, metrics: &ApiMetrics, core: &str) {
    let ApiMetrics { queue, local, wait, total } = metrics;
    let labels = [("api", api.name()), ("core", core)];
    out.counter("coretide_requests", "Requests answered.", &labels, total.count());
    let help = "Time of requests: queue is from the last byte received to the handler's begin, \
        local from there to the ready answer less wait, wait is for records that were not there \
        yet, total is from the last byte received to the last byte handed to the socket.";
    for (phase, histogram) in [("queue", queue), ("local", local), ("wait", wait), ("total", total)]
    {
        if phase != "wait" || histogram.count() > 0 {
            let labels = [("api", api.name()), ("phase", phase), ("core", core)];
            out.histogram("coretide_request_seconds", help, &labels, histogram);
        }
    }
}
