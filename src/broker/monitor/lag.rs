//! How far groups are behind: what they have committed against where partitions end.
//!
//! Law: lag in records is the high watermark less the committed offset, as Kafka's tools count it;
//! lag in seconds is the age of the oldest record that is still there and not consumed, and 0 for
//! who has read all. Of more than the permitted number, the largest lags are told.

use std::collections::{BTreeMap, HashMap};

use protocol::{SlotIndex, Str};

use super::ages::AgeQuestion;
use super::numbers::{PartitionNumbers, SlotNumbers};

/// A group's lag in one partition.
pub struct Lag {
    pub group: Str,
    pub topic: Str,
    pub partition: i32,
    pub records: u64,
    /// None when nobody knows.
    pub seconds: Option<f64>,
    /// The slot that has the partition, and the first offset to consume.
    at: (SlotIndex, i64),
}

pub struct Lags {
    pub all: Vec<Lag>,
    /// How many were left out.
    pub omitted: usize,
}

type Ends<'a> = HashMap<(&'a str, i32), (SlotIndex, &'a PartitionNumbers)>;

impl Lags {
    pub fn join(numbers: &[SlotNumbers], series_max: usize) -> Lags {
        let mut ends = Ends::new();
        for slot in numbers {
            let each = slot.partitions.iter();
            ends.extend(each.map(|it| ((&*it.topic, it.index), (slot.slot, it))));
        }
        let groups = numbers.iter().flat_map(|slot| &slot.groups);
        let mut all: Vec<Lag> = groups
            .flat_map(|group| {
                let committed = group.count.committed.iter();
                let ends = &ends;
                committed.filter_map(|(topic, partition, offset)| {
                    let (slot, it) = ends.get(&(&**topic, *partition))?;
                    let records = it.high_watermark.saturating_sub(*offset).max(0) as u64;
                    Some(Lag {
                        group: group.count.id.clone(),
                        topic: topic.clone(),
                        partition: *partition,
                        records,
                        seconds: (records == 0).then_some(0.0),
                        at: (*slot, (*offset).max(it.log_start)),
                    })
                })
            })
            .collect();
        let omitted = all.len().saturating_sub(series_max);
        if omitted > 0 {
            all.select_nth_unstable_by_key(series_max, |lag| std::cmp::Reverse(lag.records));
            all.truncate(series_max);
        }
        Lags { all, omitted }
    }

    /// What the slots have to be asked, with the place of each question.
    pub fn questions(&self) -> BTreeMap<SlotIndex, Vec<(usize, AgeQuestion)>> {
        let mut questions: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (place, lag) in self.all.iter().enumerate().filter(|(_, it)| it.seconds.is_none()) {
            let (topic, partition) = (lag.topic.clone(), lag.partition);
            let question = AgeQuestion { topic, partition, offset: lag.at.1 };
            questions.entry(lag.at.0).or_default().push((place, question));
        }
        questions
    }

    pub fn answer(&mut self, places: &[usize], ages_ms: &[Option<i64>]) {
        for (&place, age_ms) in places.iter().zip(ages_ms) {
            self.all[place].seconds = age_ms.map(|age_ms| age_ms as f64 / 1e3);
        }
    }
}
