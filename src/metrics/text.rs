//! The text that a Prometheus server reads (version 0.0.4 of the exposition format), written family
//! by family, in pieces of bounded size.
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
//!
//! Law: a family is written once, with its help and its type before its samples; counters end in
//! `_total`, which is added here.

use std::fmt::Write;

use crate::cell::BUCKETS_NANOS;
use crate::snapshot::{Kind, Sample, Value};

/// Text in the making.
#[derive(Debug, Default)]
pub struct Text {
    full: Vec<String>,
    out: String,
}

/// One family of it: its samples follow.
#[derive(Debug)]
pub struct FamilyText<'a> {
    text: &'a mut Text,
    name: &'a str,
    suffix: &'static str,
}

impl Text {
    /// Begins a family; `name` omits the `_total` of a counter.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: Kind, help: &str) -> FamilyText<'a> {
        let (word, suffix) = match kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
            Kind::Histogram => ("histogram", ""),
        };
        let out = &mut self.out;
        write(out, format_args!("# HELP {name}{suffix} "));
        escape_help(out, help);
        write(out, format_args!("\n# TYPE {name}{suffix} {word}\n"));
        FamilyText { text: self, name, suffix }
    }

    /// All of it, in order; no piece is much longer than 64 KiB.
    pub fn into_pieces(mut self) -> Vec<String> {
        self.full.push(self.out);
        self.full
    }

    fn end_line(&mut self, value: std::fmt::Arguments<'_>) {
        write(&mut self.out, format_args!(" {value}\n"));
        if self.out.len() >= PIECE_BYTES {
            let next = String::with_capacity(PIECE_BYTES + LINE_BYTES);
            self.full.push(std::mem::replace(&mut self.out, next));
        }
    }
}

impl FamilyText<'_> {
    pub fn integer<'l>(&mut self, labels: impl IntoIterator<Item = (&'l str, &'l str)>, n: u64) {
        self.begin("", labels, None);
        self.text.end_line(format_args!("{n}"));
    }

    pub fn float<'l>(&mut self, labels: impl IntoIterator<Item = (&'l str, &'l str)>, value: f64) {
        self.begin("", labels, None);
        self.text.end_line(format_args!("{value}"));
    }

    pub fn sample(&mut self, sample: &Sample) {
        let labels = sample.labels.iter().map(|(key, text)| (*key, text.as_str()));
        match &sample.value {
            Value::Integer(value) => self.integer(labels, *value),
            Value::Float(value) => self.float(labels, *value),
            Value::Distribution { cumulative, count, sum_seconds } => {
                self.distribution(labels, cumulative, *count, *sum_seconds);
            }
        }
    }

    /// Counts up to each of the exported bounds, the count of all, and their sum.
    fn distribution<'l, L>(&mut self, labels: L, cumulative: &[u64], count: u64, sum_seconds: f64)
    where
        L: IntoIterator<Item = (&'l str, &'l str)> + Clone,
    {
        for (upper, below) in BUCKETS_NANOS.iter().zip(cumulative) {
            let bound = (*upper as f64 / 1e9).to_string();
            self.begin("_bucket", labels.clone(), Some(&bound));
            self.text.end_line(format_args!("{below}"));
        }
        self.begin("_bucket", labels.clone(), Some("+Inf"));
        self.text.end_line(format_args!("{count}"));
        self.begin("_sum", labels.clone(), None);
        self.text.end_line(format_args!("{sum_seconds}"));
        self.begin("_count", labels, None);
        self.text.end_line(format_args!("{count}"));
    }

    fn begin<'l>(
        &mut self,
        part: &str,
        labels: impl IntoIterator<Item = (&'l str, &'l str)>,
        bound: Option<&str>,
    ) {
        let FamilyText { text, name, suffix } = self;
        let out = &mut text.out;
        for piece in [name, suffix, part] {
            out.push_str(piece);
        }
        let mut opener = '{';
        for (key, text) in labels {
            label(out, opener, key, text);
            opener = ',';
        }
        if let Some(text) = bound {
            label(out, opener, "le", text);
            opener = ',';
        }
        if opener == ',' {
            out.push('}');
        }
    }
}

fn label(out: &mut String, opener: char, key: &str, text: &str) {
    out.push(opener);
    out.push_str(key);
    out.push_str("=\"");
    escape_label(out, text);
    out.push('"');
}

fn escape_label(out: &mut String, text: &str) {
    if !text.contains(['\\', '"', '\n']) {
        return out.push_str(text);
    }
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
}

fn escape_help(out: &mut String, text: &str) {
    out.push_str(&text.replace('\\', "\\\\").replace('\n', "\\n"));
}

fn write(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = out.write_fmt(what);
}

const PIECE_BYTES: usize = 64 << 10;
/// Room for the line that makes a piece full; most are shorter.
const LINE_BYTES: usize = 1 << 10;
