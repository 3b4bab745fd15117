//! What a run found: as a table for people, as JSON for programs, as histogram files for plots.

use std::fmt::Write;
use std::fs::File;
use std::io::BufWriter;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use runtime::time::now;
use serde_json::{Value, json};

use crate::hgrm;
use crate::options::LoadArgs;
use crate::sampler::BrokerUsage;
use crate::stage::Window;
use crate::tally::{Flow, Latency, Totals};

/// What was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Produce,
    Consume,
    EndToEnd,
    Commit,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Produce => "produce",
            Kind::Consume => "consume",
            Kind::EndToEnd => "e2e",
            Kind::Commit => "commit",
        }
    }
}

/// A finished run.
pub struct Outcome {
    kind: Kind,
    pub totals: Totals,
    /// What rates refer to.
    elapsed: Duration,
    window: Window,
    broker: Option<BrokerUsage>,
}

impl Outcome {
    pub fn new(kind: Kind, totals: Totals, window: Window, broker: Option<BrokerUsage>) -> Outcome {
        // A run that ended before its time counts up to its last answer.
        let until = if now() < window.end { totals.last_at } else { window.end };
        let elapsed = until.since(window.counted_from);
        Outcome { kind, totals, elapsed, window, broker }
    }

    /// Something came through and nothing went wrong.
    pub fn is_success(&self) -> bool {
        self.totals.errors.is_empty() && self.bytes() > 0
    }

    /// Moved in the direction that the run is about.
    fn bytes(&self) -> u64 {
        match self.kind {
            Kind::Produce | Kind::Commit => self.totals.sent.bytes,
            Kind::Consume => self.totals.received.bytes,
            Kind::EndToEnd => self.totals.sent.bytes.min(self.totals.received.bytes),
        }
    }

    /// The latency that the run is about.
    fn latency(&self) -> &Latency {
        match self.kind {
            Kind::EndToEnd => &self.totals.deliveries,
            Kind::Produce | Kind::Consume | Kind::Commit => &self.totals.answers,
        }
    }

    fn flows(&self) -> Vec<(&'static str, Flow)> {
        let flows = [("sent", self.totals.sent), ("received", self.totals.received)];
        flows.into_iter().filter(|(_, flow)| flow.requests > 0).collect()
    }

    fn latencies(&self) -> Vec<(&'static str, &Latency)> {
        let answer = if self.kind == Kind::Consume { "fetch" } else { "acknowledged" };
        let totals = &self.totals;
        let all = [
            (answer, &totals.answers),
            ("delivered", &totals.deliveries),
            ("sent late by", &totals.lateness),
        ];
        all.into_iter().filter(|(_, latency)| !latency.is_empty()).collect()
    }

    /// The result on standard output.
    pub fn print(&self, as_json: bool) -> anyhow::Result<()> {
        let text = if as_json { format!("{:#}\n", self.json()) } else { self.table()? };
        use std::io::Write as _;
        std::io::stdout().write_all(text.as_bytes()).context("writing the result")
    }

    pub fn table(&self) -> anyhow::Result<String> {
        let mut out = String::new();
        let seconds = self.seconds();
        writeln!(out, "{} for {seconds:.2} s", self.kind.name())?;
        for (name, flow) in self.flows() {
            writeln!(
                out,
                "  {name:<13} {:>10.0} requests/s {:>11.0} records/s {:>9.2} MB/s",
                flow.requests as f64 / seconds,
                flow.records as f64 / seconds,
                flow.bytes as f64 / seconds / 1e6,
            )?;
        }
        write!(out, "  {:<13}", "latency, ms")?;
        for (name, _) in PERCENTILES {
            write!(out, " {name:>9}")?;
        }
        writeln!(out, " {:>9} {:>9}", "max", "count")?;
        for (name, latency) in self.latencies() {
            write!(out, "  {name:<13}")?;
            for (_, percentile) in PERCENTILES {
                write!(out, " {:>9.3}", millis(latency.value_at_quantile(*percentile)))?;
            }
            writeln!(out, " {:>9.3} {:>9}", millis(latency.max()), latency.len())?;
        }
        if let Some(broker) = &self.broker {
            writeln!(
                out,
                "  broker        {:.1} % CPU, {:.3} CPU-s/GiB, {:.1} MB resident, {:.1} MB/s read, \
                 {:.1} MB/s written",
                100.0 * broker.cpu.as_secs_f64() / broker.elapsed.as_secs_f64(),
                self.cpu_per_gib(broker),
                broker.resident_bytes as f64 / 1e6,
                broker.read_bytes as f64 / broker.elapsed.as_secs_f64() / 1e6,
                broker.written_bytes as f64 / broker.elapsed.as_secs_f64() / 1e6,
            )?;
        }
        for (name, count) in &self.totals.errors {
            writeln!(out, "  ERROR         {count} x {name}")?;
        }
        if self.totals.errors.is_empty() {
            writeln!(out, "  no errors")?;
        }
        Ok(out)
    }

