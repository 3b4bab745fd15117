//! One member of a classic group.

use bytes::Bytes;
use protocol::group_records::MemberMetadata;
use protocol::messages::join_group::{JoinGroupResponse, JoinGroupResponseMember};
use protocol::messages::sync_group::SyncGroupResponse;
use protocol::{ErrorCode, Str};

use super::Desk;
use crate::world::{Reply, Ticket};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub id: Str,
    pub instance_id: Option<Str>,
    pub client_id: Str,
    pub client_host: Str,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// What it supports, the preferred one first, with the metadata for each.
    pub protocols: Vec<(Str, Bytes)>,
    pub assignment: Bytes,
    /// It has not been through a rebalance yet.
    pub is_new: bool,
    pub joining: Option<Ticket>,
    pub syncing: Option<Ticket>,
}

impl Member {
    pub fn from_record(record: MemberMetadata, protocol: Str) -> Member {
        Member {
            id: record.member_id.detach(),
            instance_id: record.group_instance_id.map(|it| it.detach()),
            client_id: record.client_id.detach(),
            client_host: record.client_host.detach(),
            rebalance_timeout_ms: match record.rebalance_timeout {
                -1 => record.session_timeout,
                timeout_ms => timeout_ms,
            },
            session_timeout_ms: record.session_timeout,
            protocols: vec![(protocol, Bytes::copy_from_slice(&record.subscription))],
            assignment: Bytes::copy_from_slice(&record.assignment),
            is_new: false,
            joining: None,
            syncing: None,
        }
    }

    pub fn to_record(&self, protocol: Option<&str>) -> MemberMetadata {
        MemberMetadata {
            member_id: self.id.clone(),
            group_instance_id: self.instance_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            rebalance_timeout: self.rebalance_timeout_ms,
            session_timeout: self.session_timeout_ms,
            subscription: protocol.map(|it| self.metadata(it)).unwrap_or_default(),
            assignment: self.assignment.clone(),
        }
    }

    pub fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|(name, _)| name == protocol);
        found.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
    }

    /// As its leader has to know it.
    pub fn introduce(&self, protocol: &str) -> JoinGroupResponseMember {
        JoinGroupResponseMember {
            member_id: self.id.clone(),
            group_instance_id: self.instance_id.clone(),
            metadata: self.metadata(protocol),
        }
    }

    pub fn answer_join(&mut self, answer: JoinGroupResponse, desk: &mut Desk<'_>) {
        if let Some(ticket) = self.joining.take() {
            desk.output.replies.push((ticket, Reply::Join(answer)));
        }
    }

    pub fn refuse_join(&mut self, member: &Str, error: ErrorCode, desk: &mut Desk<'_>) {
        self.answer_join(refused_join(member, error), desk);
    }

    pub fn answer_sync(&mut self, answer: SyncGroupResponse, desk: &mut Desk<'_>) {
        if let Some(ticket) = self.syncing.take() {
            desk.output.replies.push((ticket, Reply::Sync(answer)));
        }
    }

    pub fn refuse_sync(&mut self, error: ErrorCode, desk: &mut Desk<'_>) {
        let answer = SyncGroupResponse { error_code: error, ..SyncGroupResponse::default() };
        self.answer_sync(answer, desk);
    }
}

pub(crate) fn refused_join(member: &Str, error: ErrorCode) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code: error,
        member_id: member.clone(),
        protocol_name: None,
        ..JoinGroupResponse::default()
    }
}
