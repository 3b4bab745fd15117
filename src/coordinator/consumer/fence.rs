//! Members that go: they leave, fall silent, or take too long to give partitions up.

use std::collections::BTreeSet;

use protocol::Str;

use super::{Change, Draft, hash};

impl Draft<'_> {
    /// Takes members out; what they had is free for the others with the next assignment.
    pub fn fence(&mut self, ids: &BTreeSet<Str>) {
        if ids.is_empty() {
            return;
        }
        for id in ids {
            self.put_removal(id);
        }
        let orphans = self.group.patterns.keys();
        let orphans = orphans.filter(|it| !self.group.pattern_members.contains_key(*it));
        for orphan in orphans.cloned().collect::<Vec<_>>() {
            self.put(Change::Pattern(orphan, None));
        }
        let hash = hash::of_topics(self.group.topics.keys(), self.world.image);
        self.put_epoch(self.group.epoch.saturating_add(1), hash);
        if self.group.members.is_empty() {
            self.put_target_epoch(self.group.epoch, 0);
        }
    }
}
