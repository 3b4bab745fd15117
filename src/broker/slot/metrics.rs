//! What one slot counts, and its copy for a scrape.

use std::cell::RefCell;
use std::collections::BTreeMap;

use ::metrics::{Counter, Histogram, Snapshot};
use protocol::ApiKey;
use runtime::local::Budget;
use runtime::time::Instant;

use crate::dispatch::ApiIndex;
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
    pub bytes_fetched: Counter,
    requests: RefCell<BTreeMap<ApiKey, ApiMetrics>>,
}

#[derive(Default)]
struct ApiMetrics {
    total: Histogram,
}

impl SlotMetrics {
    /// Counts an answer that left, or a request that wants none.
    pub fn on_answered(&self, api: ApiIndex, received: Instant, now: Instant) {
        let Some(api) = api else { return };
        let nanos = now.since(received).as_nanos() as u64;
        let mut requests = self.requests.borrow_mut();
        requests.entry(api).or_default().total.record_nanos(nanos);
    }
}

/// Copies the numbers of a slot.
pub fn snapshot(slot: &Slot) -> Snapshot {
    let mut out = Snapshot::default();
    let core = slot.index.0.to_string();
    let labels = [("core", core.as_str())];
    let m = &slot.metrics;
    let counters: [(&str, &str, u64); 8] = [
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
    requests(&mut out, slot, &core);
    storage(&mut out, slot, &core);
    out
}

fn budgets(slot: &Slot, of: impl Fn(&Budget) -> usize) -> f64 {
    let all = [&slot.budget, &slot.receive_budget, &slot.answer_budget];
    all.into_iter().map(of).sum::<usize>() as f64
}

fn storage(out: &mut Snapshot, slot: &Slot, core: &str) {
    let labels = [("core", core)];
    let stats = slot.storage.stats();
    let counters: [(&str, &str, u64); 11] = [
        ("coretide_commits", "Writes that committed appended batches.", stats.commits.get()),
        ("coretide_committed_batches", "Batches committed.", stats.committed_batches.get()),
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
    let logs = slot.shard.topics();
    let sizes = logs.iter().flat_map(|topic| topic.partitions()).filter_map(|it| it.log().ok());
    let bytes: u64 = sizes.map(|log| log.size_bytes()).sum();
    out.gauge("coretide_log_bytes", "Bytes of record batches kept.", &labels, bytes as f64);
}

fn requests(out: &mut Snapshot, slot: &Slot, core: &str) {
    for (api, metrics) in slot.metrics.requests.borrow().iter() {
        let labels = [("api", api.name()), ("core", core)];
        let total = &metrics.total;
        out.counter("coretide_requests", "Requests answered.", &labels, total.count());
        let help =
            "Time from a request's last byte to its answer's last byte handed to the socket.";
        out.histogram("coretide_request_seconds", help, &labels, total);
    }
}
