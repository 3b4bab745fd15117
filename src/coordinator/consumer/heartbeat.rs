//! ConsumerGroupHeartbeat: the one request of a member. It joins, says what it wants and owns,
//! hears what it is to own, and leaves (KIP-848).

use std::collections::BTreeSet;

use protocol::messages::consumer_group_heartbeat::{
    Assignment, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
};
use protocol::{ErrorCode, Str};

use super::join::{Asker, Found, STATIC_AWAY};
use super::reconcile::answered;
use super::{
    Assignor, Change, ConsumerGroup, Draft, Member, MemberState, Owned, Refusal, check_pattern,
};
use crate::timers::Alarm;
use crate::world::{Caller, GroupSettings};

/// A heartbeat that is being decided.
pub(crate) struct Beat<'a> {
    pub caller: &'a Caller,
    pub request: &'a ConsumerGroupHeartbeatRequest,
    pub version: i16,
    /// The id of the member: its own, or one that was just made for it.
    pub id: Str,
    /// Of the metadata that last brought new topics.
    pub newest_topics: i64,
}

impl Beat<'_> {
    pub fn joins(&self) -> bool {
        self.request.member_epoch == 0
    }

    pub fn leaves(&self) -> bool {
        matches!(self.request.member_epoch, LEAVES | STATIC_AWAY)
    }

    /// As a static member that will be back.
    pub fn leaves_for_a_while(&self) -> bool {
        self.request.member_epoch == STATIC_AWAY
    }

    /// What no group could make sense of.
    pub fn check(&self, served: &[Assignor]) -> Result<(), Refusal> {
        let request = self.request;
        let invalid = |message: &str| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
        let empty = |text: &Option<Str>| text.as_ref().is_some_and(|it| it.trim().is_empty());
        let needs_id = self.version >= FIRST_VERSION_WITH_OWN_IDS
            || request.member_epoch > 0
            || request.member_epoch == LEAVES;
        if needs_id && request.member_id.trim().is_empty() {
            return invalid("a member id is needed");
        }
        if request.group_id.trim().is_empty() {
            return invalid("a group id is needed");
        }
        if empty(&request.instance_id) || empty(&request.rack_id) {
            return invalid("an instance or rack id may be missing, but not empty");
        }
        match request.member_epoch {
            0 if request.rebalance_timeout_ms == -1 => {
                return invalid("who joins has to say its rebalance timeout");
            }
            0 if request.topic_partitions.as_ref().is_none_or(|it| !it.is_empty()) => {
                return invalid("who joins has to own nothing, and to say so");
            }
            0 if request.subscribed_topic_names.is_none()
                && request.subscribed_topic_regex.is_none() =>
            {
                return invalid("who joins has to subscribe to topics or a pattern");
            }
            STATIC_AWAY if request.instance_id.is_none() => {
                return invalid("only members with an instance id leave for a while");
            }
            epoch if epoch < STATIC_AWAY => return invalid("no member epoch is below -2"),
            _ => {}
        }
        let Some(name) = &request.server_assignor else { return Ok(()) };
        if Assignor::named(name).is_some_and(|it| served.contains(&it)) {
            return Ok(());
        }
        let names: Vec<&str> = served.iter().map(|it| it.name()).collect();
        let message = format!("the assignors here are {}, not {name}", names.join(" and "));
        Err(Refusal::new(ErrorCode::UNSUPPORTED_ASSIGNOR, message))
    }

    fn subscription_bytes(&self) -> usize {
        let names = self.request.subscribed_topic_names.iter().flatten();
        let pattern = self.request.subscribed_topic_regex.iter();
        names.chain(pattern).map(|text| text.len()).sum()
    }

    fn asker(&self) -> Asker<'_> {
        Asker {
            id: &self.id,
            instance: self.request.instance_id.as_ref(),
            epoch: Some(self.request.member_epoch),
            claimed: self.request.topic_partitions.as_deref(),
            joins: self.joins(),
        }
    }

    /// The member with what the request says anew.
    fn updated(&self, before: &Member) -> Member {
        let (request, caller) = (self.request, self.caller);
        let mut member = before.clone();
        let set = |to: &mut Option<Str>, from: &Option<Str>| {
            if let Some(from) = from {
                *to = Some(from.detach());
            }
        };
        set(&mut member.instance_id, &request.instance_id);
        set(&mut member.rack_id, &request.rack_id);
        set(&mut member.assignor, &request.server_assignor);
        if request.rebalance_timeout_ms != -1 {
            member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        }
        if let Some(names) = &request.subscribed_topic_names {
            member.topics = names.iter().map(Str::detach).collect();
        }
        if let Some(pattern) = &request.subscribed_topic_regex {
            member.pattern = pattern.detach();
        }
        member.client_id = caller.client_id.detach();
        member.client_host = caller.client_host.detach();
        member.classic = None;
        member
    }
}

/// What a member's new pattern means for its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternChange {
    None,
    /// Its topics are not known yet.
    Unresolved,
    Resolved,
}

impl ConsumerGroup {
    /// Whether the heartbeat may take effect, and for whom; nothing is refused after that.
    pub fn check_beat(&self, beat: &Beat<'_>, bounds: &GroupSettings) -> Result<Found, Refusal> {
        let asker = beat.asker();
        self.check_room(&asker, bounds.consumer.members_max)?;
        let found = self.find(&asker)?;
        if beat.subscription_bytes() > bounds.record_bytes_max {
            let message = "the subscription is longer than a record of the log may be";
            return Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
        }
        let pattern = beat.request.subscribed_topic_regex.as_ref();
        if let Some(pattern) = pattern.filter(|it| !it.is_empty())
            && !self.pattern_members.contains_key(pattern)
            && let Err(why) = check_pattern(pattern)
        {
            let message = format!("{pattern} is no valid pattern: {}", why.0);
            return Err(Refusal::new(ErrorCode::INVALID_REGULAR_EXPRESSION, message));
        }
        Ok(found)
    }

