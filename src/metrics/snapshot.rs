//! One slot's numbers at one moment, ready to be sent to the slot that answers a scrape.

use std::collections::BTreeMap;

use crate::cell::Histogram;

/// What a metric family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// A metric family: all samples of one name.
#[derive(Clone, Debug)]
pub struct Family {
    pub kind: Kind,
    pub help: &'static str,
    pub samples: Vec<Sample>,
}

/// One labelled value.
#[derive(Clone, Debug)]
pub struct Sample {
    pub labels: Vec<(&'static str, String)>,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub enum Value {
    Integer(u64),
    Float(f64),
    /// Cumulative counts at the exported bucket bounds, the total count and the sum in seconds.
    Distribution {
        cumulative: Vec<u64>,
        count: u64,
        sum_seconds: f64,
    },
}

/// Families by name. Names follow the Prometheus conventions and omit the `_total` of counters,
/// which the text format adds.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    families: BTreeMap<&'static str, Family>,
}

impl Snapshot {
    pub fn counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: u64,
    ) {
        self.push(name, help, Kind::Counter, labels, Value::Integer(value));
    }

    /// A counter of what is no whole number, such as seconds.
    pub fn float_counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: f64,
    ) {
        self.push(name, help, Kind::Counter, labels, Value::Float(value));
    }

    pub fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: f64,
    ) {
        self.push(name, help, Kind::Gauge, labels, Value::Float(value));
    }

    pub fn histogram(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        histogram: &Histogram,
    ) {
        let value = Value::Distribution {
            cumulative: histogram.cumulative(),
            count: histogram.count(),
            sum_seconds: histogram.sum_nanos() as f64 / 1e9,
        };
        self.push(name, help, Kind::Histogram, labels, value);
    }

    /// Adds another slot's samples. A family keeps the kind under which it was first seen.
    pub fn merge(&mut self, other: Snapshot) {
        for (name, family) in other.families {
            match self.families.get_mut(name) {
                Some(mine) => {
                    debug_assert_eq!(mine.kind, family.kind, "{name} has two kinds");
                    mine.samples.extend(family.samples);
                }
                None => {
                    self.families.insert(name, family);
                }
            }
        }
    }

    pub fn families(&self) -> impl Iterator<Item = (&'static str, &Family)> {
        self.families.iter().map(|(name, family)| (*name, family))
    }

    fn push(
        &mut self,
        name: &'static str,
        help: &'static str,
        kind: Kind,
        labels: &[(&'static str, &str)],
        value: Value,
    ) {
        let labels = labels.iter().map(|&(key, text)| (key, text.to_owned())).collect();
        let family =
            self.families.entry(name).or_insert_with(|| Family { kind, help, samples: Vec::new() });
        debug_assert_eq!(family.kind, kind, "{name} has two kinds");
        family.samples.push(Sample { labels, value });
    }
}
