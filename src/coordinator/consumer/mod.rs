//! A group of the consumer protocol (KIP-848): members say what they want in heartbeats, the
//! coordinator assigns, and each member moves from what it has to what it is to have on its own.
//!
//! ```text
//! group epoch ──► target epoch (assignor) ──► member epochs (reconciliation, member by member)
//! raised when members or topics change        a member goes on once it gave up what it has to,
//!                                             and gets a partition once nobody else holds it
//! ```
//! Law: only `apply` changes a group, and it takes what the log has; what is derived (instances,
//! holders, counts) is kept in step there. A partition is held by one member at a time. Timers,
//! and whether the metadata has to be looked at again, are soft: a restart begins them anew.

mod assignment;
mod assignor;
mod change;
mod classic_members;
mod commit;
mod describe;
mod fence;
mod hash;
mod heartbeat;
mod join;
mod member;
mod migration;
mod pattern;
mod reconcile;
mod refusal;

use std::collections::{BTreeMap, BTreeSet};

use metadata::Image;
use protocol::group_records::{
    ConsumerGroupMetadataValue, ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMetadataValue,
};
use protocol::{Str, Uuid};

use crate::timers::{Alarm, Timers};
use crate::world::{Output, World};

pub use assignor::Assignor;
pub(crate) use change::Change;
pub(crate) use classic_members::ClassicJoin;
pub(crate) use heartbeat::Beat;
pub(crate) use member::{Member, MemberState, Owned, Partitions};
pub(crate) use migration::Upgrade;
pub(crate) use pattern::check_pattern;
pub(crate) use refusal::Refusal;

/// The topics that a pattern stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resolved {
    pub topics: BTreeSet<Str>,
    /// Of the metadata it was resolved against.
    pub version: i64,
    /// Wall clock.
    pub at_ms: i64,
}

#[derive(Debug)]
pub(crate) struct ConsumerGroup {
    pub id: Str,
    pub epoch: i32,
    metadata_hash: i64,
    /// Epoch of the target assignment; −1 before the first.
    pub target_epoch: i32,
    /// When the target assignment was made, by the wall clock; 0 if none is in force.
    target_at_ms: i64,
    pub members: BTreeMap<Str, Member>,
    targets: BTreeMap<Str, Partitions>,
    patterns: BTreeMap<Str, Resolved>,

    // derived
    statics: BTreeMap<Str, Str>,
    /// Who holds a partition is at this epoch.
    holders: BTreeMap<(Uuid, i32), i32>,
    /// By how many members and patterns a topic is subscribed to.
    topics: BTreeMap<Str, usize>,
    pattern_members: BTreeMap<Str, usize>,

    // soft
    /// Whether the topics may be others than those the hash was made of.
    stale: bool,
}

/// A group and what a verb works with besides it.
pub(crate) struct Draft<'a> {
    pub group: &'a mut ConsumerGroup,
    pub world: &'a World<'a>,
    pub timers: &'a mut Timers,
    pub output: &'a mut Output,
}

impl Draft<'_> {
    /// Decides something: it is written down and takes effect.
    pub fn put(&mut self, change: Change) {
        self.output.records.push(change.record(&self.group.id));
        self.group.apply(change);
    }

    pub fn put_epoch(&mut self, epoch: i32, metadata_hash: i64) {
        self.put(Change::Group(Some(ConsumerGroupMetadataValue { epoch, metadata_hash })));
    }

    pub fn put_target_epoch(&mut self, assignment_epoch: i32, assignment_timestamp: i64) {
        self.put(Change::TargetEpoch(Some(ConsumerGroupTargetAssignmentMetadataValue {
            assignment_epoch,
            assignment_timestamp,
        })));
    }

    /// The member is heard of: its session begins anew.
    pub fn start_session(&mut self, member: &Str) {
        let Some(timeout_ms) = self.group.session_timeout_ms(member, self.world) else { return };
        let due_ms = self.world.now_ms.saturating_add(timeout_ms);
        self.timers.set(Alarm::Session(self.group.id.clone(), member.clone()), due_ms);
    }

    pub fn cancel_alarms(&mut self, member: &Str) {
        cancel_alarms(&self.group.id, member, self.timers);
    }
}

pub(crate) fn cancel_alarms(group: &Str, member: &Str, timers: &mut Timers) {
    for alarm in [Alarm::Session, Alarm::Revoke, Alarm::Rejoin, Alarm::Fetch] {
        timers.cancel(&alarm(group.clone(), member.clone()));
    }
}

