//! Who may commit and read offsets in the name of a member: whoever knows its epoch. A commit that
//! was on its way while the epoch rose still counts for partitions that the member has held since
//! before (KIP-1251); for others it comes too late.

use metadata::Image;
use protocol::messages::offset_commit::OffsetCommitRequest;
use protocol::{ErrorCode, Str};

use super::{ConsumerGroup, Member};

impl ConsumerGroup {
    pub fn check_commit(
        &self,
        request: &OffsetCommitRequest,
        version: i16,
        image: &Image,
    ) -> Result<(), ErrorCode> {
        let epoch = request.generation_id_or_member_epoch;
        if epoch < 0 && self.members.is_empty() {
            return Ok(());
        }
        let member = self.members.get(&request.member_id);
        let member = member.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if !member.is_classic() && version < FIRST_VERSION_WITH_MEMBER_EPOCHS {
            return Err(ErrorCode::UNSUPPORTED_VERSION);
        }
        let each = request.topics.iter().flat_map(|topic| {
            let id = image.topic(&topic.name).map(|it| it.id);
            topic.partitions.iter().map(move |it| (id, it.partition_index))
        });
        let held_then = |(id, index)| {
            let since = member.partition_epoch(id?, index)?;
            Some(epoch >= since)
        };
        let in_time =
            |epoch: i32| epoch < member.epoch && each.clone().all(|it| held_then(it) == Some(true));
        if epoch == member.epoch || in_time(epoch) { Ok(()) } else { Err(stale(member)) }
    }

    pub fn check_fetch(&self, member: Option<&Str>, epoch: i32) -> Result<(), ErrorCode> {
        if member.is_none() && epoch < 0 {
            return Ok(());
        }
        let member = member.and_then(|id| self.members.get(id));
        let member = member.ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if epoch == member.epoch { Ok(()) } else { Err(stale(member)) }
    }
}

fn stale(member: &Member) -> ErrorCode {
    match member.is_classic() {
        true => ErrorCode::ILLEGAL_GENERATION,
        false => ErrorCode::STALE_MEMBER_EPOCH,
    }
}

const FIRST_VERSION_WITH_MEMBER_EPOCHS: i16 = 9;
