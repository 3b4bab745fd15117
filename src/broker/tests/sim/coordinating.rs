//! What clients of groups ask a coordinator: where it is, to commit, and what was committed.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use protocol::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponse,
};
use protocol::{ErrorCode, Str};
use runtime::time::now;

use super::client::{Client, Lost};
use super::history::{Commit, Fate, Known};
use super::run::{Session, TIMEOUT, Topic, below, one_in};

const GAVE_UP: [ErrorCode; 2] = [ErrorCode::NOT_COORDINATOR, ErrorCode::COORDINATOR_NOT_AVAILABLE];

/// Why something did not come about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    Lost,
    Code(ErrorCode),
}

impl From<Lost> for Trouble {
    fn from(Lost: Lost) -> Self {
        Trouble::Lost
    }
}

pub fn refused(error: ErrorCode) -> Result<(), Trouble> {
    if error == ErrorCode::NONE { Ok(()) } else { Err(Trouble::Code(error)) }
}

/// In whose name something is committed.
pub struct CommitAs {
    pub generation: i32,
    pub member: Str,
    pub instance: Option<Str>,
    /// The oldest version in which it can commit.
    pub version_min: i16,
    pub metadata: Str,
    /// It is surely no member of that generation any more.
    pub outdated: bool,
}

impl CommitAs {
    /// A client that is no member.
    pub fn nobody() -> Self {
        Self {
            generation: -1,
            member: Str::EMPTY,
            instance: None,
            version_min: 2,
            metadata: Str::EMPTY,
            outdated: false,
        }
    }
}

impl Session {
    /// A connection to the node that coordinates a group.
    pub async fn coordinator(&mut self, group: &Str) -> Result<Rc<Client>, Trouble> {
        if let Some(address) = self.coordinators.get(group).copied() {
            return Ok(self.connect(address).await?);
        }
        let batched = one_in(2);
        let request = FindCoordinatorRequest {
            key: group.clone(),
            coordinator_keys: vec![group.clone()],
            ..FindCoordinatorRequest::default()
        };
        let node = self.any_node().await?;
        let version = if batched { 4 + below(3) as i16 } else { 1 + below(3) as i16 };
        let answer: FindCoordinatorResponse = node.call(&request, version, TIMEOUT).await?;
        let (error, host, port) = match answer.coordinators.first() {
            Some(found) => (found.error_code, found.host.clone(), found.port),
            None => (answer.error_code, answer.host, answer.port),
        };
        refused(error)?;
        let ip: IpAddr = host.parse().map_err(|_| Trouble::Lost)?;
        let address = SocketAddr::new(ip, port as u16);
        self.coordinators.insert(group.clone(), address);
        Ok(self.connect(address).await?)
    }

    pub fn forget_coordinators(&mut self) {
        self.coordinators.clear();
    }

    /// Commits an offset that nobody else commits, and notes what came of it.
    pub async fn commit(
        &mut self,
        group: &Str,
        topic: &Topic,
        partition: i32,
        who: &CommitAs,
    ) -> Result<(), Trouble> {
        let node = self.coordinator(group).await?;
        let offset = self.run.history.borrow_mut().next_value() as i64;
        let wanted = OffsetCommitRequestPartition {
            partition_index: partition,
            committed_offset: offset,
            committed_metadata: Some(who.metadata.clone()),
            ..OffsetCommitRequestPartition::default()
        };
        let request = OffsetCommitRequest {
            group_id: group.clone(),
            generation_id_or_member_epoch: who.generation,
            member_id: who.member.clone(),
            group_instance_id: who.instance.clone(),
            topics: vec![OffsetCommitRequestTopic {
                name: topic.name.clone(),
                topic_id: topic.id,
                partitions: vec![wanted],
            }],
            ..OffsetCommitRequest::default()
        };
        let span = self.run.span();
        let place = self.run.history.borrow().commits.len();
        self.run.history.borrow_mut().commits.push(Commit {
            group: group.clone(),
            key: topic.key(partition),
            span,
            offset,
            outdated: who.outdated,
            fate: Fate::Unknown,
        });
        // Version 7 brought static members.
        let oldest = if who.instance.is_some() { who.version_min.max(7) } else { who.version_min };
        let version = oldest + below(11 - oldest as u64) as i16;
        let answer: OffsetCommitResponse = node.call(&request, version, TIMEOUT).await?;
        let error = answer.topics[0].partitions[0].error_code;
        // A coordinator that gave up while it wrote does not know what became of it.
        if !GAVE_UP.contains(&error) {
            let commit = &mut self.run.history.borrow_mut().commits[place];
            commit.span.completed = now().as_nanos();
            commit.fate = if error == ErrorCode::NONE { Fate::Done } else { Fate::Refused };
        }
        refused(error)
    }

    /// Asks what was committed for a partition, and notes the answer: offset and metadata.
    pub async fn fetch_committed(
        &mut self,
        group: &Str,
        topic: &Topic,
        partition: i32,
    ) -> Result<Option<(i64, Str)>, Trouble> {
        let node = self.coordinator(group).await?;
        let version = 2 + below(9) as i16;
        let mut span = self.run.span();
        let request = fetch_request(group, topic, partition);
        let answer: OffsetFetchResponse = node.call(&request, version, TIMEOUT).await?;
        span.completed = now().as_nanos();
        let (found, metadata) = match answer.groups.first() {
            Some(group) => {
                refused(group.error_code)?;
                let part = &group.topics[0].partitions[0];
                refused(part.error_code)?;
                (part.committed_offset, part.metadata.clone())
            }
            None => {
                refused(answer.error_code)?;
                let part = &answer.topics[0].partitions[0];
                refused(part.error_code)?;
                (part.committed_offset, part.metadata.clone())
            }
        };
        let offset = (found >= 0).then_some(found);
        if offset.is_some() {
            self.run.reach("group: a committed offset was read");
        }
        let known = Known { group: group.clone(), key: topic.key(partition), span, offset };
        self.run.history.borrow_mut().known.push(known);
        Ok(offset.map(|offset| (offset, metadata.unwrap_or_default())))
    }
}

/// For every version at once.
fn fetch_request(group: &Str, topic: &Topic, partition: i32) -> OffsetFetchRequest {
    OffsetFetchRequest {
        group_id: group.clone(),
        topics: Some(vec![OffsetFetchRequestTopic {
            name: topic.name.clone(),
            partition_indexes: vec![partition],
        }]),
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.clone(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: topic.name.clone(),
                topic_id: topic.id,
                partition_indexes: vec![partition],
            }]),
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    }
}
