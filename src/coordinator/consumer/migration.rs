//! Between the protocols: a classic group becomes a consumer group when the first member of the
//! new protocol joins it, and a classic one again when the last has left (KIP-848), as far as
//! `group.consumer.migration.policy` allows.

use std::collections::BTreeMap;

use metadata::Image;
use protocol::consumer_protocol::{Assignment, Subscription};
use protocol::group_records::{
    ConsumerGroupMetadataValue, ConsumerGroupTargetAssignmentMetadataValue, GroupMetadataValue,
    MemberMetadata,
};
use protocol::{ErrorCode, Str};

use super::classic_members::{named, unnamed};
use super::member::{ClassicSide, target_record, with_epoch};
use super::{Change, ConsumerGroup, Member, Partitions, Refusal, hash};
use crate::classic::ClassicGroup;
use crate::world::World;

/// A classic group as a consumer group.
pub(crate) struct Upgrade {
    pub group: ConsumerGroup,
    pub changes: Vec<Change>,
}

impl Upgrade {
    pub fn of(classic: &ClassicGroup, world: &World<'_>) -> Result<Upgrade, Refusal> {
        let refused = |why: &str| {
            let message = format!("{} is a classic group and stays one: {why}", classic.id);
            Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, message))
        };
        let settings = &world.settings.consumer;
        if !settings.migration.upgrades() {
            return refused("group.consumer.migration.policy does not let it change");
        }
        if !classic.is_of_consumers() {
            return refused("its protocol type is not consumer");
        }
        if classic.members.len() > settings.members_max {
            return refused("it has more members than a consumer group may have");
        }
        let Some(protocol) = classic.agreed_protocol() else {
            return refused("its members agree on no protocol");
        };
        let epoch = classic.generation;
        let mut group = ConsumerGroup::new(classic.id.clone());
        let mut targets = BTreeMap::new();
        for each in classic.members.values() {
            let (member, target) = match upgraded(each, &protocol, epoch, world.image) {
                Ok(both) => both,
                Err(why) => return refused(why),
            };
            targets.insert(member.id.clone(), target);
            group.apply(Change::Member(member.id.clone(), Some(member.description())));
            group.apply(Change::Current(member.id.clone(), Some(member.holding())));
        }
        for (id, target) in targets {
            group.apply(Change::Target(id, Some(target_record(&target))));
        }
        group.apply(Change::TargetEpoch(Some(ConsumerGroupTargetAssignmentMetadataValue {
            assignment_epoch: epoch,
            assignment_timestamp: 0,
        })));
        let metadata_hash = hash::of_topics(group.topics.keys(), world.image);
        group.apply(Change::Group(Some(ConsumerGroupMetadataValue { epoch, metadata_hash })));
        let changes = group.changes();
        Ok(Upgrade { group, changes })
    }
}

fn upgraded(
    classic: &crate::classic::Member,
    protocol: &str,
    epoch: i32,
    image: &Image,
) -> Result<(Member, Partitions), &'static str> {
    let mut target = Partitions::new();
    if !classic.assignment.is_empty() {
        let assignment = Assignment::decode(classic.assignment.clone())
            .map_err(|_| "an assignment cannot be read")?;
        if assignment.user_data.as_ref().is_some_and(|it| !it.is_empty()) {
            return Err("its assignor keeps data of its own in assignments");
        }
        target = unnamed(&assignment, image);
    }
    let subscription = Subscription::decode(classic.metadata(protocol))
        .map_err(|_| "a subscription cannot be read")?;
    let mut member = Member::new(classic.id.clone());
    (member.epoch, member.previous_epoch) = (epoch, epoch);
    member.instance_id = classic.instance_id.clone();
    member.rack_id = subscription.rack_id.filter(|it| !it.is_empty());
    member.client_id = classic.client_id.clone();
    member.client_host = classic.client_host.clone();
    member.rebalance_timeout_ms = classic.rebalance_timeout_ms;
    member.topics = subscription.topics.into_iter().collect();
    member.assigned = with_epoch(&target, epoch);
    member.classic = Some(ClassicSide {
        session_timeout_ms: classic.session_timeout_ms,
        protocols: classic.protocols.clone(),
    });
    Ok((member, target))
}

impl ConsumerGroup {
    /// Whether the group may become a classic one with only the members that `stays` names.
    pub fn can_downgrade(&self, world: &World<'_>, stays: impl Fn(&Str) -> bool) -> bool {
        let mut staying = self.members.values().filter(|it| stays(&it.id));
        let count = staying.clone().count();
        count > 0
            && count <= world.settings.members_max
            && world.settings.consumer.migration.downgrades()
            && staying.all(Member::is_classic)
    }

    /// The classic group that it becomes, as a record has it.
    pub fn downgraded(
        &self,
        image: &Image,
        wall_ms: i64,
        stays: impl Fn(&Str) -> bool,
    ) -> GroupMetadataValue {
        let staying = || self.members.values().filter(|it| stays(&it.id));
        let protocol = most_liked(staying());
        let member = |member: &Member| {
            let side = member.classic.as_ref();
            let protocols = side.map(|it| it.protocols.as_slice()).unwrap_or_default();
            let named_so = protocols.iter().find(|(name, _)| Some(name) == protocol.as_ref());
            let subscription = named_so.map(|(_, it)| it.clone()).unwrap_or_default();
            let version = Subscription::version_of(subscription.clone()).unwrap_or(0);
            MemberMetadata {
                member_id: member.id.clone(),
                group_instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                rebalance_timeout: member.rebalance_timeout_ms,
                session_timeout: side.map_or(0, |it| it.session_timeout_ms),
                subscription,
                assignment: named(&self.target_for(&member.id), image).encode(version),
            }
        };
        GroupMetadataValue {
            protocol_type: crate::classic::CONSUMER.into(),
            generation: self.epoch,
            leader: staying().next().map(|it| it.id.clone()),
            current_state_timestamp: wall_ms,
            members: staying().map(member).collect(),
            protocol: protocol.clone(),
        }
    }
}

/// Of the protocols that all of them support, the one that most of them like best.
fn most_liked<'a>(members: impl Iterator<Item = &'a Member> + Clone) -> Option<Str> {
    let sides = || members.clone().filter_map(|it| it.classic.as_ref());
    let common =
        |wanted: &Str| sides().all(|side| side.protocols.iter().any(|(name, _)| name == wanted));
    let mut votes: BTreeMap<&Str, usize> = BTreeMap::new();
    for side in sides() {
        if let Some((name, _)) = side.protocols.iter().find(|(name, _)| common(name)) {
            *votes.entry(name).or_default() += 1;
        }
    }
    let most = votes.values().copied().max()?;
    votes.into_iter().find(|(_, count)| *count == most).map(|(name, _)| name.clone())
}
