//! Percentile distributions as text, in the format of HdrHistogram's own tools (`.hgrm`), and as
//! the points of a curve. Values are milliseconds.

use std::fmt::Write;

use anyhow::{Context, ensure};

use crate::tally::Latency;

/// A point of a curve: quantile from 0 to 1, milliseconds.
pub type Point = (f64, f64);

/// The distribution at quantiles that come twice as close to 1 five steps further on.
pub fn write(latency: &Latency) -> String {
    let mut out = String::new();
    let line = format!("{:>12} {:>14} {:>10} {:>14}", "Value", "Percentile", "TotalCount", RATIO);
    out.push_str(&line);
    out.push_str("\n\n");
    for value in latency.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        let quantile = value.quantile_iterated_to();
        let millis = value.value_iterated_to() as f64 / NANOS_PER_MILLI;
        let count = latency.count_between(0, value.value_iterated_to());
        let ratio = 1.0 / (1.0 - quantile);
        let written = if quantile < 1.0 {
            writeln!(out, "{millis:>12.6} {quantile:>14.12} {count:>10} {ratio:>14.2}")
        } else {
            writeln!(out, "{millis:>12.6} {quantile:>14.12} {count:>10}")
        };
        debug_assert!(written.is_ok(), "text in memory");
    }
    let (mean, deviation) = (latency.mean() / NANOS_PER_MILLI, latency.stdev() / NANOS_PER_MILLI);
    let max = latency.max() as f64 / NANOS_PER_MILLI;
    let foot = format!(
        "#[Mean    = {mean:>12.6}, StdDeviation   = {deviation:>12.6}]\n\
         #[Max     = {max:>12.6}, Total count    = {:>12}]\n\
         #[Buckets = {:>12}, SubBuckets     = {:>12}]\n",
        latency.len(),
        latency.buckets(),
        SUB_BUCKETS,
    );
    out.push_str(&foot);
    out
}

/// The points of [`write`].
pub fn curve(latency: &Latency) -> Vec<Point> {
    let values = latency.iter_quantiles(TICKS_PER_HALF_DISTANCE);
    let point = |quantile: f64, nanos: u64| (quantile, nanos as f64 / NANOS_PER_MILLI);
    values.map(|v| point(v.quantile_iterated_to(), v.value_iterated_to())).collect()
}

/// Reads what [`write`], or another tool of that format, has written.
pub fn read(text: &str) -> anyhow::Result<Vec<Point>> {
    let mut points = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_data = fields.len() >= 3 && fields[0].starts_with(|c: char| c.is_ascii_digit());
        if !is_data {
            continue;
        }
        let value: f64 = fields[0].parse().with_context(|| format!("in the line '{line}'"))?;
        let quantile: f64 = fields[1].parse().with_context(|| format!("in the line '{line}'"))?;
        points.push((quantile, value));
    }
    ensure!(!points.is_empty(), "no percentiles in it");
    Ok(points)
}

/// How many values it is about, if it says so.
pub fn count(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("#[Max"))?;
    let (_, count) = line.rsplit_once('=')?;
    count.trim().trim_end_matches(']').parse().ok()
}

const RATIO: &str = "1/(1-Percentile)";
const TICKS_PER_HALF_DISTANCE: u32 = 5;
const NANOS_PER_MILLI: f64 = 1e6;
/// That follows from three exact digits.
const SUB_BUCKETS: u32 = 2048;
