//! JoinGroup: who may become a member, and whether that begins a rebalance.
//!
//! A dynamic member first gets an id to join with (KIP-394), so that a client which retries is
//! not counted twice. A static member that comes back takes the place of its predecessor, which
//! is fenced (KIP-345); if the protocol stays, the assignment stays too (KIP-814).

use bytes::Bytes;
use protocol::messages::join_group::{JoinGroupRequest, JoinGroupResponse};
use protocol::{ErrorCode, Str, Uuid};

use super::member::refused_join;
use super::{ClassicGroup, Desk, Member, State};
use crate::timers::Alarm;
use crate::world::{Caller, Reply, Ticket};

/// A JoinGroup request that is being decided.
pub(crate) struct Joining<'a> {
    pub caller: &'a Caller,
    pub request: &'a JoinGroupRequest,
    pub version: i16,
    pub ticket: Ticket,
}

impl Joining<'_> {
    pub fn refuse(&self, member: &Str, error: ErrorCode, desk: &mut Desk<'_>) {
        self.answer(refused_join(member, error), desk);
    }

    fn answer(&self, answer: JoinGroupResponse, desk: &mut Desk<'_>) {
        desk.output.replies.push((self.ticket, Reply::Join(answer)));
    }

    fn protocols(&self) -> Vec<(Str, Bytes)> {
        let each = self.request.protocols.iter();
        each.map(|it| (it.name.detach(), Bytes::copy_from_slice(&it.metadata))).collect()
    }

    fn rebalance_timeout_ms(&self) -> i32 {
        match self.version {
            0 => self.request.session_timeout_ms,
            _ => self.request.rebalance_timeout_ms,
        }
    }

    fn matches(&self, member: &Member) -> bool {
        let wanted = self.request.protocols.iter().map(|it| (&it.name, &it.metadata));
        wanted.eq(member.protocols.iter().map(|(name, metadata)| (name, metadata)))
    }

    fn member(&self, id: Str) -> Member {
        Member {
            id,
            instance_id: self.request.group_instance_id.as_ref().map(Str::detach),
            client_id: self.caller.client_id.detach(),
            client_host: self.caller.client_host.detach(),
            rebalance_timeout_ms: self.rebalance_timeout_ms(),
            session_timeout_ms: self.request.session_timeout_ms,
            protocols: self.protocols(),
            assignment: Bytes::new(),
            is_new: true,
            joining: Some(self.ticket),
            syncing: None,
        }
    }
}

impl ClassicGroup {
    pub fn join(&mut self, joining: &Joining<'_>, desk: &mut Desk<'_>) {
        let id = &joining.request.member_id;
        if !self.has_room_for(id, desk) {
            if let Some(known) = self.members.get(id).map(|member| member.id.clone()) {
                self.remove(&known, desk);
            }
            // The others need not wait for one that may not join.
            self.pending.remove(id);
            joining.refuse(&Str::EMPTY, ErrorCode::GROUP_MAX_SIZE_REACHED, desk);
            self.maybe_complete_join(desk);
        } else if !self.supports(joining.request) {
            joining.refuse(id, ErrorCode::INCONSISTENT_GROUP_PROTOCOL, desk);
        } else if id.is_empty() {
            self.join_unknown(joining, desk);
        } else if self.pending.contains(id) {
            self.add(joining, id.detach(), desk);
        } else {
            match self.check_member(id, joining.request.group_instance_id.as_ref()) {
                Err(error) => joining.refuse(id, error, desk),
                Ok(()) => self.rejoin(joining, desk),
            }
        }
    }

    fn has_room_for(&self, id: &Str, desk: &Desk<'_>) -> bool {
        let max = desk.world.settings.members_max;
        let joined = || self.members.values().filter(|it| it.joining.is_some()).count();
        let known = self.members.get(id);
        match self.state {
            _ if id.is_empty() && self.pending.len() >= PENDING_MAX => false,
            State::Empty => true,
            State::PreparingRebalance => {
                known.is_some_and(|it| it.joining.is_some()) || joined() < max
            }
            State::CompletingRebalance | State::Stable => {
                known.is_some() || self.members.len() < max
            }
        }
    }

