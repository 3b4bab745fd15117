//! Which partitions `coretide rebalance` moves between the slots of a host.
//!
//! Law: a plan evens out numbers of partitions, first those of each topic, then all together, so
//! that no slot of a host has two more than another; sizes only decide which of several goes. What
//! may not move stays, and a plan moves nothing twice. The same input gives the same plan.

use std::collections::{BTreeMap, BTreeSet};

/// Slots of one host: node ids are host id × 1000 + slot.
const SLOTS_PER_HOST: i32 = 1000;

/// One copy of a partition and the node that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub topic: String,
    pub partition: i32,
    pub node: i32,
    pub bytes: u64,
    /// Whether it may be moved.
    pub movable: bool,
}

/// A step of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub topic: String,
    pub partition: i32,
    pub from: i32,
    pub to: i32,
    pub bytes: u64,
}

/// What a node has in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub partitions: usize,
    pub bytes: u64,
}

/// The host that a node is a slot of.
pub fn host_of(node: i32) -> i32 {
    node / SLOTS_PER_HOST
}

/// What every node has; those without anything too.
pub fn loads(nodes: &[i32], placed: &[Placed]) -> BTreeMap<i32, Load> {
    let mut loads: BTreeMap<i32, Load> = nodes.iter().map(|&it| (it, Load::default())).collect();
    for each in placed {
        let load = loads.entry(each.node).or_default();
        load.partitions += 1;
        load.bytes += each.bytes;
    }
    loads
}

/// What every node has once the plan is carried out.
pub fn loads_after(nodes: &[i32], placed: &[Placed], moves: &[Move]) -> BTreeMap<i32, Load> {
    let mut placed = placed.to_vec();
    for each in &mut placed {
        let of_it = |step: &&Move| {
            (&step.topic, step.partition, step.from) == (&each.topic, each.partition, each.node)
        };
        each.node = moves.iter().find(of_it).map_or(each.node, |step| step.to);
    }
    loads(nodes, &placed)
}

/// Evens out the slots of every host. Nodes to be emptied keep nothing that may move.
pub fn even_out(nodes: &[i32], placed: &[Placed], emptied: &[i32]) -> Vec<Move> {
    let hosts: BTreeSet<i32> = nodes.iter().map(|&node| host_of(node)).collect();
    let mut moves = Vec::new();
    for host in hosts {
        let ours = |node: i32| host_of(node) == host;
        let targets = nodes.iter().copied().filter(|node| ours(*node) && !emptied.contains(node));
        let targets: BTreeSet<i32> = targets.collect();
        let here: Vec<Placed> = placed.iter().filter(|it| ours(it.node)).cloned().collect();
        if !targets.is_empty() {
            moves.extend(Balance::new(targets, here).plan());
        }
    }
    moves
}

/// Moves everything that may move to one node of the same host.
pub fn gather(placed: &[Placed], to: i32) -> Vec<Move> {
    let goes = |it: &&Placed| it.movable && it.node != to && host_of(it.node) == host_of(to);
    placed.iter().filter(goes).map(|it| step(it, to)).collect()
}

fn step(placed: &Placed, to: i32) -> Move {
    Move {
        topic: placed.topic.clone(),
        partition: placed.partition,
        from: placed.node,
        to,
        bytes: placed.bytes,
    }
}

/// The slots of one host while they are evened out.
struct Balance {
    targets: BTreeSet<i32>,
    placed: Vec<Placed>,
    totals: BTreeMap<i32, Load>,
    /// Partitions by node and topic.
    of_topics: BTreeMap<i32, BTreeMap<String, usize>>,
}

impl Balance {
    fn new(targets: BTreeSet<i32>, placed: Vec<Placed>) -> Balance {
        let nodes: Vec<i32> = targets.iter().copied().collect();
        let totals = loads(&nodes, &placed);
        let mut of_topics: BTreeMap<i32, BTreeMap<String, usize>> = BTreeMap::new();
        for each in &placed {
            *of_topics.entry(each.node).or_default().entry(each.topic.clone()).or_default() += 1;
        }
        Balance { targets, placed, totals, of_topics }
    }

