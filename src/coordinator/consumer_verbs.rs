//! What happens to consumer groups, and to what becomes one or a classic group.
//!
//! An id belongs to one group, of one kind. Everything that can be refused is, before the first
//! record comes out; after that a verb goes through.

use std::collections::BTreeSet;

use bytes::Bytes;
use protocol::group_records::Key;
use protocol::messages::consumer_group_describe::DescribedGroup;
use protocol::messages::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
};
use protocol::messages::heartbeat::HeartbeatRequest;
use protocol::messages::join_group::JoinGroupResponse;
use protocol::messages::leave_group::MemberIdentity;
use protocol::messages::sync_group::{SyncGroupRequest, SyncGroupResponse};
use protocol::{ErrorCode, Str, Uuid};

use crate::classic::{ClassicGroup, Desk, Joining, State, record_key};
use crate::consumer::{Beat, Change, ClassicJoin, ConsumerGroup, Draft, Refusal, Upgrade};
use crate::coordinator::{Coordinator, ReplayError};
use crate::leaving::STILL_LEAVING;
use crate::timers::Alarm;
use crate::world::{Caller, Output, Record, Reply, Ticket, World};

impl Coordinator {
    pub(crate) fn replay_consumer(
        &mut self,
        key: &Key,
        id: &Str,
        value: Option<Bytes>,
    ) -> Result<(), ReplayError> {
        let change = Change::read(key, value).map_err(ReplayError::Value)?;
        let Some(change) = change else { return Ok(()) };
        if change == Change::Group(None) {
            self.consumers.remove(id);
            return Ok(());
        }
        if change.creates() && !self.consumers.contains_key(id) {
            let id = id.detach();
            self.groups.remove(&id);
            self.consumers.insert(id.clone(), ConsumerGroup::new(id));
        }
        if let Some(group) = self.consumers.get_mut(id) {
            group.apply(change);
        }
        Ok(())
    }