    /// Whether all members could work with what the request offers.
    fn supports(&self, request: &JoinGroupRequest) -> bool {
        if self.members.is_empty() {
            return !request.protocol_type.is_empty() && !request.protocols.is_empty();
        }
        self.protocol_type.as_ref() == Some(&request.protocol_type)
            && request.protocols.iter().any(|offered| self.is_common(&offered.name))
    }

    fn join_unknown(&mut self, joining: &Joining<'_>, desk: &mut Desk<'_>) {
        let instance = joining.request.group_instance_id.as_ref();
        let id = new_member_id(instance.unwrap_or(&joining.caller.client_id), desk.world.random);
        let predecessor = instance.and_then(|it| self.statics.get(it)).cloned();
        match (instance, predecessor) {
            (Some(_), Some(predecessor)) => self.replace(joining, &predecessor, id, desk),
            (None, _) if joining.version >= FIRST_VERSION_WITH_ID_FIRST => {
                self.pending.insert(id.clone());
                let due_ms = desk.world.now_ms + i64::from(joining.request.session_timeout_ms);
                desk.timers.set(Alarm::Session(self.id.clone(), id.clone()), due_ms);
                joining.refuse(&id, ErrorCode::MEMBER_ID_REQUIRED, desk);
            }
            _ => self.add(joining, id, desk),
        }
    }

    fn add(&mut self, joining: &Joining<'_>, id: Str, desk: &mut Desk<'_>) {
        self.pending.remove(&id);
        if self.state == State::PreparingRebalance && self.is_initial {
            self.grown = true;
        }
        if self.members.is_empty() {
            self.protocol_type = Some(joining.request.protocol_type.detach());
        }
        let member = joining.member(id.clone());
        if let Some(instance) = &member.instance_id {
            self.statics.insert(instance.clone(), id.clone());
        }
        self.leader.get_or_insert_with(|| id.clone());
        self.insert(member);
        // It has no session yet: what runs out is the patience with a client that may be gone.
        let due_ms = desk.world.now_ms + NEW_MEMBER_PATIENCE_MS;
        desk.timers.set(Alarm::Session(self.id.clone(), id), due_ms);
        self.rebalance_or_complete(desk);
    }

    /// A member joins that is one.
    fn rejoin(&mut self, joining: &Joining<'_>, desk: &mut Desk<'_>) {
        let id = joining.request.member_id.clone();
        let Some(member) = self.members.get(&id) else { return };
        let unchanged = joining.matches(member);
        let repeats = match self.state {
            // It may have missed the answer.
            State::CompletingRebalance => unchanged,
            // The leader asks for a rebalance by joining.
            State::Stable => unchanged && !self.is_leader(&id),
            State::PreparingRebalance => false,
            State::Empty => return joining.refuse(&id, ErrorCode::UNKNOWN_MEMBER_ID, desk),
        };
        if repeats {
            let leads = self.state == State::CompletingRebalance && self.is_leader(&id);
            let answer = self.joined(&id, leads);
            return joining.answer(answer, desk);
        }
        self.update(joining, &id, desk);
        self.rebalance_or_complete(desk);
    }

    fn update(&mut self, joining: &Joining<'_>, id: &Str, desk: &mut Desk<'_>) {
        let Some(member) = self.members.get_mut(id) else { return };
        // An earlier request that still waits came over a connection that is given up.
        member.refuse_join(&id.clone(), ErrorCode::REBALANCE_IN_PROGRESS, desk);
        let offered = joining.protocols();
        let before = std::mem::replace(&mut member.protocols, offered.clone());
        self.count(&before, |supporters| *supporters -= 1);
        self.count(&offered, |supporters| *supporters += 1);
        let Some(member) = self.members.get_mut(id) else { return };
        member.rebalance_timeout_ms = joining.rebalance_timeout_ms();
        member.session_timeout_ms = joining.request.session_timeout_ms;
        member.joining = Some(joining.ticket);
    }

