//! Range: the subscribers of a topic, static ones first, each get a run of its partitions; where
//! the division leaves a rest, the first get one more. Topics of one size are cut alike, so that
//! partitions with the same keys meet at one member.

use std::collections::BTreeMap;

use protocol::Uuid;

use super::{Counts, Partitions, Subject};

struct Cut {
    /// How many partitions everybody gets at least.
    share: i32,
    /// How many are left over for the first.
    rest: i32,
    next: i32,
}

pub(super) fn assign(subjects: &[Subject<'_>], counts: &Counts) -> Vec<Partitions> {
    let mut subscribers: BTreeMap<Uuid, i32> = BTreeMap::new();
    for topic in subjects.iter().flat_map(|it| it.topics) {
        *subscribers.entry(*topic).or_default() += 1;
    }
    let mut cuts: BTreeMap<Uuid, Cut> = BTreeMap::new();
    for (topic, count) in subscribers {
        let partitions = counts.get(&topic).copied().unwrap_or(0);
        let cut = Cut { share: partitions / count, rest: partitions % count, next: 0 };
        cuts.insert(topic, cut);
    }
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    // Members with an instance id keep their place when they come back.
    order.sort_by_key(|&at| {
        let subject = &subjects[at];
        (subject.instance_id.is_none(), subject.instance_id, subject.id)
    });
    let mut shares = vec![Partitions::new(); subjects.len()];
    for at in order {
        for topic in subjects[at].topics {
            let Some(cut) = cuts.get_mut(topic) else { continue };
            let size = cut.share + i32::from(cut.rest > 0);
            cut.rest -= i32::from(cut.rest > 0);
            let run = cut.next..cut.next + size;
            cut.next = run.end;
            if !run.is_empty() {
                shares[at].insert(*topic, run.collect());
            }
        }
    }
    shares
}
