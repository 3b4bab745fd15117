//! Signs of life: heartbeats, commits, and their absence.

use protocol::messages::heartbeat::HeartbeatRequest;
use protocol::{ErrorCode, Str};

use super::{ClassicGroup, Desk, State};
use crate::timers::Alarm;

impl ClassicGroup {
    pub fn heartbeat(
        &mut self,
        request: &HeartbeatRequest,
        desk: &mut Desk<'_>,
    ) -> Result<(), ErrorCode> {
        self.check_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        self.start_session(&request.member_id, desk);
        match self.state {
            State::Empty => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            State::PreparingRebalance => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            State::CompletingRebalance | State::Stable => Ok(()),
        }
    }

    /// Whether offsets may be committed in the name of this member and generation. Without either
    /// they may while the group is empty: by tools, and by clients that assign by themselves.
    pub fn check_commit(
        &mut self,
        member: &Str,
        instance: Option<&Str>,
        generation: i32,
        desk: &mut Desk<'_>,
    ) -> Result<(), ErrorCode> {
        if generation < 0 && self.state == State::Empty {
            return Ok(());
        }
        if generation < 0 && member.is_empty() && instance.is_none() {
            return Err(ErrorCode::UNKNOWN_MEMBER_ID);
        }
        self.check_member(member, instance)?;
        if generation != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if self.state == State::CompletingRebalance {
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        self.start_session(member, desk);
        Ok(())
    }

    /// A session ended, or the patience with one that never became a member.
    pub fn on_session_alarm(&mut self, id: &Str, desk: &mut Desk<'_>) {
        if self.pending.remove(id) {
            return self.maybe_complete_join(desk);
        }
        let Some(member) = self.members.get(id) else { return };
        // Whoever waits for an answer cannot send heartbeats.
        if !member.is_new && (member.joining.is_some() || member.syncing.is_some()) {
            return;
        }
        self.remove(id, desk);
        self.on_members_gone(desk);
    }

    pub(super) fn on_members_gone(&mut self, desk: &mut Desk<'_>) {
        match self.state {
            State::Stable | State::CompletingRebalance => self.prepare_rebalance(desk),
            State::PreparingRebalance => self.maybe_complete_join(desk),
            State::Empty => {}
        }
    }

    /// Forgets all alarms: the group is being deleted.
    pub fn silence(&self, desk: &mut Desk<'_>) {
        desk.timers.cancel(&Alarm::Join(self.id.clone()));
        desk.timers.cancel(&Alarm::Sync(self.id.clone()));
        for id in self.members.keys().chain(&self.pending) {
            desk.timers.cancel(&Alarm::Session(self.id.clone(), id.clone()));
        }
    }
}
