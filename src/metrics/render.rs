//! Snapshots as Prometheus text (version 0.0.4 of the exposition format).
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::fmt::Write;

use crate::cell::BUCKETS_NANOS;
use crate::snapshot::{Family, Kind, Sample, Snapshot, Value};

/// The content type under which the text is served.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text of all families, ordered by name.
pub fn render(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    for (name, family) in snapshot.families() {
        render_family(&mut out, name, family);
    }
    out
}

fn render_family(out: &mut String, name: &str, family: &Family) {
    let (kind, suffix) = match family.kind {
        Kind::Counter => ("counter", "_total"),
        Kind::Gauge => ("gauge", ""),
        Kind::Histogram => ("histogram", ""),
    };
    line(out, format_args!("# HELP {name}{suffix} {}", escape_help(family.help)));
    line(out, format_args!("# TYPE {name}{suffix} {kind}"));
    for sample in &family.samples {
        match &sample.value {
            Value::Integer(value) => {
                line(out, format_args!("{name}{suffix}{} {value}", labels(sample, None)));
            }
            Value::Float(value) => {
                line(out, format_args!("{name}{suffix}{} {value}", labels(sample, None)));
            }
            Value::Distribution { cumulative, count, sum_seconds } => {
                render_distribution(out, name, sample, cumulative, *count, *sum_seconds);
            }
        }
    }
}

fn render_distribution(
    out: &mut String,
    name: &str,
    sample: &Sample,
    cumulative: &[u64],
    count: u64,
    sum_seconds: f64,
) {
    for (upper, below) in BUCKETS_NANOS.iter().zip(cumulative) {
        let bound = (*upper as f64 / 1e9).to_string();
        line(out, format_args!("{name}_bucket{} {below}", labels(sample, Some(&bound))));
    }
    line(out, format_args!("{name}_bucket{} {count}", labels(sample, Some("+Inf"))));
    line(out, format_args!("{name}_sum{} {sum_seconds}", labels(sample, None)));
    line(out, format_args!("{name}_count{} {count}", labels(sample, None)));
}

fn labels(sample: &Sample, bound: Option<&str>) -> String {
    let pairs = sample.labels.iter().map(|(key, text)| (*key, text.as_str()));
    let mut out = String::new();
    for (key, text) in pairs.chain(bound.map(|text| ("le", text))) {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(key);
        out.push_str("=\"");
        escape_label(&mut out, text);
        out.push('"');
    }
    if !out.is_empty() {
        out.push('}');
    }
    out
}

fn escape_label(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

fn escape_help(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn line(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(what);
    out.push('\n');
}
