//! One slot's numbers, copied out of it in slices.

use std::rc::Rc;

use ::metrics::Snapshot;
use coordinator::GroupCount;
use metadata::Image;
use protocol::{SlotIndex, Str};
use runtime::task::Unhurried;

use crate::shard::{LocalTopic, Partition};
use crate::slot::{Slot, snapshot};

/// What a slot tells at a scrape.
pub struct SlotNumbers {
    pub slot: SlotIndex,
    pub snapshot: Snapshot,
    /// Those that the slot leads and has open, in the order of their names.
    pub partitions: Vec<PartitionNumbers>,
    /// Those that the slot coordinates.
    pub groups: Vec<GroupNumbers>,
    /// Topics whose traffic was left out.
    pub topics_omitted: usize,
}

pub struct PartitionNumbers {
    pub topic: Str,
    pub index: i32,
    pub log_start: i64,
    /// Behind what consumers are shown.
    pub high_watermark: i64,
    pub bytes: u64,
}

pub struct GroupNumbers {
    pub count: GroupCount,
    /// Of the topics that it subscribes to.
    pub partitions: usize,
}

/// How a slot's partitions are replicated.
#[derive(Default)]
struct Health {
    offline: usize,
    under_replicated: usize,
    under_min_isr: usize,
    uncleanable: usize,
}

/// Copies the numbers of a slot; other tasks run meanwhile, so they are of slightly different
/// moments.
pub async fn collect(slot: &Rc<Slot>) -> SlotNumbers {
    let mut all = SlotNumbers {
        slot: slot.index,
        snapshot: snapshot(slot).await,
        partitions: Vec::with_capacity(slot.shard.count()),
        groups: Vec::new(),
        topics_omitted: 0,
    };
    let (image, mut health) = (slot.image(), Health::default());
    let core = slot.index.0.to_string();
    let mut pace = Unhurried::default();
    for (place, topic) in slot.shard.topics().into_iter().enumerate() {
        if place < slot.host.metrics_series {
            traffic(&mut all.snapshot, &topic, &core);
        } else {
            all.topics_omitted += 1;
        }
        for partition in topic.partitions() {
            health.look_at(&image, &topic, &partition);
            all.partitions.extend(positions(&partition));
            pace.turn().await;
        }
    }
    health.tell(&mut all.snapshot, &core);
    let bytes: u64 = all.partitions.iter().map(|it| it.bytes).sum();
    let help = "Bytes of record batches kept.";
    all.snapshot.gauge("coretide_log_bytes", help, &[("core", &core)], bytes as f64);
    count_groups(slot, &image, &mut all.groups, &mut pace).await;
    all
}

async fn count_groups(
    slot: &Slot,
    image: &Image,
    groups: &mut Vec<GroupNumbers>,
    pace: &mut Unhurried,
) {
    for pump in slot.groups.serving() {
        let mut last: Option<Str> = None;
        loop {
            let (page, _) = pump.look(|it| it.census(last.as_ref(), GROUPS_PER_LOOK));
            let Some(end) = page.last() else { break };
            last = Some(end.id.clone());
            for count in page {
                groups.push(with_partitions(image, count));
                pace.turn().await;
            }
        }
    }
}

fn positions(partition: &Partition) -> Option<PartitionNumbers> {
    let log = partition.log().ok()?;
    Some(PartitionNumbers {
        topic: partition.topic.clone(),
        index: partition.index,
        log_start: log.log_start_offset(),
        high_watermark: log.high_watermark(),
        bytes: log.size_bytes(),
    })
}

fn with_partitions(image: &Image, count: GroupCount) -> GroupNumbers {
    let topics = count.topics.iter().filter_map(|name| image.topic(name));
    let partitions = topics.map(|topic| topic.partitions.len()).sum();
    GroupNumbers { count, partitions }
}

fn traffic(out: &mut Snapshot, topic: &LocalTopic, core: &str) {
    let labels = [("topic", &*topic.name), ("core", core)];
    let it = &topic.traffic;
    let counters = [
        ("coretide_topic_produced_records", "Records appended by clients.", &it.produced_records),
        ("coretide_topic_produced_bytes", "Bytes of batches appended.", &it.produced_bytes),
        ("coretide_topic_fetched_records", "Offsets served to readers.", &it.fetched_records),
        ("coretide_topic_fetched_bytes", "Bytes of batches served.", &it.fetched_bytes),
    ];
    for (name, help, counter) in counters {
        out.counter(name, help, &labels, counter.get());
    }
}

impl Health {
    fn look_at(&mut self, image: &Image, topic: &LocalTopic, partition: &Partition) {
        self.offline += usize::from(partition.is_offline());
        self.uncleanable += usize::from(partition.log().is_ok_and(|it| it.is_uncleanable()));
        let Some(placed) = image.partition(topic.id, partition.index) else { return };
        let (replicas, in_sync) = (placed.replicas.len(), placed.in_sync.len());
        self.under_replicated += usize::from(in_sync < replicas);
        let needed = topic.settings().needed_in_sync(replicas);
        self.under_min_isr += usize::from(in_sync < needed);
    }

    fn tell(&self, out: &mut Snapshot, core: &str) {
        let gauges = [
            ("coretide_partitions_offline", "Partitions that cannot be served.", self.offline),
            (
                "coretide_partitions_under_replicated",
                "Partitions with a replica that is not in sync.",
                self.under_replicated,
            ),
            (
                "coretide_partitions_under_min_isr",
                "Partitions with fewer replicas in sync than a write needs.",
                self.under_min_isr,
            ),
            (
                "coretide_partitions_uncleanable",
                "Logs that are not compacted any more because damage was met in them.",
                self.uncleanable,
            ),
        ];
        for (name, help, count) in gauges {
            out.gauge(name, help, &[("core", core)], count as f64);
        }
    }
}

/// Of one partition of the topic of committed offsets.
const GROUPS_PER_LOOK: usize = 64;