    /// Whom the request takes out, or sends away for a while.
    pub fn check_leave(&self, beat: &Beat<'_>) -> Result<&Member, Refusal> {
        match &beat.request.instance_id {
            Some(instance) => self.check_static(&beat.id, instance),
            None => self.members.get(&beat.id).ok_or_else(|| {
                let message = format!("{} is not a member of {}", beat.id, self.id);
                Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, message)
            }),
        }
    }
}

impl Draft<'_> {
    pub fn beat(&mut self, beat: &Beat<'_>, found: &Found) -> ConsumerGroupHeartbeatResponse {
        let request = beat.request;
        let claimed = request.topic_partitions.as_deref();
        let before = self.admit(&beat.id, found);
        let member = beat.updated(&before);
        let subscription_changed = self.update(&before, member, *found == Found::New, beat);
        self.maybe_assign();
        self.reconcile(&beat.id, subscription_changed, claimed);
        self.start_session(&beat.id);
        let after = self.group.members.get(&beat.id).unwrap_or(&before);
        let is_whole = request.rebalance_timeout_ms != -1
            && (request.subscribed_topic_names.is_some()
                || request.subscribed_topic_regex.is_some())
            && claimed.is_some();
        let tells = beat.joins() || is_whole || after.assigned != before.assigned;
        let interval = self.world.settings.consumer.heartbeat_interval_ms;
        ConsumerGroupHeartbeatResponse {
            member_id: Some(after.id.clone()),
            member_epoch: after.epoch,
            heartbeat_interval_ms: interval.of(&self.group.id, self.world.image),
            assignment: tells.then(|| Assignment { topic_partitions: answered(&after.assigned) }),
            ..ConsumerGroupHeartbeatResponse::default()
        }
    }

    /// Takes over what a member says of itself, and raises the epoch if that matters to others.
    /// Whether its subscription is another one than before.
    fn update(&mut self, before: &Member, member: Member, is_new: bool, beat: &Beat<'_>) -> bool {
        let served = &self.world.settings.consumer.assignors;
        let votes = member.assignor != before.assignor;
        let preferred = votes.then(|| self.group.preferred_assignor(served));
        let topics_changed = member.topics != before.topics;
        let (pattern, is_first) = self.pattern_change(&before.pattern, &member.pattern);
        let orphan = self.orphaned_pattern(&before.pattern, &member.pattern);
        if is_new || member != *before {
            self.put(Change::Member(member.id.clone(), Some(member.description())));
        }
        if let Some(orphan) = orphan {
            self.put(Change::Pattern(orphan, None));
        }
        self.maybe_refresh_patterns(is_first, beat.newest_topics);
        let assignor_changed =
            preferred.is_some_and(|it| it != self.group.preferred_assignor(served));
        let raise = topics_changed || pattern == PatternChange::Resolved || assignor_changed;
        if raise || self.group.stale {
            self.update_metadata(raise);
        }
        topics_changed || pattern != PatternChange::None
    }

    /// Also, whether the pattern is new to the group.
    pub(super) fn pattern_change(&self, before: &Str, after: &Str) -> (PatternChange, bool) {
        if before == after {
            (PatternChange::None, false)
        } else if after.is_empty() {
            (PatternChange::Resolved, false)
        } else if !self.group.pattern_members.contains_key(after) {
            (PatternChange::Unresolved, true)
        } else if self.group.patterns.contains_key(after) {
            (PatternChange::Resolved, false)
        } else {
            (PatternChange::Unresolved, false)
        }
    }

    /// The old pattern of a member, if nobody else has it and its topics were known.
    pub(super) fn orphaned_pattern(&self, before: &Str, after: &Str) -> Option<Str> {
        let lonely = self.group.pattern_members.get(before) == Some(&1);
        (before != after && lonely).then(|| before.clone())
    }

    /// A static member leaves for a while: what it has is kept for it until its session ends.
    pub fn send_away(&mut self, id: &Str) -> ConsumerGroupHeartbeatResponse {
        if let Some(mut member) = self.group.members.get(id).cloned() {
            member.epoch = STATIC_AWAY;
            member.revoking = Owned::new();
            for epoch in member.assigned.values_mut().flat_map(|it| it.values_mut()) {
                *epoch = 0;
            }
            self.put(Change::Current(id.clone(), Some(member.holding())));
        }
        ConsumerGroupHeartbeatResponse {
            member_id: Some(id.clone()),
            member_epoch: STATIC_AWAY,
            ..ConsumerGroupHeartbeatResponse::default()
        }
    }
}

/// What alarms say of members of a consumer group.
impl ConsumerGroup {
    /// Whom an alarm takes out of the group, if it still means anything.
    pub fn overdue(&self, alarm: &Alarm) -> BTreeSet<Str> {
        let (Alarm::Session(_, id)
        | Alarm::Revoke(_, id)
        | Alarm::Rejoin(_, id)
        | Alarm::Fetch(_, id)) = alarm
        else {
            return BTreeSet::new();
        };
        let member = self.members.get(id).filter(|member| match alarm {
            Alarm::Revoke(..) => member.state == MemberState::Unrevoked,
            _ => true,
        });
        member.map(|it| it.id.clone()).into_iter().collect()
    }
}

/// The epoch that says goodbye.
const LEAVES: i32 = -1;
const FIRST_VERSION_WITH_OWN_IDS: i16 = 1;