impl ConsumerGroup {
    pub fn new(id: Str) -> ConsumerGroup {
        ConsumerGroup {
            id,
            epoch: 1,
            metadata_hash: 0,
            target_epoch: -1,
            target_at_ms: 0,
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            patterns: BTreeMap::new(),
            statics: BTreeMap::new(),
            holders: BTreeMap::new(),
            topics: BTreeMap::new(),
            pattern_members: BTreeMap::new(),
            stale: true,
        }
    }

    /// What the log says takes effect.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Group(Some(value)) => {
                (self.epoch, self.metadata_hash) = (value.epoch, value.metadata_hash);
            }
            // The group itself goes with this record: its owner sees to that.
            Change::Group(None) => {}
            Change::Member(id, Some(value)) => {
                let mut member = self.member_or_new(id);
                member.describe_itself(value);
                self.replace(member);
            }
            Change::Member(id, None) => self.remove(&id),
            Change::Current(id, Some(value)) => {
                let mut member = self.member_or_new(id);
                member.hold(value);
                self.replace(member);
            }
            Change::Current(id, None) => {
                if let Some(mut member) = self.members.get(&id).cloned() {
                    (member.epoch, member.previous_epoch) = (-1, -1);
                    (member.assigned, member.revoking) = (Owned::new(), Owned::new());
                    self.replace(member);
                }
            }
            Change::TargetEpoch(value) => {
                let ConsumerGroupTargetAssignmentMetadataValue {
                    assignment_epoch,
                    assignment_timestamp,
                } = value.unwrap_or(ConsumerGroupTargetAssignmentMetadataValue {
                    assignment_epoch: -1,
                    assignment_timestamp: 0,
                });
                (self.target_epoch, self.target_at_ms) = (assignment_epoch, assignment_timestamp);
            }
            Change::Target(id, Some(value)) => {
                self.targets.insert(id.detach(), member::target_of(value));
            }
            Change::Target(id, None) => drop(self.targets.remove(&id)),
            Change::Pattern(pattern, value) => self.resolve(&pattern, value),
        }
    }

    fn member_or_new(&self, id: Str) -> Member {
        self.members.get(&id).cloned().unwrap_or_else(|| Member::new(id.detach()))
    }

    fn resolve(&mut self, pattern: &Str, value: Option<ConsumerGroupRegularExpressionValue>) {
        if let Some(before) = self.patterns.remove(pattern) {
            self.count_topics(&before.topics, Count::Less);
        }
        if let Some(value) = value {
            let topics: BTreeSet<Str> = value.topics.iter().map(Str::detach).collect();
            self.count_topics(&topics, Count::More);
            let resolved = Resolved { topics, version: value.version, at_ms: value.timestamp };
            self.patterns.insert(pattern.detach(), resolved);
        }
    }

    fn replace(&mut self, member: Member) {
        self.remove(&member.id.clone());
        self.count_topics(&member.topics, Count::More);
        if !member.pattern.is_empty() {
            *self.pattern_members.entry(member.pattern.clone()).or_default() += 1;
        }
        if let Some(instance) = &member.instance_id {
            self.statics.insert(instance.clone(), member.id.clone());
        }
        for (topic, partition) in each_held(&member) {
            self.holders.insert((topic, partition), member.epoch);
        }
        self.members.insert(member.id.clone(), member);
    }

    fn remove(&mut self, id: &Str) {
        let Some(member) = self.members.remove(id) else { return };
        self.count_topics(&member.topics, Count::Less);
        if let Some(count) = self.pattern_members.get_mut(&member.pattern) {
            *count -= 1;
            if *count == 0 {
                self.pattern_members.remove(&member.pattern);
            }
        }
        if let Some(instance) = &member.instance_id
            && self.statics.get(instance) == Some(id)
        {
            self.statics.remove(instance);
        }
        for held in each_held(&member) {
            if self.holders.get(&held) == Some(&member.epoch) {
                self.holders.remove(&held);
            }
        }
    }

    fn count_topics(&mut self, topics: &BTreeSet<Str>, count: Count) {
        for topic in topics {
            match (count, self.topics.get_mut(topic)) {
                (Count::More, Some(count)) => *count += 1,
                (Count::More, None) => drop(self.topics.insert(topic.clone(), 1)),
                (Count::Less, Some(count)) if *count > 1 => *count -= 1,
                (Count::Less, _) => drop(self.topics.remove(topic)),
            }
        }
    }

    // ---- questions

    pub fn static_member(&self, instance: &Str) -> Option<&Member> {
        self.members.get(self.statics.get(instance)?)
    }

    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        self.topics.contains_key(topic)
    }

    pub fn subscribed_topics(&self) -> impl Iterator<Item = &Str> {
        self.topics.keys()
    }

    /// Whether somebody holds this partition, or has not given it up yet.
    fn is_held(&self, topic: Uuid, partition: i32) -> bool {
        self.holders.contains_key(&(topic, partition))
    }

    fn target_for(&self, member: &Str) -> Partitions {
        self.targets.get(member).cloned().unwrap_or_default()
    }

    fn session_timeout_ms(&self, member: &Str, world: &World<'_>) -> Option<i64> {
        let member = self.members.get(member)?;
        Some(i64::from(match &member.classic {
            Some(classic) => classic.session_timeout_ms,
            None => world.settings.consumer.session_timeout_ms.of(&self.id, world.image),
        }))
    }

    /// The topics that a member subscribes to, of those that exist.
    fn subscribed_ids(&self, member: &Member, image: &Image) -> BTreeSet<Uuid> {
        let matched = self.patterns.get(&member.pattern).map(|it| &it.topics);
        let names = member.topics.iter().chain(matched.into_iter().flatten());
        names.filter_map(|name| image.topic(name)).map(|topic| topic.id).collect()
    }

    /// Topics have come, gone or grown.
    pub fn on_topics_changed(&mut self, names: &BTreeSet<Str>) {
        if names.iter().any(|name| self.is_subscribed_to(name)) {
            self.stale = true;
        }
    }

    /// Everything that the log has to say of it.
    pub fn changes(&self) -> Vec<Change> {
        let members = self.members.values();
        let mut changes: Vec<Change> = members
            .clone()
            .map(|it| Change::Member(it.id.clone(), Some(it.description())))
            .collect();
        let (epoch, metadata_hash) = (self.epoch, self.metadata_hash);
        changes.push(Change::Group(Some(ConsumerGroupMetadataValue { epoch, metadata_hash })));
        let targets = self.targets.iter();
        changes.extend(
            targets.map(|(id, it)| Change::Target(id.clone(), Some(member::target_record(it)))),
        );
        changes.push(Change::TargetEpoch(Some(ConsumerGroupTargetAssignmentMetadataValue {
            assignment_epoch: self.target_epoch,
            assignment_timestamp: self.target_at_ms,
        })));
        changes.extend(members.map(|it| Change::Current(it.id.clone(), Some(it.holding()))));
        changes.extend(self.patterns.iter().map(|(pattern, resolved)| {
            let value = ConsumerGroupRegularExpressionValue {
                topics: resolved.topics.iter().cloned().collect(),
                version: resolved.version,
                timestamp: resolved.at_ms,
            };
            Change::Pattern(pattern.clone(), Some(value))
        }));
        changes
    }

    /// What takes everything of it out of the log.
    pub fn tombstones(&self) -> Vec<Change> {
        let members = || self.members.keys().cloned();
        let mut gone: Vec<Change> = members().map(|id| Change::Current(id, None)).collect();
        gone.extend(self.targets.keys().map(|id| Change::Target(id.clone(), None)));
        gone.push(Change::TargetEpoch(None));
        gone.extend(members().map(|id| Change::Member(id, None)));
        gone.extend(self.patterns.keys().map(|it| Change::Pattern(it.clone(), None)));
        gone.push(Change::Group(None));
        gone
    }

    /// After a restart: sessions begin anew.
    pub fn on_loaded(&mut self, world: &World<'_>, timers: &mut Timers) {
        let ids: Vec<Str> = self.members.keys().cloned().collect();
        for id in ids {
            let Some(timeout_ms) = self.session_timeout_ms(&id, world) else { continue };
            let due_ms = world.now_ms.saturating_add(timeout_ms);
            timers.set(Alarm::Session(self.id.clone(), id.clone()), due_ms);
            let Some(member) = self.members.get(&id) else { continue };
            if member.state == MemberState::Unrevoked {
                let due_ms = world.now_ms.saturating_add(i64::from(member.rebalance_timeout_ms));
                timers.set(Alarm::Revoke(self.id.clone(), id), due_ms);
            }
        }
    }

    pub fn silence(&self, timers: &mut Timers) {
        timers.cancel(&Alarm::Resolve(self.id.clone()));
        for member in self.members.keys() {
            cancel_alarms(&self.id, member, timers);
        }
    }
}

#[derive(Clone, Copy)]
enum Count {
    More,
    Less,
}

fn each_held(member: &Member) -> impl Iterator<Item = (Uuid, i32)> {
    let topics = member.assigned.iter().chain(&member.revoking);
    topics.flat_map(|(&topic, partitions)| partitions.keys().map(move |&index| (topic, index)))
}
