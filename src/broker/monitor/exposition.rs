//! The numbers of all slots as text. Runs off the loop of any core.

use std::collections::BTreeMap;

use ::metrics::{Kind, Snapshot, Text, write};

use super::lag::Lags;
use super::numbers::{GroupNumbers, PartitionNumbers, SlotNumbers};
use super::process;

/// Everything. Of each metric with a label for the partition or the group, at most `series_max`
/// series are written; how many were not is a metric itself.
pub fn text(numbers: Vec<SlotNumbers>, lags: &Lags, series_max: usize) -> String {
    let mut all = Snapshot::default();
    let (mut partitions, mut groups, mut topics_omitted) = (Vec::new(), Vec::new(), 0);
    for slot in numbers {
        topics_omitted += slot.topics_omitted;
        all.merge(slot.snapshot);
        partitions.push(slot.partitions);
        groups.push(slot.groups);
    }
    let mut partitions: Vec<PartitionNumbers> = partitions.into_iter().flatten().collect();
    let mut groups: Vec<GroupNumbers> = groups.into_iter().flatten().collect();
    process::add(&mut all);
    states(&mut all, &groups);
    let omitted = [
        ("topics", topics_omitted),
        ("partitions", partitions.len().saturating_sub(series_max)),
        ("groups", groups.len().saturating_sub(series_max)),
        ("lags", lags.omitted),
    ];
    let help = "Topics, partitions, groups and lags left out by --metrics-series.";
    for (what, count) in omitted {
        all.gauge("coretide_metrics_series_omitted", help, &[("of", what)], count as f64);
    }
    partitions.truncate(series_max);
    groups.truncate(series_max);
    let mut out = Text::default();
    write(&mut out, &all);
    write_partitions(&mut out, &partitions);
    write_lags(&mut out, lags);
    write_groups(&mut out, &groups);
    out.into_string()
}

/// How many groups are in each state; complete whatever is left out.
fn states(out: &mut Snapshot, groups: &[GroupNumbers]) {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for state in ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"] {
        counts.insert(("classic", state), 0);
    }
    for state in ["Empty", "Assigning", "Reconciling", "Stable"] {
        counts.insert(("consumer", state), 0);
    }
    for group in groups {
        *counts.entry((group.count.kind, group.count.state)).or_default() += 1;
    }
    for ((kind, state), count) in counts {
        let labels = [("type", kind), ("state", state)];
        out.gauge("coretide_groups", "Groups by type and state.", &labels, count as f64);
    }
}

fn write_partitions(out: &mut Text, partitions: &[PartitionNumbers]) {
    type Metric = (&'static str, &'static str, fn(&PartitionNumbers) -> u64);
    let metrics: [Metric; 3] = [
        ("coretide_partition_log_start_offset", "First offset that is kept.", |it| {
            it.log_start.max(0) as u64
        }),
        ("coretide_partition_log_end_offset", "Behind the last record that is shown.", |it| {
            it.high_watermark.max(0) as u64
        }),
        ("coretide_partition_log_bytes", "Bytes of record batches kept.", |it| it.bytes),
    ];
    for (name, help, value) in metrics {
        let mut family = out.family(name, Kind::Gauge, help);
        for it in partitions {
            let index = it.index.to_string();
            family.integer([("topic", &*it.topic), ("partition", &index)], value(it));
        }
    }
}

fn write_lags(out: &mut Text, lags: &Lags) {
    let help = "Records that the group has not consumed.";
    let mut family = out.family("coretide_group_lag_records", Kind::Gauge, help);
    for lag in &lags.all {
        let index = lag.partition.to_string();
        let labels = [("group", &*lag.group), ("topic", &*lag.topic), ("partition", &index)];
        family.integer(labels, lag.records);
    }
    let help = "Age of the oldest record that the group has not consumed.";
    let mut family = out.family("coretide_group_lag_seconds", Kind::Gauge, help);
    for lag in &lags.all {
        let Some(seconds) = lag.seconds else { continue };
        let index = lag.partition.to_string();
        let labels = [("group", &*lag.group), ("topic", &*lag.topic), ("partition", &index)];
        family.float(labels, seconds);
    }
}

fn write_groups(out: &mut Text, groups: &[GroupNumbers]) {
    type Metric = (&'static str, &'static str, fn(&GroupNumbers) -> usize);
    let metrics: [Metric; 3] = [
        ("coretide_group_members", "Members of the group.", |it| it.count.members),
        ("coretide_group_members_idle", "Members that were assigned no partition.", |it| {
            it.count.idle
        }),
        ("coretide_group_partitions", "Partitions of what the group subscribes to.", |it| {
            it.partitions
        }),
    ];
    for (name, help, value) in metrics {
        let mut family = out.family(name, Kind::Gauge, help);
        for it in groups {
            family.integer([("group", &*it.count.id)], value(it) as u64);
        }
    }
    let help = "1 for the state that the group is in.";
    let mut family = out.family("coretide_group_state", Kind::Gauge, help);
    for it in groups {
        family.integer([("group", &*it.count.id), ("state", it.count.state)], 1);
    }
}
