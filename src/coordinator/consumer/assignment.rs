//! The group's epoch and its target assignment: raised when what it depends on changes, computed
//! by the assignor that most members ask for, and no more often than the group's interval says.

use std::collections::{BTreeMap, BTreeSet};

use protocol::{Str, Uuid};

use super::assignor::{Assignor, Subject};
use super::member::target_record;
use super::{Change, ConsumerGroup, Draft, hash};

impl Draft<'_> {
    /// Compares the topics with what the group's epoch stands for; raises it if they differ, or
    /// if it has to rise anyway.
    pub(super) fn update_metadata(&mut self, raise: bool) {
        let hash = hash::of_topics(self.group.topics.keys(), self.world.image);
        self.group.stale = false;
        if raise || hash != self.group.metadata_hash {
            self.put_epoch(self.group.epoch.saturating_add(1), hash);
        }
    }

    /// Computes a new target assignment if the epoch has risen, unless the last is too fresh.
    pub fn maybe_assign(&mut self) {
        let group = &*self.group;
        if group.target_epoch >= group.epoch {
            return;
        }
        let interval = self.world.settings.consumer.assignment_interval_ms;
        let interval_ms = i64::from(interval.of(&group.id, self.world.image));
        if group.target_at_ms != 0 && self.world.is_recent(group.target_at_ms, interval_ms) {
            return;
        }
        let assignor = group.preferred_assignor(&self.world.settings.consumer.assignors);
        let targets = group.assign(assignor, self.world.image);
        for (id, target) in targets {
            if self.group.targets.get(&id) != Some(&target) {
                self.put(Change::Target(id, Some(target_record(&target))));
            }
        }
        self.put_target_epoch(self.group.epoch, self.world.wall_ms);
    }
}

impl ConsumerGroup {
    /// What most members ask for; the broker's first if nobody asks.
    pub(super) fn preferred_assignor(&self, served: &[Assignor]) -> Assignor {
        let mut votes: BTreeMap<Assignor, usize> = BTreeMap::new();
        let named = self.members.values().filter_map(|it| it.assignor.as_deref());
        for assignor in named.filter_map(Assignor::named) {
            *votes.entry(assignor).or_default() += 1;
        }
        let most = votes.into_iter().max_by_key(|(_, count)| *count).map(|(it, _)| it);
        most.or(served.first().copied()).unwrap_or_default()
    }

    fn assign(
        &self,
        assignor: Assignor,
        image: &metadata::Image,
    ) -> BTreeMap<Str, super::Partitions> {
        // Most members subscribe to the same.
        let mut known: BTreeMap<(&BTreeSet<Str>, &Str), BTreeSet<Uuid>> = BTreeMap::new();
        for member in self.members.values() {
            let ids = || self.subscribed_ids(member, image);
            known.entry((&member.topics, &member.pattern)).or_insert_with(ids);
        }
        let nothing = super::Partitions::new();
        let subjects: Vec<Subject<'_>> = self
            .members
            .values()
            .map(|member| Subject {
                id: &member.id,
                instance_id: member.instance_id.as_ref(),
                topics: &known[&(&member.topics, &member.pattern)],
                target: self.targets.get(&member.id).unwrap_or(&nothing),
            })
            .collect();
        let named = subjects.iter().flat_map(|it| it.topics);
        let partitions = named.filter_map(|&id| {
            Some((id, i32::try_from(image.topic_by_id(id)?.partitions.len()).ok()?))
        });
        let partitions = partitions.collect();
        let targets = assignor.assign(&subjects, &partitions);
        subjects.iter().map(|it| it.id.clone()).zip(targets).collect()
    }
}
