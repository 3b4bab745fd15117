//! A member of a consumer group of the classic protocol: joins, assigns if it is made the leader,
//! says that it lives, leaves. One request at a time; who uses it must call `beat` often enough.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use protocol::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use protocol::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
use protocol::messages::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity};
use protocol::messages::sync_group::{
    SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};
use protocol::{ErrorCode, Str};

use super::consumer_protocol::{
    Partitions, assign_range, decode_assignment, decode_subscription, encode_assignment,
    encode_subscription,
};
use super::group::{self, Committer};
use crate::client::{Client, check};

/// A member, joined or about to be.
pub struct Member {
    group: String,
    instance: Option<Str>,
    topics: Vec<Str>,
    node: i32,
    id: Str,
    generation: i32,
    beaten: Instant,
}

impl Member {
    pub fn new(
        client: &mut Client,
        group: &str,
        instance: Option<&str>,
        topics: &[Str],
    ) -> anyhow::Result<Member> {
        Ok(Member {
            node: group::coordinator(client, group)?,
            group: group.to_owned(),
            instance: instance.map(|it| Str::from(it.to_owned())),
            topics: topics.to_vec(),
            id: Str::EMPTY,
            generation: -1,
            beaten: Instant::now(),
        })
    }

    /// The node that coordinates the group.
    pub fn coordinator(&self) -> i32 {
        self.node
    }

    /// Takes part in a rebalance to its end and gives what it brought.
    pub fn join(&mut self, client: &mut Client) -> anyhow::Result<Partitions> {
        let deadline = Instant::now() + JOIN_WAIT;
        loop {
            let error = match self.try_join(client)? {
                Ok(partitions) => return Ok(partitions),
                Err(error) => error,
            };
            match error {
                ErrorCode::MEMBER_ID_REQUIRED | ErrorCode::REBALANCE_IN_PROGRESS => continue,
                ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION => {
                    self.id = Str::EMPTY;
                }
                ErrorCode::NOT_COORDINATOR => self.node = group::coordinator(client, &self.group)?,
                other if other.retriable() && Instant::now() < deadline => {}
                other => check(other, None)?,
            }
            std::thread::sleep(RETRY_PAUSE);
        }
    }

    fn try_join(&mut self, client: &mut Client) -> anyhow::Result<Result<Partitions, ErrorCode>> {
        let request = JoinGroupRequest {
            group_id: Str::from(self.group.clone()),
            session_timeout_ms: SESSION_TIMEOUT.as_millis() as i32,
            rebalance_timeout_ms: REBALANCE_TIMEOUT.as_millis() as i32,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            protocol_type: PROTOCOL_TYPE,
            protocols: vec![JoinGroupRequestProtocol {
                name: ASSIGNOR,
                metadata: encode_subscription(&self.topics),
            }],
            reason: None,
        };
        let joined: JoinGroupResponse = client.ask_node(self.node, &request)?;
        if joined.error_code == ErrorCode::MEMBER_ID_REQUIRED {
            self.id = joined.member_id;
            return Ok(Err(joined.error_code));
        }
        if joined.error_code.is_error() {
            return Ok(Err(joined.error_code));
        }
        (self.id, self.generation) = (joined.member_id.clone(), joined.generation_id);
        let assigns = joined.leader == joined.member_id && !joined.skip_assignment;
        let assignments = if assigns { assign(client, &joined)? } else { Vec::new() };
        let request = SyncGroupRequest {
            group_id: Str::from(self.group.clone()),
            generation_id: self.generation,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            protocol_type: Some(PROTOCOL_TYPE),
            protocol_name: Some(ASSIGNOR),
            assignments,
        };
        let synced: SyncGroupResponse = client.ask_node(self.node, &request)?;
        if synced.error_code.is_error() {
            return Ok(Err(synced.error_code));
        }
        self.beaten = Instant::now();
        Ok(Ok(decode_assignment(&synced.assignment).unwrap_or_default()))
    }

    /// Says that it lives, if it is time to; false when the group has to be joined again.
    pub fn beat(&mut self, client: &mut Client) -> anyhow::Result<bool> {
        if self.beaten.elapsed() < BEAT_INTERVAL {
            return Ok(true);
        }
        let request = HeartbeatRequest {
            group_id: Str::from(self.group.clone()),
            generation_id: self.generation,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
        };
        let answer: HeartbeatResponse = client.ask_node(self.node, &request)?;
        self.beaten = Instant::now();
        self.is_member(client, answer.error_code)
    }

    /// Commits as this member; false when the group has to be joined again.
    pub fn commit(
        &mut self,
        client: &mut Client,
        topic: (&Str, protocol::Uuid),
        offsets: &BTreeMap<i32, i64>,
    ) -> anyhow::Result<bool> {
        if offsets.is_empty() {
            return Ok(true);
        }
        let (group, member, generation) = (&*self.group, &*self.id, self.generation);
        let committer = Committer { group, member, generation };
        let offsets = offsets.iter().map(|(&partition, &offset)| (partition, offset));
        let error = group::commit(client, self.node, committer, topic, offsets)?;
        self.is_member(client, error)
    }

    pub fn leave(&self, client: &mut Client) -> anyhow::Result<()> {
        let request = LeaveGroupRequest {
            group_id: Str::from(self.group.clone()),
            member_id: self.id.clone(),
            members: vec![MemberIdentity {
                member_id: self.id.clone(),
                group_instance_id: self.instance.clone(),
                ..MemberIdentity::default()
            }],
        };
        let answer: LeaveGroupResponse = client.ask_node(self.node, &request)?;
        check(answer.error_code, None)
    }

    fn is_member(&mut self, client: &mut Client, error: ErrorCode) -> anyhow::Result<bool> {
        match error {
            ErrorCode::NONE => return Ok(true),
            ErrorCode::REBALANCE_IN_PROGRESS => {}
            ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION => self.id = Str::EMPTY,
            ErrorCode::NOT_COORDINATOR => self.node = group::coordinator(client, &self.group)?,
            other if other.retriable() => {}
            other => check(other, None)?,
        }
        Ok(false)
    }
}

/// What the leader hands in.
fn assign(
    client: &mut Client,
    joined: &JoinGroupResponse,
) -> anyhow::Result<Vec<SyncGroupRequestAssignment>> {
    let members: BTreeMap<Str, Vec<Str>> = joined
        .members
        .iter()
        .map(|it| (it.member_id.clone(), decode_subscription(&it.metadata).unwrap_or_default()))
        .collect();
    let mut counts = BTreeMap::new();
    for topic in members.values().flatten() {
        if !counts.contains_key(topic) {
            let found = client.metadata(&[topic])?.topics.into_iter().next();
            let count = found.map_or(0, |it| it.partitions.len() as i32);
            counts.insert(topic.clone(), count);
        }
    }
    let shares = assign_range(&members, &counts).into_iter();
    Ok(shares
        .map(|(member_id, partitions)| SyncGroupRequestAssignment {
            member_id,
            assignment: encode_assignment(&partitions),
        })
        .collect())
}

const PROTOCOL_TYPE: Str = Str::from_static("consumer");
/// Every client has it, so that groups can be mixed.
const ASSIGNOR: Str = Str::from_static("range");
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);
const REBALANCE_TIMEOUT: Duration = Duration::from_secs(30);
const BEAT_INTERVAL: Duration = Duration::from_secs(1);
const JOIN_WAIT: Duration = Duration::from_secs(120);
const RETRY_PAUSE: Duration = Duration::from_millis(50);