    /// Runs with a consumer group, if there is one of this id.
    fn draft<R>(
        &mut self,
        world: &World<'_>,
        id: &Str,
        output: &mut Output,
        verb: impl FnOnce(&mut Draft<'_>) -> R,
    ) -> Option<R> {
        let group = self.consumers.get_mut(id)?;
        Some(verb(&mut Draft { group, world, timers: &mut self.timers, output }))
    }

    // ---- members of the consumer protocol

    pub fn consumer_heartbeat(
        &mut self,
        world: &World<'_>,
        caller: &Caller,
        request: &ConsumerGroupHeartbeatRequest,
        version: i16,
    ) -> (Output, ConsumerGroupHeartbeatResponse) {
        let mut output = Output::default();
        let id = own_or_new(&request.member_id, world);
        let newest_topics = self.newest_topics;
        let beat = Beat { caller, request, version, id, newest_topics };
        let answer = beat.check(&world.settings.consumer.assignors).and_then(|()| {
            if beat.leaves() {
                self.consumer_leave(world, &beat, &mut output)
            } else {
                self.consumer_beat(world, &beat, &mut output)
            }
        });
        let answer = answer.unwrap_or_else(|refusal| ConsumerGroupHeartbeatResponse {
            error_code: refusal.code,
            error_message: Some(Str::from(refusal.message)),
            ..ConsumerGroupHeartbeatResponse::default()
        });
        (output, answer)
    }

    fn consumer_beat(
        &mut self,
        world: &World<'_>,
        beat: &Beat<'_>,
        output: &mut Output,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let id = &beat.request.group_id;
        if self.leaving.has_group(id) {
            return Err(Refusal::new(STILL_LEAVING, format!("group {id} is being deleted")));
        }
        if let Some(group) = self.consumers.get_mut(id) {
            let found = group.check_beat(beat, world.settings)?;
            let draft = &mut Draft { group, world, timers: &mut self.timers, output };
            return Ok(draft.beat(beat, &found));
        }
        if !beat.joins() {
            return Err(no_consumer_group(id));
        }
        let classic = self.groups.get(id).filter(|classic| classic.state != State::Empty);
        let upgrade = classic.map(|classic| Upgrade::of(classic, world)).transpose()?;
        let (mut group, changes) = match upgrade {
            Some(upgrade) => (upgrade.group, upgrade.changes),
            None => (ConsumerGroup::new(id.detach()), Vec::new()),
        };
        let found = group.check_beat(beat, world.settings)?;
        if let Some(mut classic) = self.groups.remove(id) {
            classic.give_way(&mut Desk { world, timers: &mut self.timers, output });
            output.records.push(Record { key: record_key(id), value: None });
        }
        output.records.extend(changes.iter().map(|change| change.record(&group.id)));
        group.on_loaded(world, &mut self.timers);
        let draft = &mut Draft { group: &mut group, world, timers: &mut self.timers, output };
        let answer = draft.beat(beat, &found);
        self.consumers.insert(group.id.clone(), group);
        Ok(answer)
    }

    fn consumer_leave(
        &mut self,
        world: &World<'_>,
        beat: &Beat<'_>,
        output: &mut Output,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let id = &beat.request.group_id;
        let group = self.consumers.get(id).ok_or_else(|| no_consumer_group(id))?;
        let member = group.check_leave(beat)?.id.clone();
        if beat.leaves_for_a_while() {
            let answer = self.draft(world, id, output, |draft| draft.send_away(&member));
            return Ok(answer.unwrap_or_default());
        }
        self.fence(world, id, &BTreeSet::from([member]), output);
        Ok(ConsumerGroupHeartbeatResponse {
            member_id: Some(beat.id.clone()),
            member_epoch: beat.request.member_epoch,
            ..ConsumerGroupHeartbeatResponse::default()
        })
    }

    /// Takes members out. Where only members of the classic protocol stay, the group becomes one.
    fn fence(&mut self, world: &World<'_>, id: &Str, gone: &BTreeSet<Str>, output: &mut Output) {
        let Some(group) = self.consumers.get(id) else { return };
        if !gone.is_empty() && group.can_downgrade(world, |member| !gone.contains(member)) {
            return self.downgrade(world, id, gone, true, output);
        }
        self.draft(world, id, output, |draft| draft.fence(gone));
    }

    fn downgrade(
        &mut self,
        world: &World<'_>,
        id: &Str,
        gone: &BTreeSet<Str>,
        rebalance: bool,
        output: &mut Output,
    ) {
        let Some(group) = self.consumers.get(id) else { return };
        let stays = |member: &Str| !gone.contains(member);
        let value = group.downgraded(world.image, world.wall_ms, stays);
        self.bury_consumer(id, output);
        let mut classic = ClassicGroup::from_record(id.detach(), value);
        let value = Some(classic.to_record().encode());
        output.records.push(Record { key: record_key(id), value });
        let desk = &mut Desk { world, timers: &mut self.timers, output };
        classic.on_loaded(desk);
        if rebalance {
            classic.prepare_rebalance(desk);
        }
        self.groups.insert(classic.id.clone(), classic);
    }

    pub(crate) fn bury_consumer(&mut self, id: &Str, output: &mut Output) {
        let Some(group) = self.consumers.remove(id) else { return };
        group.silence(&mut self.timers);
        output.records.extend(group.tombstones().iter().map(|it| it.record(&group.id)));
    }

    /// Whether the alarm was about a consumer group.
    pub(crate) fn on_consumer_alarm(
        &mut self,
        world: &World<'_>,
        alarm: &Alarm,
        output: &mut Output,
    ) -> bool {
        let id = alarm.group();
        let Some(group) = self.consumers.get(id) else { return false };
        if matches!(alarm, Alarm::Resolve(_)) {
            self.draft(world, id, output, |draft| draft.resolve_patterns());
        } else {
            let gone = group.overdue(alarm);
            self.fence(world, id, &gone, output);
        }
        true
    }

    /// Topics came, went or grew: groups that subscribe to them look at them again.
    pub fn on_topics_changed(&mut self, world: &World<'_>, names: &BTreeSet<Str>) {
        // Patterns may match whatever is new.
        self.newest_topics = world.image.offset() as i64;
        self.consumers.values_mut().for_each(|group| group.on_topics_changed(names));
    }

    pub fn describe_consumer_group(&self, world: &World<'_>, id: &Str) -> DescribedGroup {
        if let Some(group) = self.consumers.get(id) {
            return group.describe(&world.settings.consumer.assignors, world.image);
        }
        let refusal = no_consumer_group(id);
        DescribedGroup {
            group_id: id.clone(),
            error_code: refusal.code,
            error_message: Some(Str::from(refusal.message)),
            ..DescribedGroup::default()
        }
    }

    /// Whether offsets may be read in the name of this member, and whether all are still there.
    pub fn check_fetch(
        &self,
        group: &str,
        member: Option<&Str>,
        epoch: i32,
    ) -> Result<(), ErrorCode> {
        if self.leaving.has_group(group) {
            return Err(STILL_LEAVING);
        }
        let found = self.consumers.get(group);
        found.map_or(Ok(()), |group| group.check_fetch(member, epoch))
    }

    // ---- members of a consumer group that speak the classic protocol

    /// Whether the join was to a consumer group.
    pub(crate) fn classic_join(
        &mut self,
        world: &World<'_>,
        joining: &Joining<'_>,
        output: &mut Output,
    ) -> bool {
        let group = &joining.request.group_id;
        if self.consumers.get(group).is_none_or(|it| it.members.is_empty()) {
            // One without members gives way.
            self.bury_consumer(group, output);
            return false;
        }
        let id = own_or_new(&joining.request.member_id, world);
        let (caller, request, version) = (joining.caller, joining.request, joining.version);
        let join = ClassicJoin { caller, request, version, id };
        let answer = self.classic_join_as(world, &join, output);
        let answer = answer.unwrap_or_else(|(error_code, member_id)| JoinGroupResponse {
            error_code,
            member_id,
            protocol_name: None,
            ..JoinGroupResponse::default()
        });
        output.replies.push((joining.ticket, Reply::Join(answer)));
        true
    }

    fn classic_join_as(
        &mut self,
        world: &World<'_>,
        join: &ClassicJoin<'_>,
        output: &mut Output,
    ) -> Result<JoinGroupResponse, (ErrorCode, Str)> {
        let id = &join.request.group_id;
        let refuse = |code| (code, join.request.member_id.clone());
        let settings = &world.settings.consumer;
        let group = self.consumers.get(id).ok_or(refuse(ErrorCode::UNKNOWN_MEMBER_ID))?;
        if !settings.migration.upgrades() && !settings.migration.downgrades() {
            return Err(refuse(ErrorCode::INCONSISTENT_GROUP_PROTOCOL));
        }
        group.check_classic_join(join, world.settings).map_err(refuse)?;
        if join.needs_id_first() {
            return Err((ErrorCode::MEMBER_ID_REQUIRED, join.id.clone()));
        }
        let admitted = group.admit_classic(join).map_err(refuse)?;
        let joined = self.draft(world, id, output, |draft| {
            let how = draft.classic_join(join, &admitted);
            let downgrades =
                admitted.replaces_last_consumer && draft.group.can_downgrade(world, |_| true);
            let rebalance = draft.group.target_epoch < draft.group.epoch;
            if !downgrades {
                draft.maybe_assign();
            }
            if !downgrades || !rebalance {
                draft.classic_advance(join, &admitted, how);
            }
            let answer = draft.classic_joined(&join.id);
            if !downgrades {
                draft.watch_classic(join);
            }
            (answer, downgrades, rebalance)
        });
        let (answer, downgrades, rebalance) = joined.ok_or(refuse(ErrorCode::UNKNOWN_MEMBER_ID))?;
        if downgrades {
            self.downgrade(world, id, &BTreeSet::new(), rebalance, output);
        }
        Ok(answer)
    }

    /// The answer, if the request was to a consumer group.
    pub(crate) fn classic_sync(
        &mut self,
        world: &World<'_>,
        request: &SyncGroupRequest,
        ticket: Ticket,
        output: &mut Output,
    ) -> bool {
        let answer =
            self.draft(world, &request.group_id, output, |draft| draft.classic_sync(request));
        let Some(answer) = answer else { return false };
        let answer = answer.unwrap_or_else(|error_code| SyncGroupResponse {
            error_code,
            ..SyncGroupResponse::default()
        });
        output.replies.push((ticket, Reply::Sync(answer)));
        true
    }

    pub(crate) fn classic_heartbeat(
        &mut self,
        world: &World<'_>,
        request: &HeartbeatRequest,
        output: &mut Output,
    ) -> Option<Result<(), ErrorCode>> {
        self.draft(world, &request.group_id, output, |draft| draft.classic_heartbeat(request))
    }

    pub(crate) fn classic_leave(
        &mut self,
        world: &World<'_>,
        id: &Str,
        leaving: &[MemberIdentity],
        output: &mut Output,
    ) -> Option<Vec<ErrorCode>> {
        let group = self.consumers.get(id)?;
        let mut gone = BTreeSet::new();
        let mut outcomes = Vec::with_capacity(leaving.len());
        for who in leaving {
            outcomes.push(match group.check_leaving(who) {
                Ok(member) => {
                    gone.insert(member.clone());
                    ErrorCode::NONE
                }
                Err(error) => error,
            });
        }
        self.fence(world, id, &gone, output);
        Some(outcomes)
    }
}

fn own_or_new(member: &Str, world: &World<'_>) -> Str {
    match member.is_empty() {
        true => Str::from(Uuid(world.random.to_be_bytes()).to_string()),
        false => member.detach(),
    }
}

fn no_consumer_group(id: &Str) -> Refusal {
    Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("there is no consumer group {id}"))
}