    pub fn json(&self) -> Value {
        let seconds = self.seconds();
        let flows = self.flows().into_iter().map(|(name, flow)| {
            let flow = json!({
                "requests": flow.requests,
                "batches": flow.batches,
                "records": flow.records,
                "bytes": flow.bytes,
                "requests_per_second": flow.requests as f64 / seconds,
                "records_per_second": flow.records as f64 / seconds,
                "megabytes_per_second": flow.bytes as f64 / seconds / 1e6,
            });
            (name.to_owned(), flow)
        });
        let latencies = self.latencies().into_iter().map(|(name, latency)| {
            let of = |(name, quantile): &(&str, f64)| {
                ((*name).to_owned(), json!(millis(latency.value_at_quantile(*quantile))))
            };
            let mut object: serde_json::Map<String, Value> = PERCENTILES.iter().map(of).collect();
            object.insert("max".to_owned(), json!(millis(latency.max())));
            object.insert("mean".to_owned(), json!(latency.mean() / 1e6));
            object.insert("count".to_owned(), json!(latency.len()));
            object.insert("curve".to_owned(), json!(hgrm::curve(latency)));
            (name.to_owned(), Value::Object(object))
        });
        let broker = self.broker.as_ref().map(|broker| {
            json!({
                "seconds": broker.elapsed.as_secs_f64(),
                "cpu_seconds": broker.cpu.as_secs_f64(),
                "cpu_seconds_per_gib": self.cpu_per_gib(broker),
                "resident_bytes_max": broker.resident_bytes,
                "read_bytes": broker.read_bytes,
                "written_bytes": broker.written_bytes,
            })
        });
        json!({
            "kind": self.kind.name(),
            "seconds": seconds,
            "flow": flows.collect::<serde_json::Map<_, _>>(),
            "latency_ms": latencies.collect::<serde_json::Map<_, _>>(),
            "broker": broker,
            "errors": self.totals.errors,
        })
    }

    pub fn write_files(&self, load: &LoadArgs) -> anyhow::Result<()> {
        if let Some(path) = &load.hgrm {
            let text = hgrm::write(self.latency());
            std::fs::write(path, text).with_context(|| path.display().to_string())?;
        }
        if let Some(path) = &load.hlog {
            let file = File::create(path).with_context(|| path.display().to_string())?;
            self.write_log(BufWriter::new(file)).context("writing the histogram log")?;
        }
        Ok(())
    }

    fn write_log(&self, mut file: BufWriter<File>) -> anyhow::Result<()> {
        let since_start = now().since(self.window.counted_from);
        let began = SystemTime::now().checked_sub(since_start).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder.with_start_time(began).with_base_time(began).with_max_value_divisor(1e6);
        let mut log = builder.begin_log_with(&mut file, &mut serializer)?;
        let tag = Tag::new("acknowledged").context("a tag without commas")?;
        for (second, histogram) in self.totals.seconds.iter().enumerate() {
            let start = Duration::from_secs(second as u64);
            log.write_histogram(histogram, start, Duration::from_secs(1), Some(tag))?;
        }
        Ok(())
    }

    /// What rates refer to.
    pub fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64().max(1e-9)
    }

    fn cpu_per_gib(&self, broker: &BrokerUsage) -> f64 {
        // Over the process's own window, which is a little off the cores' one.
        let per_second = self.bytes() as f64 / self.seconds();
        let bytes = per_second * broker.elapsed.as_secs_f64();
        broker.cpu.as_secs_f64() / (bytes / (1u64 << 30) as f64).max(1e-9)
    }
}

pub(crate) fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

const PERCENTILES: &[(&str, f64)] =
    &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];
