//! How far groups are behind: what they have committed against where partitions end.
//!
//! Law: lag in records is the high watermark less the committed offset, as Kafka's tools count it;
//! lag in seconds is the age of the oldest record that is still there and not consumed, and 0 for
//! who has read all. Of more than the permitted number, the largest lags are told.

use std::collections::{BTreeMap, HashMap};

use protocol::{SlotIndex, Str};
use runtime::task::Unhurried;

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
    pub async fn join(numbers: &[SlotNumbers], series_max: usize) -> Lags {
        let mut pace = Unhurried::default();
        let (mut ends, mut lags) = (Ends::new(), Lags { all: Vec::new(), omitted: 0 });
        ends.reserve(numbers.iter().map(|slot| slot.partitions.len()).sum());
        for slot in numbers {
            for it in &slot.partitions {
                ends.insert((&*it.topic, it.index), (slot.slot, it));
                pace.turn().await;
            }
        }
        for group in numbers.iter().flat_map(|slot| &slot.groups) {
            for (topic, partition, offset) in &group.count.committed {
                pace.turn().await;
                let Some((slot, it)) = ends.get(&(&**topic, *partition)) else { continue };
                let records = it.high_watermark.saturating_sub(*offset).max(0) as u64;
                lags.all.push(Lag {
                    group: group.count.id.clone(),
                    topic: topic.clone(),
                    partition: *partition,
                    records,
                    seconds: (records == 0).then_some(0.0),
                    at: (*slot, (*offset).max(it.log_start)),
                });
                if lags.all.len() >= series_max.saturating_mul(2).max(1) {
                    lags.keep_largest(series_max);
                }
            }
        }
        lags.keep_largest(series_max);
        lags
    }

    fn keep_largest(&mut self, count: usize) {
        let more = self.all.len().saturating_sub(count);
        if more > 0 {
            self.all.select_nth_unstable_by_key(count, |lag| std::cmp::Reverse(lag.records));
            self.all.truncate(count);
            self.omitted += more;
        }
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