    /// A static member comes back under a new id.
    fn replace(&mut self, joining: &Joining<'_>, predecessor: &Str, id: Str, desk: &mut Desk<'_>) {
        let led_by = self.leader.clone().unwrap_or_default();
        desk.timers.cancel(&Alarm::Session(self.id.clone(), predecessor.clone()));
        let Some(mut member) = self.members.remove(predecessor) else { return };
        member.refuse_join(predecessor, ErrorCode::FENCED_INSTANCE_ID, desk);
        member.refuse_sync(ErrorCode::FENCED_INSTANCE_ID, desk);
        member.id = id.clone();
        member.client_id = joining.caller.client_id.detach();
        member.client_host = joining.caller.client_host.detach();
        if let Some(instance) = &member.instance_id {
            self.statics.insert(instance.clone(), id.clone());
        }
        if self.unsynced.remove(predecessor) {
            self.unsynced.insert(id.clone());
        }
        if self.is_leader(predecessor) {
            self.leader = Some(id.clone());
        }
        self.members.insert(id.clone(), member);
        self.update(joining, &id, desk);
        self.start_session(&id, desk);
        let keeps = self.state == State::Stable && self.choose_protocol() == self.protocol;
        match self.state {
            State::Stable if keeps => self.keep_assignment(joining, &id, &led_by, desk),
            State::Stable | State::CompletingRebalance => self.prepare_rebalance(desk),
            State::PreparingRebalance | State::Empty => self.maybe_complete_join(desk),
        }
    }

    fn keep_assignment(
        &mut self,
        joining: &Joining<'_>,
        id: &Str,
        led_by: &Str,
        desk: &mut Desk<'_>,
    ) {
        self.write(desk);
        let can_skip = joining.version >= FIRST_VERSION_WITH_SKIPPING;
        let leads = can_skip && self.is_leader(id);
        let mut answer = self.joined(id, leads);
        answer.skip_assignment = leads;
        if !can_skip {
            // Under its old id, the leader takes itself for a follower and assigns nothing.
            answer.leader = led_by.clone();
        }
        if let Some(member) = self.members.get_mut(id) {
            member.is_new = false;
            member.answer_join(answer, desk);
        }
    }

    /// How a member learns of the generation at hand.
    pub(super) fn joined(&self, id: &Str, with_members: bool) -> JoinGroupResponse {
        let protocol = self.protocol.clone().unwrap_or_default();
        let members = self.members.values().filter(|_| with_members);
        JoinGroupResponse {
            generation_id: self.generation,
            protocol_type: self.protocol_type.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            member_id: id.clone(),
            members: members.map(|it| it.introduce(&protocol)).collect(),
            protocol_name: Some(protocol),
            ..JoinGroupResponse::default()
        }
    }
}

/// `<client or instance>-<random UUID>`, as Kafka makes them.
fn new_member_id(prefix: &str, random: u128) -> Str {
    const VERSION_4: u128 = 0x4 << 76;
    const VARIANT: u128 = 0b10 << 62;
    let bits = random & !(0xf << 76) & !(0b11 << 62) | VERSION_4 | VARIANT;
    let hex = format!("{bits:032x}");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    debug_assert!(Uuid(bits.to_be_bytes()) != Uuid::ZERO);
    Str::from(format!("{prefix}-{}", parts.join("-")))
}

const FIRST_VERSION_WITH_ID_FIRST: i16 = 4;
const FIRST_VERSION_WITH_SKIPPING: i16 = 9;
/// How long a join may wait that comes from a client which never was a member: it cannot send
/// heartbeats, and nobody notices when it goes.
const NEW_MEMBER_PATIENCE_MS: i64 = 300_000;
/// Ids given out and not used, per group: clients that only ever ask must not fill the memory.
const PENDING_MAX: usize = 10_000;
