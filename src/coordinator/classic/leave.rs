//! LeaveGroup: members go, or an operator takes static ones out by their instance id (KIP-345).

use protocol::messages::leave_group::MemberIdentity;
use protocol::{ErrorCode, Str};

use super::{ClassicGroup, Desk};
use crate::timers::Alarm;

impl ClassicGroup {
    /// One outcome for each that was named.
    pub fn leave(&mut self, leaving: &[MemberIdentity], desk: &mut Desk<'_>) -> Vec<ErrorCode> {
        let mut outcomes = Vec::with_capacity(leaving.len());
        for each in leaving {
            outcomes.push(match self.leave_one(each, desk) {
                Ok(()) => ErrorCode::NONE,
                Err(error) => error,
            });
        }
        if outcomes.contains(&ErrorCode::NONE) {
            self.on_members_gone(desk);
        }
        outcomes
    }

    fn leave_one(&mut self, who: &MemberIdentity, desk: &mut Desk<'_>) -> Result<(), ErrorCode> {
        let instance = who.group_instance_id.as_ref();
        let id: Str = if who.member_id.is_empty() {
            let named = instance.and_then(|it| self.statics.get(it));
            named.cloned().ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?
        } else if self.pending.remove(&who.member_id) {
            desk.timers.cancel(&Alarm::Session(self.id.clone(), who.member_id.clone()));
            return Ok(());
        } else {
            self.check_member(&who.member_id, instance)?;
            who.member_id.clone()
        };
        self.remove(&id, desk);
        Ok(())
    }
}
