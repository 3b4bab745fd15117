//! Which member a request comes from, and whether it may be one: epochs fence those that missed
//! something, instance ids (KIP-345) let a member come back under a new id.

use protocol::{ErrorCode, Str};

use super::member::target_record;
use super::reconcile::{Claimed, owns_only};
use super::{Change, ConsumerGroup, Draft, Member, MemberState, Refusal};

/// Who asks.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub id: &'a Str,
    pub instance: Option<&'a Str>,
    /// None of those who speak the classic protocol: their generation is checked elsewhere.
    pub epoch: Option<i32>,
    pub claimed: Claimed<'a>,
    /// Whether it may be somebody new.
    pub joins: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Known,
    New,
    /// A static member that comes back, in the place of this one.
    Replaces(Str),
}

impl ConsumerGroup {
    pub(super) fn check_room(&self, asker: &Asker<'_>, max: usize) -> Result<(), Refusal> {
        let returns = asker.instance.is_some_and(|it| self.statics.contains_key(it));
        if returns || self.members.len() < max || self.members.contains_key(asker.id) {
            return Ok(());
        }
        let message = format!("the group has {max} members, as many as it may have");
        Err(Refusal::new(ErrorCode::GROUP_MAX_SIZE_REACHED, message))
    }

    pub(super) fn find(&self, asker: &Asker<'_>) -> Result<Found, Refusal> {
        match asker.instance {
            None => self.find_dynamic(asker),
            Some(instance) => self.find_static(asker, instance),
        }
    }

    fn find_dynamic(&self, asker: &Asker<'_>) -> Result<Found, Refusal> {
        let Some(member) = self.members.get(asker.id) else {
            let unknown = format!("{} is not a member of {}", asker.id, self.id);
            return match asker.joins {
                true => Ok(Found::New),
                false => Err(Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, unknown)),
            };
        };
        check_epoch(member, asker)?;
        Ok(Found::Known)
    }

    fn find_static(&self, asker: &Asker<'_>, instance: &Str) -> Result<Found, Refusal> {
        let owner = self.static_member(instance);
        if !asker.joins {
            let owner = self.check_static(asker.id, instance)?;
            check_epoch(owner, asker)?;
            return Ok(Found::Known);
        }
        let Some(owner) = owner else {
            return Ok(match self.members.contains_key(asker.id) {
                true => Found::Known,
                false => Found::New,
            });
        };
        let is_classic = asker.epoch.is_none();
        if !is_classic && !owner.is_classic() && owner.epoch != STATIC_AWAY {
            let message = format!("the instance {instance} is held by the member {}", owner.id);
            return Err(Refusal::new(ErrorCode::UNRELEASED_INSTANCE_ID, message));
        }
        Ok(Found::Replaces(owner.id.clone()))
    }

    /// The static member, if it is this one.
    pub(super) fn check_static(&self, id: &Str, instance: &Str) -> Result<&Member, Refusal> {
        let Some(owner) = self.static_member(instance) else {
            let message = format!("the instance {instance} is unknown");
            return Err(Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, message));
        };
        if owner.id != *id {
            let message = format!("the instance {instance} belongs to the member {}", owner.id);
            return Err(Refusal::new(ErrorCode::FENCED_INSTANCE_ID, message));
        }
        Ok(owner)
    }
}

fn check_epoch(member: &Member, asker: &Asker<'_>) -> Result<(), Refusal> {
    let Some(epoch) = asker.epoch else { return Ok(()) };
    // The answer with the new epoch may have been lost; then the member still says the old one,
    // and owns nothing that it may not.
    let retries = epoch == member.previous_epoch && owns_only(asker.claimed, &member.assigned);
    let fenced = match epoch {
        0 => false,
        _ => epoch > member.epoch || (epoch < member.epoch && !retries),
    };
    let lost = member.state == MemberState::Unknown && !asker.claimed.is_some_and(<[_]>::is_empty);
    if !fenced && !lost {
        return Ok(());
    }
    let message = format!(
        "the member is at epoch {}, not {epoch}: it has to give all partitions up and join again",
        member.epoch
    );
    Err(Refusal::new(ErrorCode::FENCED_MEMBER_EPOCH, message))
}

impl Draft<'_> {
    /// The member before this request: as it was, new, or in the place of its predecessor.
    pub(super) fn admit(&mut self, id: &Str, found: &Found) -> Member {
        let predecessor = match found {
            Found::Known | Found::New => {
                let known = self.group.members.get(id).cloned();
                return known.unwrap_or_else(|| Member::new(id.detach()));
            }
            Found::Replaces(predecessor) => predecessor,
        };
        let target = self.group.target_for(predecessor);
        let Some(mut member) = self.group.members.get(predecessor).cloned() else {
            return Member::new(id.detach());
        };
        self.put_removal(predecessor);
        member.id = id.detach();
        (member.epoch, member.previous_epoch) = (0, 0);
        self.put(Change::Member(member.id.clone(), Some(member.description())));
        self.put(Change::Target(member.id.clone(), Some(target_record(&target))));
        self.put(Change::Current(member.id.clone(), Some(member.holding())));
        member
    }

    /// Takes a member out of the group.
    pub(super) fn put_removal(&mut self, member: &Str) {
        self.cancel_alarms(member);
        self.put(Change::Current(member.clone(), None));
        self.put(Change::Target(member.clone(), None));
        self.put(Change::Member(member.clone(), None));
    }
}

/// The epoch of a static member that has left and will be back.
pub(super) const STATIC_AWAY: i32 = -2;
