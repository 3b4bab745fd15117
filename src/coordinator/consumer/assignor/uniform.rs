//! Uniform, for members that all subscribe to the same: shares differ by one at most, and a member
//! keeps of its old share as much as fits into the new one.

use std::collections::BTreeSet;

use protocol::Uuid;

use super::{Counts, Partitions, Subject};

pub(super) fn assign(subjects: &[Subject<'_>], counts: &Counts) -> Vec<Partitions> {
    let total: usize = counts.values().map(|&it| it.max(0) as usize).sum();
    let (least, mut extras) = (total / subjects.len().max(1), total % subjects.len().max(1));
    let mut kept: BTreeSet<(Uuid, i32)> = BTreeSet::new();
    let mut shares = Vec::with_capacity(subjects.len());
    let mut room = Vec::with_capacity(subjects.len());
    for (at, subject) in subjects.iter().enumerate() {
        let quota = least + usize::from(extras > 0);
        let (share, size) = keep(subject, counts, quota, &mut kept);
        // An extra partition goes to those that have it already; the others get what is left of
        // them, as few as possible moving.
        let spare = quota - size;
        let takes_extra = extras > 0 && (spare == 0 || subjects.len() - at <= extras);
        extras -= usize::from(takes_extra);
        room.push(if takes_extra { spare } else { least.saturating_sub(size) });
        shares.push(share);
    }
    let every = counts.iter().flat_map(|(&topic, &count)| (0..count).map(move |it| (topic, it)));
    let mut free = every.filter(|partition| !kept.contains(partition));
    for (share, room) in shares.iter_mut().zip(room) {
        for (topic, index) in free.by_ref().take(room) {
            share.entry(topic).or_default().insert(index);
        }
    }
    assert!(free.next().is_none(), "every partition has its place");
    shares
}

/// Of the old share, what exists and fits.
fn keep(
    subject: &Subject<'_>,
    counts: &Counts,
    quota: usize,
    kept: &mut BTreeSet<(Uuid, i32)>,
) -> (Partitions, usize) {
    let mut share = Partitions::new();
    let mut size = 0;
    for (&topic, partitions) in subject.target {
        let Some(&count) = counts.get(&topic) else { continue };
        for &index in partitions.range(..count) {
            if size < quota && kept.insert((topic, index)) {
                share.entry(topic).or_default().insert(index);
                size += 1;
            }
        }
    }
    (share, size)
}
