//! Members of a consumer group that still speak the classic protocol: their joins, syncs and
//! heartbeats are served from the group's own state, so that consumers of both kinds share one
//! group while an application is upgraded (KIP-848).
//!
//! To such a member its epoch is the generation. It is told to join again whenever the target has
//! moved on, and its joins and syncs are answered at once.

use std::collections::BTreeSet;

use bytes::Bytes;
use metadata::Image;
use protocol::consumer_protocol::{Assignment, NamedPartitions, Subscription};
use protocol::messages::consumer_group_heartbeat::TopicPartitions;
use protocol::messages::heartbeat::HeartbeatRequest;
use protocol::messages::join_group::{JoinGroupRequest, JoinGroupResponse};
use protocol::messages::leave_group::MemberIdentity;
use protocol::messages::sync_group::{SyncGroupRequest, SyncGroupResponse};
use protocol::{ErrorCode, Str};

use super::heartbeat::PatternChange;
use super::join::{Asker, Found};
use super::member::{ClassicSide, without_epochs};
use super::{Change, ConsumerGroup, Draft, Member, MemberState, Partitions};
use crate::classic::CONSUMER;
use crate::timers::Alarm;
use crate::world::{Caller, GroupSettings};

/// A JoinGroup request to a consumer group.
pub(crate) struct ClassicJoin<'a> {
    pub caller: &'a Caller,
    pub request: &'a JoinGroupRequest,
    pub version: i16,
    /// The id of the member: its own, or one that was just made for it.
    pub id: Str,
}

/// What may become of it.
pub(crate) struct Admitted {
    subscription: Subscription,
    found: Found,
    /// The last member of the consumer protocol is replaced: nobody needs it any more.
    pub replaces_last_consumer: bool,
}

impl ClassicJoin<'_> {
    pub fn needs_id_first(&self) -> bool {
        self.version >= FIRST_VERSION_WITH_ID_FIRST
            && self.request.group_instance_id.is_none()
            && self.request.member_id.is_empty()
    }

    fn rebalance_timeout_ms(&self) -> i32 {
        match self.version {
            0 => self.request.session_timeout_ms,
            _ => self.request.rebalance_timeout_ms,
        }
    }

    fn updated(&self, before: &Member, subscription: &Subscription) -> Member {
        let mut member = before.clone();
        if let Some(instance) = &self.request.group_instance_id {
            member.instance_id = Some(instance.detach());
        }
        if let Some(rack) = subscription.rack_id.as_ref().filter(|it| !it.is_empty()) {
            member.rack_id = Some(rack.detach());
        }
        if self.rebalance_timeout_ms() != -1 {
            member.rebalance_timeout_ms = self.rebalance_timeout_ms();
        }
        member.topics = subscription.topics.iter().map(Str::detach).collect();
        member.pattern = Str::EMPTY;
        member.client_id = self.caller.client_id.detach();
        member.client_host = self.caller.client_host.detach();
        let protocols = self.request.protocols.iter();
        member.classic = Some(ClassicSide {
            session_timeout_ms: self.request.session_timeout_ms,
            protocols: protocols
                .map(|it| (it.name.detach(), Bytes::copy_from_slice(&it.metadata)))
                .collect(),
        });
        member
    }
}

