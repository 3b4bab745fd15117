//! Groups: members that join, share partitions, commit, fall silent, leave and join again, some of
//! them static; and clients that only commit, without being members.
//!
//! Law: what is noted of a commit or a fetch of offsets is what was sent and answered. Commits in
//! the name of a generation or member that is surely gone are noted as outdated.

use std::rc::Rc;
use std::time::Duration;

use protocol::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use protocol::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
use protocol::messages::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity};
use protocol::messages::sync_group::{
    SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};
use protocol::{ErrorCode, Str};
use runtime::time::sleep;

use super::client::{Client, Lost};
use super::coordinating::{CommitAs, Trouble, refused};
use super::history::{Owned, Share};
use super::run::{PAUSE, Run, Session, TIMEOUT, Topic, below, one_in};

/// A join is answered when the group has gathered.
const JOIN_TIMEOUT: Duration = Duration::from_secs(15);
const REBALANCE_TIMEOUT_MS: i32 = 2000;
const TOPIC: &str = "topic-0";
const PROTOCOL: Str = Str::from_static("turns");
const CONSUMER: Str = Str::from_static("consumer");

/// What a member was told when it joined last.
struct Joined {
    generation: i32,
    partitions: Vec<i32>,
}

struct Member {
    session: Session,
    topic: Rc<Topic>,
    group: Str,
    instance: Option<Str>,
    /// Empty while it has none.
    id: Str,
    /// The id that a static member had before it came back under another.
    predecessor: Option<Str>,
    joined: Option<Joined>,
}

/// Takes part in a group until the run stops, and then once more to the end.
pub async fn take_part(run: Rc<Run>, group: Str, number: u64) {
    let Some(topic) = find_topic(&run).await else { return };
    let instance = one_in(3).then(|| Str::from(format!("static-{number}")));
    let mut member = Member {
        session: Session::new(&run),
        topic,
        group,
        instance,
        id: Str::EMPTY,
        predecessor: None,
        joined: None,
    };
    while !run.stopping.get() {
        let turn = member.take_turn().await;
        member.recover(turn).await;
    }
    loop {
        let last = member.finish().await;
        if last.is_ok() {
            return;
        }
        member.recover(last).await;
    }
}

/// Commits for a group without members, and asks what was committed.
pub async fn commit_alone(run: Rc<Run>, group: Str) {
    let Some(topic) = find_topic(&run).await else { return };
    let mut session = Session::new(&run);
    while !run.stopping.get() {
        let partition = below(topic.partitions.get() as u64) as i32;
        let done = match one_in(3) {
            true => session.fetch_committed(&group, &topic, partition).await.map(drop),
            false => session.commit(&group, &topic, partition, &CommitAs::nobody()).await.map(drop),
        };
        if done.is_err() {
            session.forget_coordinators();
        }
        sleep(PAUSE * below(10) as u32).await;
    }
}

/// Asks for everything that a group has committed, however often it takes.
pub async fn read_committed(run: Rc<Run>, group: Str) {
    let topics = run.topics.borrow().clone();
    let Some(topic) = topics.into_iter().find(|topic| *topic.name == *TOPIC) else { return };
    let mut session = Session::new(&run);
    for partition in 0..topic.partitions.get() {
        while session.fetch_committed(&group, &topic, partition).await.is_err() {
            session.forget_coordinators();
            sleep(PAUSE).await;
        }
    }
}

pub async fn find_topic(run: &Run) -> Option<Rc<Topic>> {
    while !run.stopping.get() {
        let found = run.topics.borrow().iter().find(|topic| *topic.name == *TOPIC).cloned();
        if found.is_some() {
            return found;
        }
        sleep(PAUSE).await;
    }
    None
}

