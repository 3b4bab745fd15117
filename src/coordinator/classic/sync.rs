//! SyncGroup: the leader hands in the assignment, everyone gets its own.

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::messages::sync_group::{SyncGroupRequest, SyncGroupResponse};
use protocol::{ErrorCode, Str};

use super::{ClassicGroup, Desk, State};
use crate::timers::Alarm;
use crate::world::{Reply, Ticket};

impl ClassicGroup {
    pub fn sync(&mut self, request: &SyncGroupRequest, ticket: Ticket, desk: &mut Desk<'_>) {
        let id = request.member_id.clone();
        if let Err(error_code) = self.check_sync(request) {
            let answer = SyncGroupResponse { error_code, ..SyncGroupResponse::default() };
            return desk.output.replies.push((ticket, Reply::Sync(answer)));
        }
        self.unsynced.remove(&id);
        if self.unsynced.is_empty() {
            desk.timers.cancel(&Alarm::Sync(self.id.clone()));
        }
        if let Some(member) = self.members.get_mut(&id) {
            // An earlier request that still waits came over a connection that is given up.
            member.refuse_sync(ErrorCode::REBALANCE_IN_PROGRESS, desk);
            member.syncing = Some(ticket);
        }
        if self.state == State::Stable {
            return self.hand_out(&id, desk);
        }
        if self.is_leader(&id) {
            self.assign(request);
            if self.to_record().encode().len() > desk.world.settings.record_bytes_max {
                return self.refuse_assignment(desk);
            }
            self.enter(State::Stable, desk);
            self.write(desk);
            for id in self.members.keys().cloned().collect::<Vec<_>>() {
                self.hand_out(&id, desk);
                self.start_session(&id, desk);
            }
        }
    }

    fn check_sync(&self, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
        self.check_member(&request.member_id, request.group_instance_id.as_ref())?;
        let differs = |asked: &Option<Str>, ours: &Option<Str>| {
            asked.is_some() && ours.is_some() && asked != ours
        };
        if request.generation_id != self.generation {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol_name, &self.protocol)
        {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        match self.state {
            State::Empty => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            State::PreparingRebalance => Err(ErrorCode::REBALANCE_IN_PROGRESS),
            State::CompletingRebalance | State::Stable => Ok(()),
        }
    }

    /// Members that the leader forgot get nothing; whom it made up is ignored.
    fn assign(&mut self, request: &SyncGroupRequest) {
        let given = request.assignments.iter().map(|it| (&it.member_id, &it.assignment));
        let given: BTreeMap<&Str, &Bytes> = given.collect();
        for member in self.members.values_mut() {
            let given = given.get(&member.id).map(|it| Bytes::copy_from_slice(it));
            member.assignment = given.unwrap_or_default();
        }
    }

    /// What members ask for and get is more than a record may hold: all are told, and join anew.
    fn refuse_assignment(&mut self, desk: &mut Desk<'_>) {
        for member in self.members.values_mut() {
            member.refuse_sync(ErrorCode::UNKNOWN_SERVER_ERROR, desk);
        }
        self.prepare_rebalance(desk);
    }

    fn hand_out(&mut self, id: &Str, desk: &mut Desk<'_>) {
        let (protocol_type, protocol_name) = (self.protocol_type.clone(), self.protocol.clone());
        let Some(member) = self.members.get_mut(id) else { return };
        let answer = SyncGroupResponse {
            protocol_type,
            protocol_name,
            assignment: member.assignment.clone(),
            ..SyncGroupResponse::default()
        };
        member.answer_sync(answer, desk);
    }
}
