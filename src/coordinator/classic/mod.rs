//! A group of the classic protocol: members join, the leader assigns, everyone fetches its share.
//!
//! ```text
//! Empty ── join ──► PreparingRebalance ── all joined, or time is up ──► CompletingRebalance
//!   ▲                  ▲   │ nobody left                                   │ leader's sync
//!   └──────────────────┼───┘                                               ▼
//!                      └──────────── a member joins, leaves, expires ── Stable
//! ```
//! Law: a member has at most one join and one sync waiting; `statics` names exactly the static
//! members, and `supporters` counts them all; the leader, if there is one, is a member. What a
//! record says of the group is said at the end of a rebalance; the rest is soft.

mod heartbeat;
mod join;
mod leave;
mod member;
mod rebalance;
mod sync;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use protocol::group_records::{GroupMetadataKey, GroupMetadataValue, Key};
use protocol::{ErrorCode, Str};

use crate::subscription::topics_of;
use crate::timers::{Alarm, Timers};
use crate::world::{Output, Record, World};

pub(crate) use join::Joining;
pub(crate) use member::Member;

/// Where a group stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Empty => "Empty",
            State::PreparingRebalance => "PreparingRebalance",
            State::CompletingRebalance => "CompletingRebalance",
            State::Stable => "Stable",
        }
    }
}

/// What a verb works with besides the group.
pub(crate) struct Desk<'a> {
    pub world: &'a World<'a>,
    pub timers: &'a mut Timers,
    pub output: &'a mut Output,
}

#[derive(Debug)]
pub(crate) struct ClassicGroup {
    pub id: Str,
    pub state: State,
    /// The rebalance at hand is the first since the group was empty.
    is_initial: bool,
    pub generation: i32,
    pub protocol_type: Option<Str>,
    pub protocol: Option<Str>,
    leader: Option<Str>,
    pub members: BTreeMap<Str, Member>,
    /// How many members support a protocol.
    supporters: BTreeMap<Str, usize>,
    statics: BTreeMap<Str, Str>,
    /// Ids that were given out and not joined with yet (KIP-394).
    pending: BTreeSet<Str>,
    /// Members that have not fetched their assignment of this generation.
    unsynced: BTreeSet<Str>,
    /// Wall clock.
    pub state_since_ms: Option<i64>,
    /// Of an initial rebalance: a member came since the delay began, and what is left of it.
    grown: bool,
    delay_left_ms: i64,
    /// Known for protocol type "consumer".
    subscribed: Option<BTreeSet<Str>>,
}

impl ClassicGroup {
    pub fn new(id: Str) -> ClassicGroup {
        ClassicGroup {
            id,
            state: State::Empty,
            is_initial: false,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            supporters: BTreeMap::new(),
            statics: BTreeMap::new(),
            pending: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            state_since_ms: None,
            grown: false,
            delay_left_ms: 0,
            subscribed: None,
        }
    }

    /// As a record has it.
    pub fn from_record(id: Str, value: GroupMetadataValue) -> ClassicGroup {
        let mut group = ClassicGroup::new(id);
        let protocol = value.protocol.map(|name| name.detach());
        group.generation = value.generation;
        group.protocol_type = Some(value.protocol_type.detach()).filter(|it| !it.is_empty());
        group.leader = value.leader.map(|it| it.detach());
        group.state_since_ms = Some(value.current_state_timestamp).filter(|since| *since >= 0);
        for member in value.members {
            let member = Member::from_record(member, protocol.clone().unwrap_or_default());
            if let Some(instance) = &member.instance_id {
                group.statics.insert(instance.clone(), member.id.clone());
            }
            group.insert(member);
        }
        group.protocol = protocol;
        group.leader = group.leader.filter(|leader| group.members.contains_key(leader));
        group.state = if group.members.is_empty() { State::Empty } else { State::Stable };
        group.note_subscription();
        group
    }

    pub fn to_record(&self) -> GroupMetadataValue {
        let protocol = self.protocol.clone();
        let members = self.members.values();
        GroupMetadataValue {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            leader: self.leader.clone(),
            current_state_timestamp: self.state_since_ms.unwrap_or(-1),
            members: members.map(|it| it.to_record(protocol.as_deref())).collect(),
            protocol,
        }
    }

    /// Says in the log how the group stands.
    fn write(&self, desk: &mut Desk<'_>) {
        let value = Some(self.to_record().encode());
        desk.output.records.push(Record { key: record_key(&self.id), value });
    }

    /// After a restart: sessions begin anew.
    pub fn on_loaded(&mut self, desk: &mut Desk<'_>) {
        for member in self.members.values() {
            let due_ms = desk.world.now_ms + i64::from(member.session_timeout_ms);
            desk.timers.set(Alarm::Session(self.id.clone(), member.id.clone()), due_ms);
        }
        if self.members.len() > desk.world.settings.members_max {
            self.prepare_rebalance(desk);
        }
    }