impl Member {
    /// Puts right what went wrong, or lets the world see that it cannot be.
    async fn recover(&mut self, turn: Result<(), Trouble>) {
        match turn {
            Ok(()) => return sleep(Duration::from_millis(below(80))).await,
            Err(Trouble::Lost) => self.session.forget_coordinators(),
            Err(Trouble::Code(error)) => match error {
                ErrorCode::REBALANCE_IN_PROGRESS | ErrorCode::ILLEGAL_GENERATION => {
                    self.joined = None;
                }
                ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::FENCED_INSTANCE_ID => self.forget(),
                error if error.retriable() => self.session.forget_coordinators(),
                error => {
                    let (run, group) = (&self.session.run, &self.group);
                    run.find(format!("a member of {group} was answered {}", error.name()));
                    self.forget();
                }
            },
        }
        sleep(PAUSE).await;
    }

    fn forget(&mut self) {
        self.id = Str::EMPTY;
        self.joined = None;
    }

    async fn take_turn(&mut self) -> Result<(), Trouble> {
        if self.joined.is_none() {
            return self.join().await;
        }
        match below(24) {
            0 => self.leave().await,
            1 => {
                self.session.run.reach("group: a member fell silent");
                sleep(Duration::from_millis(below(4000))).await;
                Ok(())
            }
            2 => {
                // It starts anew: a static member takes its old place, another one a new place.
                self.predecessor = Some(std::mem::take(&mut self.id));
                self.joined = None;
                self.session.forget_coordinators();
                Ok(())
            }
            3..=4 => self.commit_outdated().await,
            5..=9 => self.fetch().await,
            10..=16 => self.commit().await,
            _ => self.beat().await,
        }
    }

    /// Joins if need be, commits once more and leaves.
    async fn finish(&mut self) -> Result<(), Trouble> {
        while self.joined.is_none() {
            self.join().await?;
        }
        self.commit().await?;
        self.leave().await
    }

    async fn coordinator(&mut self) -> Result<Rc<Client>, Trouble> {
        let group = self.group.clone();
        self.session.coordinator(&group).await
    }

    async fn join(&mut self) -> Result<(), Trouble> {
        let request = JoinGroupRequest {
            group_id: self.group.clone(),
            session_timeout_ms: 1000 + below(2000) as i32,
            rebalance_timeout_ms: REBALANCE_TIMEOUT_MS,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            protocol_type: CONSUMER,
            protocols: vec![JoinGroupRequestProtocol { name: PROTOCOL, ..Default::default() }],
            reason: None,
        };
        let node = self.coordinator().await?;
        let version = 5 + below(5) as i16;
        let answer: JoinGroupResponse = node.call(&request, version, JOIN_TIMEOUT).await?;
        if answer.error_code == ErrorCode::MEMBER_ID_REQUIRED {
            self.id = answer.member_id;
            return Ok(());
        }
        refused(answer.error_code)?;
        self.id = answer.member_id.clone();
        self.sync(&node, &answer).await
    }

    async fn sync(&mut self, node: &Client, answer: &JoinGroupResponse) -> Result<(), Trouble> {
        let request = SyncGroupRequest {
            group_id: self.group.clone(),
            generation_id: answer.generation_id,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            protocol_type: Some(CONSUMER),
            protocol_name: Some(PROTOCOL),
            assignments: if answer.skip_assignment { Vec::new() } else { self.assign(answer) },
        };
        let version = 3 + below(3) as i16;
        let synced: SyncGroupResponse = node.call(&request, version, JOIN_TIMEOUT).await?;
        refused(synced.error_code)?;
        let partitions: Vec<i32> = synced.assignment.iter().map(|&byte| i32::from(byte)).collect();
        let run = &self.session.run;
        run.history.borrow_mut().owned.push(Owned {
            group: self.group.clone(),
            generation: answer.generation_id,
            topic: self.topic.id,
            owner: self.instance.clone().unwrap_or_else(|| self.id.clone()),
            partitions: partitions.clone(),
        });
        run.reach("group: synced");
        self.joined = Some(Joined { generation: answer.generation_id, partitions });
        Ok(())
    }

