//! Uniform, for members that subscribe to different topics: what is free goes to the subscriber
//! that has least, then topic by topic partitions move from whoever has most to whoever has least,
//! until they differ by one at most or nothing moves any more.

use std::collections::{BTreeMap, BTreeSet};

use protocol::Uuid;

use super::{Counts, Partitions, Subject};

struct Shares<'a> {
    /// Who subscribes to a topic, by place.
    subscribers: BTreeMap<Uuid, Vec<usize>>,
    /// Per topic and partition, the place of its owner.
    owners: BTreeMap<Uuid, Vec<Option<usize>>>,
    /// How many partitions each has.
    sizes: Vec<usize>,
    counts: &'a Counts,
}

pub(super) fn assign(subjects: &[Subject<'_>], counts: &Counts) -> Vec<Partitions> {
    let mut shares = Shares::of(subjects, counts);
    let order = shares.order();
    for &topic in &order {
        shares.fill(topic);
    }
    for _ in 0..ROUNDS_MAX {
        let moved: usize = order.iter().map(|&topic| shares.balance(topic)).sum();
        if moved == 0 {
            break;
        }
    }
    shares.by_subject(subjects.len())
}

impl<'a> Shares<'a> {
    /// Everybody keeps what it has and still subscribes to.
    fn of(subjects: &[Subject<'_>], counts: &'a Counts) -> Shares<'a> {
        let owners = counts.iter().map(|(&topic, &count)| (topic, vec![None; count as usize]));
        let mut shares = Shares {
            subscribers: BTreeMap::new(),
            owners: owners.collect(),
            sizes: vec![0; subjects.len()],
            counts,
        };
        for (at, subject) in subjects.iter().enumerate() {
            for topic in subject.topics {
                shares.subscribers.entry(*topic).or_default().push(at);
            }
            let old = subject.target.iter().filter(|(topic, _)| subject.topics.contains(topic));
            for (topic, index) in old.flat_map(|(topic, it)| it.iter().map(move |&at| (topic, at)))
            {
                let owner = shares.owners.get_mut(topic).and_then(|it| it.get_mut(index as usize));
                if let Some(owner @ None) = owner {
                    *owner = Some(at);
                    shares.sizes[at] += 1;
                }
            }
        }
        shares
    }

    /// Topics with most partitions for each subscriber first, then those with fewest subscribers:
    /// they leave the least choice.
    fn order(&self) -> Vec<Uuid> {
        let mut order: Vec<Uuid> = self.subscribers.keys().copied().collect();
        let weight = |topic: &Uuid| {
            let subscribers = self.subscribers[topic].len() as u64;
            (self.counts[topic].max(0) as u64, subscribers)
        };
        order.sort_by(|one, other| {
            let ((p1, s1), (p2, s2)) = (weight(one), weight(other));
            (p2 * s1).cmp(&(p1 * s2)).then(s1.cmp(&s2)).then(one.cmp(other))
        });
        order
    }

    /// The subscribers of a topic, those with the smallest share first.
    fn ranked(&self, topic: Uuid) -> BTreeSet<(usize, usize)> {
        self.subscribers[&topic].iter().map(|&at| (self.sizes[at], at)).collect()
    }

    fn fill(&mut self, topic: Uuid) {
        let mut ranked = self.ranked(topic);
        for index in 0..self.owners[&topic].len() {
            if self.owners[&topic][index].is_some() {
                continue;
            }
            let Some((size, at)) = ranked.pop_first() else { return };
            ranked.insert((size + 1, at));
            self.give(topic, index, at);
        }
    }

    /// How many partitions of the topic moved.
    fn balance(&mut self, topic: Uuid) -> usize {
        let mut least = self.ranked(topic);
        let mut held: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, owner) in self.owners[&topic].iter().enumerate() {
            if let Some(owner) = owner {
                held.entry(*owner).or_default().push(index);
            }
        }
        let mut most: BTreeSet<(usize, usize)> =
            held.keys().map(|&at| (self.sizes[at], at)).collect();
        let mut moved = 0;
        while let (Some(&(low, to)), Some(&(high, from))) = (least.first(), most.last()) {
            if high <= low + 1 {
                break;
            }
            let Some(index) = held.get_mut(&from).and_then(Vec::pop) else {
                // It has more, but nothing of this topic.
                most.remove(&(high, from));
                continue;
            };
            held.entry(to).or_default().push(index);
            for (ranking, add_new) in [(&mut least, true), (&mut most, false)] {
                ranking.remove(&(high, from));
                ranking.insert((high - 1, from));
                if ranking.remove(&(low, to)) || add_new {
                    ranking.insert((low + 1, to));
                }
            }
            most.insert((low + 1, to));
            self.give(topic, index, to);
            moved += 1;
        }
        moved
    }

    fn give(&mut self, topic: Uuid, index: usize, to: usize) {
        let Some(owner) = self.owners.get_mut(&topic).and_then(|it| it.get_mut(index)) else {
            return;
        };
        if let Some(from) = owner.replace(to) {
            self.sizes[from] -= 1;
        }
        self.sizes[to] += 1;
    }

    fn by_subject(&self, subjects: usize) -> Vec<Partitions> {
        let mut shares = vec![Partitions::new(); subjects];
        for (&topic, owners) in &self.owners {
            for (index, owner) in (0..).zip(owners) {
                if let Some(at) = owner {
                    shares[*at].entry(topic).or_default().insert(index);
                }
            }
        }
        shares
    }
}

/// Topics pull at each other: enough rounds for what is worth moving.
const ROUNDS_MAX: usize = 16;
