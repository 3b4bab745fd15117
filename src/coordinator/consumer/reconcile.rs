//! Reconciliation: from what a member has to what it is to have, in steps that never let two
//! members hold one partition (KIP-848).
//!
//! First it gives up what it may not keep; only then it goes on to the next epoch; and of what it
//! is to get, it gets what nobody holds any more.

use std::collections::BTreeSet;

use metadata::Image;
use protocol::messages::consumer_group_heartbeat::TopicPartitions;
use protocol::{Str, Uuid};

use super::member::without_epochs;
use super::{Change, ConsumerGroup, Draft, Member, MemberState, Owned, Partitions};
use crate::timers::Alarm;

/// What a member says it owns; none when it says nothing.
pub(super) type Claimed<'a> = Option<&'a [TopicPartitions]>;

/// Where a member is to go.
struct Step<'a> {
    group: &'a ConsumerGroup,
    target_epoch: i32,
    target: Partitions,
    subscribed: BTreeSet<Uuid>,
    claimed: Claimed<'a>,
}

impl Draft<'_> {
    /// Moves a member on as far as it can go now.
    pub(super) fn reconcile(&mut self, id: &Str, subscription_changed: bool, claimed: Claimed<'_>) {
        let group = &*self.group;
        let Some(member) = group.members.get(id) else { return };
        if !subscription_changed && member.is_reconciled_to(group.target_epoch) {
            return;
        }
        let next = group.next_step(member, subscription_changed, claimed, self.world.image);
        if next == *member {
            return;
        }
        if !next.is_classic() {
            let alarm = Alarm::Revoke(group.id.clone(), id.clone());
            if next.state == MemberState::Unrevoked {
                let patience_ms = i64::from(next.rebalance_timeout_ms);
                self.timers.set(alarm, self.world.now_ms.saturating_add(patience_ms));
            } else {
                self.timers.cancel(&alarm);
            }
        }
        self.put(Change::Current(id.clone(), Some(next.holding())));
    }
}

impl ConsumerGroup {
    fn next_step(
        &self,
        member: &Member,
        subscription_changed: bool,
        claimed: Claimed<'_>,
        image: &Image,
    ) -> Member {
        let step = Step {
            group: self,
            target_epoch: self.target_epoch,
            target: self.target_for(&member.id),
            subscribed: self.subscribed_ids(member, image),
            claimed,
        };
        match member.state {
            MemberState::Stable if member.epoch != step.target_epoch => {
                step.advance(member, member.epoch)
            }
            MemberState::Unrevoked if !owns_any(claimed, &member.revoking) => {
                step.advance(member, member.epoch)
            }
            MemberState::Stable | MemberState::Unrevoked if subscription_changed => {
                step.leave_unsubscribed(member)
            }
            MemberState::Stable | MemberState::Unrevoked => member.clone(),
            MemberState::Unreleased => step.advance(member, member.epoch),
            MemberState::Unknown => step.advance(member, step.target_epoch),
        }
    }
}

impl Step<'_> {
    /// Towards the target: gives up first, then takes.
    fn advance(&self, member: &Member, epoch: i32) -> Member {
        let mut next = member.clone();
        (next.assigned, next.revoking) = (Owned::new(), Owned::new());
        let mut free = Partitions::new();
        let mut waits = false;
        let topics: BTreeSet<Uuid> =
            self.target.keys().chain(member.assigned.keys()).copied().collect();
        for topic in topics {
            let wanted = self.target.get(&topic).filter(|_| self.subscribed.contains(&topic));
            let is_wanted = |index: &i32| wanted.is_some_and(|it| it.contains(index));
            for (&index, &since) in member.assigned.get(&topic).into_iter().flatten() {
                let to = if is_wanted(&index) { &mut next.assigned } else { &mut next.revoking };
                to.entry(topic).or_default().insert(index, since);
            }
            let held =
                |index: &i32| member.assigned.get(&topic).is_some_and(|it| it.contains_key(index));
            for &index in wanted.into_iter().flatten().filter(|index| !held(index)) {
                let own = member.revoking.get(&topic).is_some_and(|it| it.contains_key(&index));
                if self.group.is_held(topic, index) && !own {
                    waits = true;
                } else {
                    free.entry(topic).or_default().insert(index);
                }
            }
        }
        if !next.revoking.is_empty() && owns_any(self.claimed, &next.revoking) {
            next.state = MemberState::Unrevoked;
            next.advance(epoch);
            return next;
        }
        for (topic, indexes) in free {
            let to = next.assigned.entry(topic).or_default();
            to.extend(indexes.into_iter().map(|index| (index, self.target_epoch)));
        }
        next.state = if waits { MemberState::Unreleased } else { MemberState::Stable };
        next.revoking = Owned::new();
        next.advance(self.target_epoch);
        next
    }

    /// Topics that a member does not subscribe to any more are given up at once, whatever the
    /// target says.
    fn leave_unsubscribed(&self, member: &Member) -> Member {
        let mut next = member.clone();
        let (keeps, leaves): (Owned, Owned) = member
            .assigned
            .clone()
            .into_iter()
            .partition(|(topic, _)| self.subscribed.contains(topic));
        if leaves.is_empty() {
            return next;
        }
        next.assigned = keeps;
        let mut revoking = member.revoking.clone();
        for (topic, partitions) in leaves {
            revoking.entry(topic).or_default().extend(partitions);
        }
        if owns_any(self.claimed, &revoking) {
            next.state = MemberState::Unrevoked;
            next.revoking = revoking;
        }
        next.advance(member.epoch);
        next
    }
}

/// Whether the member holds on to something of this; it does while it says nothing.
fn owns_any(claimed: Claimed<'_>, revoking: &Owned) -> bool {
    let Some(claimed) = claimed else { return true };
    claimed.iter().any(|topic| {
        let revoking = revoking.get(&topic.topic_id);
        revoking.is_some_and(|it| topic.partitions.iter().any(|index| it.contains_key(index)))
    })
}

/// Whether everything that the member says it owns is assigned to it; it has to say something.
pub(super) fn owns_only(claimed: Claimed<'_>, assigned: &Owned) -> bool {
    claimed.is_some_and(|claimed| {
        claimed.iter().all(|topic| {
            let assigned = assigned.get(&topic.topic_id);
            assigned.is_some_and(|it| topic.partitions.iter().all(|index| it.contains_key(index)))
        })
    })
}

/// As answers have it.
pub(super) fn answered(assigned: &Owned) -> Vec<TopicPartitions> {
    let each = without_epochs(assigned).into_iter();
    each.map(|(topic_id, partitions)| TopicPartitions {
        topic_id,
        partitions: partitions.into_iter().collect(),
    })
    .collect()
}