    /// As the leader: the partitions in turn to each member. Followers have no members to assign.
    fn assign(&self, answer: &JoinGroupResponse) -> Vec<SyncGroupRequestAssignment> {
        let count = answer.members.len();
        let mut assignments = Vec::with_capacity(count);
        for (index, member) in answer.members.iter().enumerate() {
            let all = 0..self.topic.partitions.get();
            let partitions: Vec<i32> = all.skip(index).step_by(count).collect();
            let owner = member.group_instance_id.as_ref().unwrap_or(&member.member_id);
            self.session.run.history.borrow_mut().shares.push(Share {
                group: self.group.clone(),
                generation: answer.generation_id,
                owner: owner.clone(),
                partitions: partitions.clone(),
            });
            assignments.push(SyncGroupRequestAssignment {
                member_id: member.member_id.clone(),
                assignment: partitions.iter().map(|&it| it as u8).collect::<Vec<u8>>().into(),
            });
        }
        assignments
    }

    async fn beat(&mut self) -> Result<(), Trouble> {
        let request = HeartbeatRequest {
            group_id: self.group.clone(),
            generation_id: self.generation(),
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
        };
        let node = self.coordinator().await?;
        let version = 3 + below(2) as i16;
        let answer: HeartbeatResponse = node.call(&request, version, TIMEOUT).await?;
        refused(answer.error_code)
    }

    async fn leave(&mut self) -> Result<(), Trouble> {
        let identity = MemberIdentity {
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            reason: None,
        };
        let request = LeaveGroupRequest {
            group_id: self.group.clone(),
            members: vec![identity],
            ..LeaveGroupRequest::default()
        };
        let node = self.coordinator().await?;
        let version = 3 + below(3) as i16;
        let answer: Result<LeaveGroupResponse, Lost> = node.call(&request, version, TIMEOUT).await;
        self.forget();
        refused(answer?.error_code)
    }

    fn generation(&self) -> i32 {
        self.joined.as_ref().map_or(-1, |joined| joined.generation)
    }

    /// One of its partitions, if it has any.
    fn any_partition(&self) -> Option<i32> {
        let partitions = &self.joined.as_ref()?.partitions;
        partitions.get(below(partitions.len() as u64) as usize).copied()
    }

    fn itself(&self) -> CommitAs {
        CommitAs {
            generation: self.generation(),
            member: self.id.clone(),
            instance: self.instance.clone(),
            ..CommitAs::nobody()
        }
    }

    async fn commit(&mut self) -> Result<(), Trouble> {
        let Some(partition) = self.any_partition() else { return self.beat().await };
        let who = self.itself();
        self.session.commit(&self.group, &self.topic, partition, &who).await
    }

    /// In the name of a generation that is over, or of the member whose place this one took.
    async fn commit_outdated(&mut self) -> Result<(), Trouble> {
        let mut who = CommitAs { outdated: true, ..self.itself() };
        match &self.predecessor {
            Some(before) if self.instance.is_some() && one_in(2) => who.member = before.clone(),
            _ => who.generation -= 1 + below(2) as i32,
        }
        if who.generation < 1 || who.member.is_empty() {
            return Ok(());
        }
        let partition = self.any_partition().unwrap_or(0);
        match self.session.commit(&self.group, &self.topic, partition, &who).await {
            Err(Trouble::Code(ErrorCode::ILLEGAL_GENERATION | ErrorCode::FENCED_INSTANCE_ID)) => {
                self.session.run.reach("group: an outdated commit refused");
                Ok(())
            }
            other => other,
        }
    }

    async fn fetch(&mut self) -> Result<(), Trouble> {
        let partition = below(self.topic.partitions.get() as u64) as i32;
        self.session.fetch_committed(&self.group, &self.topic, partition).await.map(drop)
    }
}