    pub fn is_in_use(&self) -> bool {
        !self.members.is_empty() || !self.pending.is_empty()
    }

    pub fn is_subscribed_to(&self, topic: &str) -> bool {
        self.subscribed.as_ref().is_some_and(|topics| topics.contains(topic))
    }

    /// Known only of groups whose members use "consumer" protocols.
    pub fn subscription(&self) -> Option<&BTreeSet<Str>> {
        self.subscribed.as_ref()
    }

    pub fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// The group becomes one of another kind: whoever waits asks again.
    pub fn give_way(&mut self, desk: &mut Desk<'_>) {
        for (id, member) in &mut self.members {
            member.refuse_join(id, ErrorCode::REBALANCE_IN_PROGRESS, desk);
            member.refuse_sync(ErrorCode::REBALANCE_IN_PROGRESS, desk);
        }
        self.silence(desk);
    }

    /// What its members work with, or would if the rebalance at hand ended now.
    pub fn agreed_protocol(&self) -> Option<Str> {
        self.protocol.clone().or_else(|| self.choose_protocol())
    }

    fn enter(&mut self, state: State, desk: &Desk<'_>) {
        self.state = state;
        self.state_since_ms = Some(desk.world.wall_ms);
    }

    fn note_subscription(&mut self) {
        self.subscribed = match (&self.protocol_type, &self.protocol) {
            (Some(kind), Some(protocol)) if *kind == CONSUMER => {
                let each = self.members.values().map(|it| topics_of(&it.metadata(protocol)));
                each.collect::<Option<Vec<_>>>().map(|all| all.into_iter().flatten().collect())
            }
            (Some(kind), None) if *kind == CONSUMER => Some(BTreeSet::new()),
            _ => None,
        };
    }

    /// A member that the group does not have yet.
    fn insert(&mut self, member: Member) {
        self.count(&member.protocols, |supporters| *supporters += 1);
        self.members.insert(member.id.clone(), member);
    }

    /// Changes how many members support each of these protocols.
    fn count(&mut self, protocols: &[(Str, Bytes)], change: impl Fn(&mut usize)) {
        // One that is named twice is supported once.
        let names: BTreeSet<&Str> = protocols.iter().map(|(name, _)| name).collect();
        for name in names {
            let supporters = self.supporters.entry(name.clone()).or_default();
            change(supporters);
            if *supporters == 0 {
                self.supporters.remove(name);
            }
        }
    }

    /// Whether all members support it.
    fn is_common(&self, protocol: &str) -> bool {
        self.supporters.get(protocol).copied().unwrap_or(0) == self.members.len()
    }

    fn is_leader(&self, member: &str) -> bool {
        self.leader.as_deref() == Some(member)
    }

    /// Whether the sender is the member it says it is.
    fn check_member(&self, member: &str, instance: Option<&Str>) -> Result<(), ErrorCode> {
        if let Some(instance) = instance {
            match self.statics.get(instance) {
                None => return Err(ErrorCode::UNKNOWN_MEMBER_ID),
                Some(owner) if **owner != *member => return Err(ErrorCode::FENCED_INSTANCE_ID),
                Some(_) => {}
            }
        }
        match self.members.contains_key(member) {
            true => Ok(()),
            false => Err(ErrorCode::UNKNOWN_MEMBER_ID),
        }
    }

    fn start_session(&self, member: &str, desk: &mut Desk<'_>) {
        if let Some(member) = self.members.get(member) {
            let due_ms = desk.world.now_ms + i64::from(member.session_timeout_ms);
            desk.timers.set(Alarm::Session(self.id.clone(), member.id.clone()), due_ms);
        }
    }

    /// The longest that a member wants to be waited for.
    fn rebalance_timeout_ms(&self) -> i64 {
        let longest = self.members.values().map(|member| member.rebalance_timeout_ms).max();
        i64::from(longest.unwrap_or(0))
    }

    /// Takes a member out and answers what it waits for.
    fn remove(&mut self, member: &Str, desk: &mut Desk<'_>) {
        desk.timers.cancel(&Alarm::Session(self.id.clone(), member.clone()));
        self.unsynced.remove(member);
        let Some(mut gone) = self.members.remove(member) else { return };
        self.count(&gone.protocols, |supporters| *supporters -= 1);
        gone.refuse_join(&Str::EMPTY, ErrorCode::UNKNOWN_MEMBER_ID, desk);
        gone.refuse_sync(ErrorCode::UNKNOWN_MEMBER_ID, desk);
        if let Some(instance) = &gone.instance_id {
            self.statics.remove(instance);
        }
        if self.is_leader(member) {
            self.leader = self.members.keys().next().cloned();
        }
    }
}

pub(crate) fn record_key(group: &Str) -> bytes::Bytes {
    Key::Group(GroupMetadataKey { group: group.clone() }).encode()
}

pub(crate) const CONSUMER: &str = "consumer";