    fn plan(mut self) -> Vec<Move> {
        let before = self.placed.clone();
        self.empty();
        let topics: BTreeSet<String> = self.placed.iter().map(|it| it.topic.clone()).collect();
        for topic in &topics {
            while self.step(Some(topic)) {}
        }
        while self.step(None) {}
        let pairs = before.iter().zip(&self.placed);
        pairs.filter(|(from, to)| from.node != to.node).map(|(it, to)| step(it, to.node)).collect()
    }

    /// Finds a place for what is on slots that shall have nothing.
    fn empty(&mut self) {
        for place in 0..self.placed.len() {
            let each = &self.placed[place];
            if !each.movable || self.targets.contains(&each.node) {
                continue;
            }
            let emptiest = self.targets.iter().copied().min_by_key(|&node| {
                let all = self.total(node);
                (self.of_topic(node, &each.topic), all.partitions, all.bytes, node)
            });
            if let Some(to) = emptiest {
                self.put(place, to);
            }
        }
    }

    /// Moves one partition, of a topic or of any, from a slot that has two more than another;
    /// false when there is none.
    fn step(&mut self, topic: Option<&str>) -> bool {
        let count = |node: i32| match topic {
            Some(topic) => self.of_topic(node, topic),
            None => self.total(node).partitions,
        };
        let mut slots: Vec<(usize, usize, u64, i32)> = self
            .targets
            .iter()
            .map(|&it| (count(it), self.total(it).partitions, self.total(it).bytes, it))
            .collect();
        slots.sort_unstable();
        // The fullest that has something to give goes first.
        for &(full, _, _, from) in slots.iter().rev() {
            for &(_, _, _, to) in slots.iter().take_while(|slot| slot.0 + 2 <= full) {
                if let Some(place) = self.choose(topic, from, to) {
                    self.put(place, to);
                    return true;
                }
            }
        }
        false
    }

    /// What had better go from one slot to another: of a topic that has more there, and of a size
    /// that brings both closest together.
    fn choose(&self, topic: Option<&str>, from: i32, to: i32) -> Option<usize> {
        let gap = i128::from(self.total(from).bytes) - i128::from(self.total(to).bytes);
        let candidates = self.placed.iter().enumerate().filter(|(_, each)| {
            let asked = topic.is_none_or(|topic| topic == each.topic);
            each.movable
                && each.node == from
                && asked
                && self.of_topic(from, &each.topic) > self.of_topic(to, &each.topic)
        });
        let left = |bytes: u64| (gap - 2 * i128::from(bytes)).unsigned_abs();
        let best = candidates.min_by_key(|(place, each)| (left(each.bytes), *place));
        best.map(|(place, _)| place)
    }

    fn put(&mut self, place: usize, to: i32) {
        let each = &mut self.placed[place];
        let from = std::mem::replace(&mut each.node, to);
        let (topic, bytes) = (each.topic.clone(), each.bytes);
        if let Some(load) = self.totals.get_mut(&from) {
            load.partitions -= 1;
            load.bytes -= bytes;
        }
        if let Some(count) = self.of_topics.get_mut(&from).and_then(|it| it.get_mut(&topic)) {
            *count -= 1;
        }
        let load = self.totals.entry(to).or_default();
        load.partitions += 1;
        load.bytes += bytes;
        *self.of_topics.entry(to).or_default().entry(topic).or_default() += 1;
    }

    fn total(&self, node: i32) -> Load {
        self.totals.get(&node).copied().unwrap_or_default()
    }

    fn of_topic(&self, node: i32, topic: &str) -> usize {
        self.of_topics.get(&node).and_then(|it| it.get(topic)).copied().unwrap_or(0)
    }
}
