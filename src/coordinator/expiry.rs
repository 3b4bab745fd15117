//! Offsets whose time is over, and groups that have nothing left.
//!
//! A group without members keeps its offsets from the moment it became empty; one whose members
//! use "consumer" protocols loses those of topics it does not subscribe to, counted from the
//! commit; others keep them as long as they live (KIP-211).

use std::collections::BTreeMap;
use std::ops::Bound;

use protocol::Str;
use protocol::group_records::OffsetWriter;

use crate::classic::{ClassicGroup, State};
use crate::coordinator::Coordinator;
use crate::offsets::{self, CommittedOffset, Place};
use crate::world::{Output, World};

/// How far a sweep has come: behind which offset, and then behind which group of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sweep {
    Offsets(Option<Place>),
    Classic(Option<Str>),
    Consumers(Option<Str>),
}

impl Default for Sweep {
    fn default() -> Sweep {
        Sweep::Offsets(None)
    }
}

impl Coordinator {
    /// Lets go of what is too old among the next offsets or groups, and says where to go on; none
    /// when that was all.
    pub fn expire(&mut self, world: &World<'_>, sweep: &Sweep) -> (Output, Option<Sweep>) {
        let mut output = Output::default();
        let next = match sweep {
            Sweep::Offsets(after) => {
                let last = self.expire_offsets(world, after.as_ref(), &mut output);
                Some(last.map_or(Sweep::Classic(None), |last| Sweep::Offsets(Some(last))))
            }
            Sweep::Classic(after) => {
                let (last, bare) = some_behind(&self.groups, after.as_ref(), |group| {
                    !group.is_in_use() && group.state == State::Empty
                });
                self.bury_the_bare(world, bare, &mut output);
                Some(last.map_or(Sweep::Consumers(None), |last| Sweep::Classic(Some(last))))
            }
            Sweep::Consumers(after) => {
                let (last, bare) =
                    some_behind(&self.consumers, after.as_ref(), |group| group.members.is_empty());
                self.bury_the_bare(world, bare, &mut output);
                last.map(|last| Sweep::Consumers(Some(last)))
            }
        };
        (output, next)
    }

    /// Gives the last offset that was looked at, unless that was all.
    fn expire_offsets(
        &mut self,
        world: &World<'_>,
        after: Option<&Place>,
        output: &mut Output,
    ) -> Option<Place> {
        let mut writer = OffsetWriter::new(TOMBSTONES_EXPECTED);
        let mut last = None;
        let mut topic_of_last = None;
        let (mut looked_at, mut found, mut used) = (0, None, false);
        for (group, topic, partition, committed) in self.offsets.behind(after) {
            looked_at += 1;
            if topic_of_last != Some((group, topic)) {
                topic_of_last = Some((group, topic));
                found = self.groups.get(group);
                used = self.consumers.get(group).is_some_and(|it| it.is_subscribed_to(topic));
            }
            let since_ms = since_when(found, topic, committed).filter(|_| !used);
            if since_ms.is_some_and(|since_ms| is_over(committed, since_ms, world)) {
                output.records.push(offsets::tombstone(&mut writer, group, topic, partition));
            }
            if looked_at == EXPIRED_AT_A_TIME {
                last = Some(Place { group: group.clone(), topic: topic.clone(), partition });
                break;
            }
        }
        self.replay_own(&output.records);
        last
    }

    /// Ends those of these groups that have no offsets either.
    fn bury_the_bare(&mut self, world: &World<'_>, bare: Vec<Str>, output: &mut Output) {
        for group in bare {
            if self.offsets.of_group(&group).is_none() {
                self.bury(world, &group, output);
                self.groups.remove(&group);
            }
        }
    }
}

/// Of the next groups, the last unless that was all, and those that are like this.
fn some_behind<G>(
    groups: &BTreeMap<Str, G>,
    after: Option<&Str>,
    like_this: impl Fn(&G) -> bool,
) -> (Option<Str>, Vec<Str>) {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut found = Vec::new();
    for (place, (id, group)) in groups.range::<Str, _>((from, Bound::Unbounded)).enumerate() {
        if like_this(group) {
            found.push(id.clone());
        }
        if place + 1 == EXPIRED_AT_A_TIME {
            return (Some(id.clone()), found);
        }
    }
    (None, found)
}

/// From when on the time of an offset counts; none while it is in use.
fn since_when(
    group: Option<&ClassicGroup>,
    topic: &str,
    committed: &CommittedOffset,
) -> Option<i64> {
    let Some(group) = group.filter(|group| group.protocol_type.is_some()) else {
        return Some(committed.commit_timestamp);
    };
    match group.state {
        State::Empty => Some(group.state_since_ms.unwrap_or(committed.commit_timestamp)),
        State::Stable if group.is_of_consumers() => {
            let subscribed = group.subscription()?;
            (!subscribed.contains(topic)).then_some(committed.commit_timestamp)
        }
        _ => None,
    }
}

fn is_over(committed: &CommittedOffset, since_ms: i64, world: &World<'_>) -> bool {
    match committed.expire_timestamp {
        -1 => world.wall_ms.saturating_sub(since_ms) >= world.settings.offsets_retention_ms,
        at_ms => world.wall_ms >= at_ms,
    }
}

/// Room for as many is made at first: it is not known how many there are.
const TOMBSTONES_EXPECTED: usize = 16;
/// Committed offsets, or groups, that are looked at in one go.
const EXPIRED_AT_A_TIME: usize = 2000;
