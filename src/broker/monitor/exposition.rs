//! The numbers of all slots as text.

use std::collections::BTreeMap;

use ::metrics::{Kind, Snapshot, Text};
use runtime::task::{self, Unhurried};

use super::lag::Lags;
use super::numbers::{GroupNumbers, PartitionNumbers, SlotNumbers};

/// Everything, in pieces. Of each metric with a label for the partition or the group, at most
/// `series_max` series are written; how many were not is a metric itself.
pub async fn text(
    numbers: Vec<SlotNumbers>,
    process: Snapshot,
    lags: Lags,
    series_max: usize,
) -> Vec<String> {
    let mut all = process;
    let (mut partitions, mut groups, mut topics_omitted) = (Vec::new(), Vec::new(), 0);
    for slot in numbers {
        topics_omitted += slot.topics_omitted;
        all.merge(slot.snapshot);
        partitions.push(slot.partitions);
        groups.push(slot.groups);
    }
    let mut page = Page { text: Text::default(), pace: Unhurried::default(), series_max };
    page.states(&mut all, &groups).await;
    let omitted = [
        ("topics", topics_omitted),
        ("partitions", count(&partitions).saturating_sub(series_max)),
        ("groups", count(&groups).saturating_sub(series_max)),
        ("lags", lags.omitted),
    ];
    let help = "Topics, partitions, groups and lags left out by --metrics-series.";
    for (what, count) in omitted {
        all.gauge("coretide_metrics_series_omitted", help, &[("of", what)], count as f64);
    }
    page.snapshot(&all).await;
    page.partitions(&partitions).await;
    page.lags(&lags).await;
    page.groups(&groups).await;
    // Of many partitions and groups this takes long, too.
    task::blocking(move || drop((partitions, lags, groups))).await;
    page.text.into_pieces()
}

fn count<T>(slots: &[Vec<T>]) -> usize {
    slots.iter().map(Vec::len).sum()
}

/// The page in the making.
struct Page {
    text: Text,
    pace: Unhurried,
    series_max: usize,
}

impl Page {
    /// How many groups are in each state; complete whatever is left out.
    async fn states(&mut self, out: &mut Snapshot, groups: &[Vec<GroupNumbers>]) {
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for state in ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable"] {
            counts.insert(("classic", state), 0);
        }
        for state in ["Empty", "Assigning", "Reconciling", "Stable"] {
            counts.insert(("consumer", state), 0);
        }
        for group in groups.iter().flatten() {
            self.pace.turn().await;
            *counts.entry((group.count.kind, group.count.state)).or_default() += 1;
        }
        for ((kind, state), count) in counts {
            let labels = [("type", kind), ("state", state)];
            out.gauge("coretide_groups", "Groups by type and state.", &labels, count as f64);
        }
    }

    async fn snapshot(&mut self, snapshot: &Snapshot) {
        for (name, family) in snapshot.families() {
            let mut out = self.text.family(name, family.kind, family.help);
            for sample in &family.samples {
                out.sample(sample);
                self.pace.turn().await;
            }
        }
    }

    async fn partitions(&mut self, partitions: &[Vec<PartitionNumbers>]) {
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
            let mut family = self.text.family(name, Kind::Gauge, help);
            for it in partitions.iter().flatten().take(self.series_max) {
                let index = it.index.to_string();
                family.integer([("topic", &*it.topic), ("partition", &index)], value(it));
                self.pace.turn().await;
            }
        }
    }

    async fn lags(&mut self, lags: &Lags) {
        let help = "Records that the group has not consumed.";
        let mut family = self.text.family("coretide_group_lag_records", Kind::Gauge, help);
        for lag in &lags.all {
            let index = lag.partition.to_string();
            let labels = [("group", &*lag.group), ("topic", &*lag.topic), ("partition", &index)];
            family.integer(labels, lag.records);
            self.pace.turn().await;
        }
        let help = "Age of the oldest record that the group has not consumed.";
        let mut family = self.text.family("coretide_group_lag_seconds", Kind::Gauge, help);
        for lag in &lags.all {
            let Some(seconds) = lag.seconds else { continue };
            let index = lag.partition.to_string();
            let labels = [("group", &*lag.group), ("topic", &*lag.topic), ("partition", &index)];
            family.float(labels, seconds);
            self.pace.turn().await;
        }
    }

    async fn groups(&mut self, groups: &[Vec<GroupNumbers>]) {
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
            let mut family = self.text.family(name, Kind::Gauge, help);
            for it in groups.iter().flatten().take(self.series_max) {
                family.integer([("group", &*it.count.id)], value(it) as u64);
                self.pace.turn().await;
            }
        }
        let help = "1 for the state that the group is in.";
        let mut family = self.text.family("coretide_group_state", Kind::Gauge, help);
        for it in groups.iter().flatten().take(self.series_max) {
            family.integer([("group", &*it.count.id), ("state", it.count.state)], 1);
            self.pace.turn().await;
        }
    }
}