impl ConsumerGroup {
    /// Whether a client of the classic protocol may join.
    pub fn check_classic_join(
        &self,
        join: &ClassicJoin<'_>,
        bounds: &GroupSettings,
    ) -> Result<(), ErrorCode> {
        let asker = self.classic_asker(join);
        self.check_room(&asker, bounds.consumer.members_max).map_err(|it| it.code)?;
        let request = join.request;
        let bytes: usize = request.protocols.iter().map(|it| it.metadata.len()).sum();
        if bytes > bounds.record_bytes_max {
            return Err(ErrorCode::UNKNOWN_SERVER_ERROR);
        }
        let offered = request.protocols.iter().any(|it| self.is_supported(&it.name));
        if request.protocol_type != CONSUMER || !offered {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        Ok(())
    }

    /// Whom it makes a member of the group.
    pub fn admit_classic(&self, join: &ClassicJoin<'_>) -> Result<Admitted, ErrorCode> {
        let found = self.find(&self.classic_asker(join)).map_err(|it| it.code)?;
        let first = join.request.protocols.first().map(|it| it.metadata.clone());
        let subscription = Subscription::decode(first.unwrap_or_default())
            .map_err(|_| ErrorCode::INCONSISTENT_GROUP_PROTOCOL)?;
        let replaced = match &found {
            Found::Replaces(id) => self.members.get(id),
            Found::Known => self.members.get(&join.id).filter(|it| it.instance_id.is_some()),
            Found::New => None,
        };
        let others_are_classic =
            |gone: &Member| self.members.values().all(|it| it.id == gone.id || it.is_classic());
        let last = replaced.is_some_and(|it| !it.is_classic() && others_are_classic(it));
        Ok(Admitted { subscription, found, replaces_last_consumer: last })
    }

    fn classic_asker<'a>(&self, join: &'a ClassicJoin<'_>) -> Asker<'a> {
        let is_static = join.request.group_instance_id.is_some();
        Asker {
            id: &join.id,
            instance: join.request.group_instance_id.as_ref(),
            epoch: None,
            claimed: Some(&[]),
            joins: !is_static || join.request.member_id.is_empty(),
        }
    }

    /// Whether all members of the classic protocol know this assignor.
    fn is_supported(&self, protocol: &str) -> bool {
        let mut sides = self.members.values().filter_map(|it| it.classic.as_ref());
        sides.all(|side| side.protocols.iter().any(|(name, _)| name == protocol))
    }

    fn classic_member(
        &self,
        id: &Str,
        instance: Option<&Str>,
        generation: i32,
    ) -> Result<&Member, ErrorCode> {
        let member = match instance {
            Some(instance) => self.check_static(id, instance).map_err(|it| it.code)?,
            None => self.members.get(id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?,
        };
        if !member.is_classic() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        if member.epoch != generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        Ok(member)
    }

    /// Whether it still waits for a partition that somebody else holds.
    fn waits_for_others(&self, member: &Member) -> bool {
        let Some(target) = self.targets.get(&member.id) else { return false };
        let mut each = target.iter().flat_map(|(&id, it)| it.iter().map(move |&at| (id, at)));
        member.state == MemberState::Unreleased
            && each.any(|(topic, index)| {
                let has = member.assigned.get(&topic).is_some_and(|it| it.contains_key(&index));
                !has && self.is_held(topic, index)
            })
    }

    pub fn check_leaving(&self, who: &MemberIdentity) -> Result<&Str, ErrorCode> {
        let Some(instance) = &who.group_instance_id else {
            let member = self.members.get(&who.member_id);
            return member.map(|it| &it.id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID);
        };
        let owner = self.static_member(instance).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if !who.member_id.is_empty() && owner.id != who.member_id {
            return Err(ErrorCode::FENCED_INSTANCE_ID);
        }
        Ok(&owner.id)
    }
}

impl Draft<'_> {
    /// Makes the sender a member, or takes over what it says anew. Whether the group's epoch is
    /// ahead of its assignment then.
    pub fn classic_join(&mut self, join: &ClassicJoin<'_>, admitted: &Admitted) -> Rejoined {
        let before = self.admit(&join.id, &admitted.found);
        let member = join.updated(&before, &admitted.subscription);
        let topics_changed = member.topics != before.topics;
        let (pattern, _) = self.pattern_change(&before.pattern, &member.pattern);
        let orphan = self.orphaned_pattern(&before.pattern, &member.pattern);
        if admitted.found == Found::New || member != before {
            self.put(Change::Member(member.id.clone(), Some(member.description())));
        }
        if let Some(orphan) = orphan {
            self.put(Change::Pattern(orphan, None));
        }
        let raise = topics_changed || pattern != PatternChange::None;
        if raise || self.group.stale {
            self.update_metadata(raise);
        }
        Rejoined { subscription_changed: raise }
    }

    /// Assigns, and answers with where the member stands then.
    pub fn classic_advance(&mut self, join: &ClassicJoin<'_>, admitted: &Admitted, how: Rejoined) {
        let owned = owned_ids(&admitted.subscription, self.world.image);
        self.reconcile(&join.id, how.subscription_changed, Some(&owned));
    }

    /// Starts the clocks that a member of the classic protocol lives by.
    pub fn watch_classic(&mut self, join: &ClassicJoin<'_>) {
        let (group, id) = (self.group.id.clone(), join.id.clone());
        self.timers.cancel(&Alarm::Rejoin(group.clone(), id.clone()));
        self.start_session(&id);
        let patience_ms = i64::from(join.rebalance_timeout_ms());
        let due_ms = self.world.now_ms.saturating_add(patience_ms);
        self.timers.set(Alarm::Fetch(group, id), due_ms);
    }

    pub fn classic_joined(&self, id: &Str) -> JoinGroupResponse {
        let member = self.group.members.get(id);
        let protocol = member.and_then(Member::classic_protocol).map(|(name, _)| name.clone());
        JoinGroupResponse {
            member_id: id.clone(),
            generation_id: member.map_or(-1, |it| it.epoch),
            protocol_type: Some(CONSUMER.into()),
            protocol_name: protocol,
            ..JoinGroupResponse::default()
        }
    }

    pub fn classic_sync(
        &mut self,
        request: &SyncGroupRequest,
    ) -> Result<SyncGroupResponse, ErrorCode> {
        let instance = request.group_instance_id.as_ref();
        let member =
            self.group.classic_member(&request.member_id, instance, request.generation_id)?;
        let Some((protocol, metadata)) = member.classic_protocol().cloned() else {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        };
        let differs =
            |asked: &Option<Str>, ours: &str| asked.as_ref().is_some_and(|asked| *asked != *ours);
        if differs(&request.protocol_type, CONSUMER) || differs(&request.protocol_name, &protocol) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        let behind = self.group.target_epoch > member.epoch;
        if behind && member.state != MemberState::Unrevoked {
            let member = member.clone();
            self.await_rejoin(&member);
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        let version = Subscription::version_of(metadata).unwrap_or(0);
        let held = without_epochs(&member.assigned);
        let assignment = named(&held, self.world.image).encode(version);
        let id = member.id.clone();
        self.timers.cancel(&Alarm::Fetch(self.group.id.clone(), id.clone()));
        self.start_session(&id);
        Ok(SyncGroupResponse {
            protocol_type: request.protocol_type.clone(),
            protocol_name: request.protocol_name.clone(),
            assignment,
            ..SyncGroupResponse::default()
        })
    }

    pub fn classic_heartbeat(&mut self, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
        let instance = request.group_instance_id.as_ref();
        let member =
            self.group.classic_member(&request.member_id, instance, request.generation_id)?;
        let member = member.clone();
        self.start_session(&member.id);
        let may_take =
            member.state == MemberState::Unreleased && !self.group.waits_for_others(&member);
        let behind = member.epoch < self.group.target_epoch;
        if behind || member.state == MemberState::Unrevoked || may_take {
            self.await_rejoin(&member);
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        Ok(())
    }

    fn await_rejoin(&mut self, member: &Member) {
        let alarm = Alarm::Rejoin(self.group.id.clone(), member.id.clone());
        if !self.timers.is_set(&alarm) {
            let patience_ms = i64::from(member.rebalance_timeout_ms);
            self.timers.set(alarm, self.world.now_ms.saturating_add(patience_ms));
        }
    }
}

/// What a join changed.
#[derive(Clone, Copy)]
pub(crate) struct Rejoined {
    subscription_changed: bool,
}

/// What the subscription says is owned, of topics that exist.
fn owned_ids(subscription: &Subscription, image: &Image) -> Vec<TopicPartitions> {
    let each = subscription.owned_partitions.iter().filter_map(|owned| {
        let topic_id = image.topic(&owned.topic)?.id;
        Some(TopicPartitions { topic_id, partitions: owned.partitions.clone() })
    });
    each.collect()
}

/// As the classic protocol hands it out: by name.
pub(super) fn named(partitions: &Partitions, image: &Image) -> Assignment {
    let each = partitions.iter().filter_map(|(&topic, indexes)| {
        let topic = image.topic_by_id(topic)?.name.clone();
        Some(NamedPartitions { topic, partitions: indexes.iter().copied().collect() })
    });
    Assignment { assigned_partitions: each.collect(), user_data: None }
}

/// Partitions by the ids of their topics; unknown topics are left out.
pub(super) fn unnamed(assignment: &Assignment, image: &Image) -> Partitions {
    let mut partitions = Partitions::new();
    for topic in &assignment.assigned_partitions {
        let Some(found) = image.topic(&topic.topic) else { continue };
        let indexes: BTreeSet<i32> = topic.partitions.iter().copied().collect();
        if !indexes.is_empty() {
            partitions.entry(found.id).or_default().extend(indexes);
        }
    }
    partitions
}

const FIRST_VERSION_WITH_ID_FIRST: i16 = 4;
