//! Groups of the consumer protocol: members that keep to their heartbeats, fall silent, leave and
//! come back, some of them static; each reads what it is given and commits how far it has come.
//!
//! Law: a member gives a partition up the moment it hears so, and says in its next heartbeat what
//! it has. The last member of a group leaves only when all partitions were its own and read to
//! their ends, after everybody who could write has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use protocol::messages::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions,
};
use protocol::{ErrorCode, Str};
use runtime::time::{random_u64, sleep};

use super::committing::find_topic;
use super::coordinating::{CommitAs, Trouble, refused};
use super::history::{Consumed, EARLIEST, Owned};
use super::run::{PAUSE, Run, Session, TIMEOUT, Topic, below, one_in};

const REBALANCE_TIMEOUT_MS: i32 = 2000;
const LEAVES: i32 = -1;
const LEAVES_FOR_A_WHILE: i32 = -2;

/// What came of a step towards the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    None,
    Some,
}

struct Consumer {
    session: Session,
    topic: Rc<Topic>,
    group: Str,
    instance: Option<Str>,
    /// Of the heartbeat: before 1, the broker makes the member's id.
    version: i16,
    id: Str,
    /// 0 while it is no member.
    epoch: i32,
    owned: Vec<i32>,
    /// Where it goes on to read, of those of its partitions of which it has asked already.
    positions: BTreeMap<i32, i64>,
    /// Partitions of which it has seen the last end.
    finished: BTreeSet<i32>,
    /// An id under which it has left, and the epoch that it had.
    former: Option<(Str, i32)>,
}

/// Takes part in a group until the run stops, and then until everything is read.
pub async fn consume(run: Rc<Run>, group: Str, number: u64) {
    let Some(topic) = find_topic(&run).await else { return };
    *run.consuming.borrow_mut().entry(group.clone()).or_default() += 1;
    let mut member = Consumer {
        session: Session::new(&run),
        topic,
        group,
        instance: one_in(3).then(|| Str::from(format!("place-{number}"))),
        version: below(2) as i16,
        id: Str::EMPTY,
        epoch: 0,
        owned: Vec::new(),
        positions: BTreeMap::new(),
        finished: BTreeSet::new(),
        former: None,
    };
    member.begin_anew();
    while !run.stopping.get() {
        let turn = member.take_turn().await;
        member.recover(turn).await;
    }
    if member.others_stay() {
        // Whether the broker hears of it or has to notice.
        let _ = member.leave(LEAVES).await;
        return;
    }
    run.lingering.set(run.lingering.get() + 1);
    while run.active.get() > run.lingering.get() {
        let turn = member.beat().await;
        member.recover(turn).await;
    }
    while let Some(turn) = member.read_everything().await {
        if turn != Ok(Progress::Some) {
            member.recover(turn.map(drop)).await;
        }
    }
    let _ = member.leave(LEAVES).await;
    run.lingering.set(run.lingering.get() - 1);
    run.reach("consumer group: read to the end");
}

impl Consumer {
    /// Leaves the count of members; false for the last one.
    fn others_stay(&self) -> bool {
        let mut consuming = self.session.run.consuming.borrow_mut();
        let members = consuming.entry(self.group.clone()).or_default();
        *members -= 1;
        *members > 0
    }

    fn begin_anew(&mut self) {
        self.id = match self.version {
            0 => Str::EMPTY,
            _ => Str::from(format!("member-{:016x}", random_u64())),
        };
        self.join_again();
    }

    /// As the same member.
    fn join_again(&mut self) {
        self.epoch = 0;
        self.owned.clear();
        self.positions.clear();
    }

    async fn recover(&mut self, turn: Result<(), Trouble>) {
        match turn {
            Ok(()) => return sleep(Duration::from_millis(below(80))).await,
            Err(Trouble::Lost) => self.session.forget_coordinators(),
            Err(Trouble::Code(error)) => match error {
                ErrorCode::FENCED_MEMBER_EPOCH | ErrorCode::UNKNOWN_MEMBER_ID => {
                    self.session.run.reach("consumer group: fenced");
                    self.join_again();
                }
                ErrorCode::FENCED_INSTANCE_ID => self.begin_anew(),
                // Its predecessor is not given up yet; or the next heartbeat tells the new epoch.
                ErrorCode::UNRELEASED_INSTANCE_ID | ErrorCode::STALE_MEMBER_EPOCH => {}
                error if error.retriable() => self.session.forget_coordinators(),
                error => {
                    let (run, group) = (&self.session.run, &self.group);
                    run.find(format!("a member of {group} was answered {}", error.name()));
                    self.begin_anew();
                }
            },
        }
        sleep(PAUSE).await;
    }

    async fn take_turn(&mut self) -> Result<(), Trouble> {
        if self.epoch == 0 {
            return self.beat().await;
        }
        match below(24) {
            0 => {
                let is_static = self.instance.is_some() && one_in(2);
                self.leave(if is_static { LEAVES_FOR_A_WHILE } else { LEAVES }).await
            }
            1 => {
                self.session.run.reach("consumer group: a member fell silent");
                sleep(Duration::from_millis(below(4000))).await;
                Ok(())
            }
            2 => {
                // It dies without a word.
                self.begin_anew();
                self.session.forget_coordinators();
                Ok(())
            }
            3 => self.commit_as_who_has_left().await,
            4..=12 => match self.any_partition() {
                Some(partition) => self.read_on(partition).await.map(drop),
                None => self.beat().await,
            },
            _ => self.beat().await,
        }
    }

    fn any_partition(&self) -> Option<i32> {
        self.owned.get(below(self.owned.len() as u64) as usize).copied()
    }

    async fn heartbeat(&mut self, epoch: i32) -> Result<ConsumerGroupHeartbeatResponse, Trouble> {
        let owned = TopicPartitions { topic_id: self.topic.id, partitions: self.owned.clone() };
        let owned = if self.owned.is_empty() { Vec::new() } else { vec![owned] };
        let request = ConsumerGroupHeartbeatRequest {
            group_id: self.group.clone(),
            member_id: self.id.clone(),
            member_epoch: epoch,
            instance_id: self.instance.clone(),
            rebalance_timeout_ms: REBALANCE_TIMEOUT_MS,
            subscribed_topic_names: Some(vec![self.topic.name.clone()]),
            topic_partitions: Some(owned),
            ..ConsumerGroupHeartbeatRequest::default()
        };
        let group = self.group.clone();
        let node = self.session.coordinator(&group).await?;
        Ok(node.call(&request, self.version, TIMEOUT).await?)
    }

    /// Says what it has and hears what it shall have.
    async fn beat(&mut self) -> Result<(), Trouble> {
        let answer = self.heartbeat(self.epoch).await?;
        refused(answer.error_code)?;
        if let Some(id) = answer.member_id {
            self.id = id.detach();
        }
        let is_new = answer.assignment.is_some() || self.epoch != answer.member_epoch;
        self.epoch = answer.member_epoch;
        if let Some(assignment) = answer.assignment {
            let given = assignment.topic_partitions.iter();
            let given = given.filter(|it| it.topic_id == self.topic.id);
            self.owned = given.flat_map(|it| it.partitions.iter().copied()).collect();
            let owned = &self.owned;
            self.positions.retain(|partition, _| owned.contains(partition));
        }
        let run = &self.session.run;
        if is_new {
            run.reach("consumer group: reconciled");
            run.history.borrow_mut().held.push(Owned {
                group: self.group.clone(),
                generation: self.epoch,
                topic: self.topic.id,
                owner: self.instance.clone().unwrap_or_else(|| self.id.clone()),
                partitions: self.owned.clone(),
            });
        }
        Ok(())
    }

    async fn leave(&mut self, how: i32) -> Result<(), Trouble> {
        let left = (self.id.clone(), self.epoch);
        let answer = self.heartbeat(how).await;
        self.begin_anew();
        refused(answer?.error_code)?;
        if how == LEAVES {
            self.former = Some(left);
        }
        Ok(())
    }

    async fn commit(&mut self, partition: i32, position: i64) -> Result<(), Trouble> {
        let who = CommitAs {
            generation: self.epoch,
            member: self.id.clone(),
            instance: self.instance.clone(),
            version_min: FIRST_VERSION_WITH_MEMBER_EPOCHS,
            metadata: Str::from(position.to_string()),
            outdated: false,
        };
        self.session.commit(&self.group, &self.topic, partition, &who).await
    }

    /// In the name of a member that has left, and had this epoch.
    async fn commit_as_who_has_left(&mut self) -> Result<(), Trouble> {
        let Some((member, generation)) = self.former.clone().filter(|it| it.1 > 0) else {
            return Ok(());
        };
        let who = CommitAs {
            generation,
            member,
            version_min: FIRST_VERSION_WITH_MEMBER_EPOCHS,
            outdated: true,
            ..CommitAs::nobody()
        };
        match self.session.commit(&self.group, &self.topic, 0, &who).await {
            Err(Trouble::Code(ErrorCode::UNKNOWN_MEMBER_ID)) => {
                self.session.run.reach("consumer group: an outdated commit refused");
                Ok(())
            }
            other => other,
        }
    }

    /// Reads once from where the group has come to, and commits. False at the end.
    async fn read_on(&mut self, partition: i32) -> Result<bool, Trouble> {
        let position = match self.positions.get(&partition) {
            Some(&position) => position,
            None => {
                let (group, topic) = (self.group.clone(), self.topic.clone());
                let known = self.session.fetch_committed(&group, &topic, partition).await?;
                known.and_then(|(_, position)| position.parse().ok()).unwrap_or(0)
            }
        };
        self.positions.remove(&partition);
        let topic = self.topic.clone();
        let fetched = self.session.fetch(&topic, partition, position).await?;
        if fetched.error == ErrorCode::OFFSET_OUT_OF_RANGE {
            // Deleted meanwhile, or lost with the power.
            let first = self.session.list_offsets(&topic, partition, EARLIEST).await?;
            refused(first.error)?;
            self.positions.insert(partition, first.offset);
            return Ok(true);
        }
        refused(fetched.error)?;
        let Some((_, last)) = fetched.records().last() else {
            self.positions.insert(partition, position);
            return Ok(position < fetched.high_watermark);
        };
        let next = (last.offset + 1).max(position);
        self.session.run.history.borrow_mut().consumed.push(Consumed {
            group: self.group.clone(),
            key: topic.key(partition),
            values: fetched.records().map(|(_, record)| record.value).collect(),
        });
        self.commit(partition, next).await?;
        self.positions.insert(partition, next);
        Ok(true)
    }

    /// One step of the last member; none when nothing is left to do.
    async fn read_everything(&mut self) -> Option<Result<Progress, Trouble>> {
        if let Err(trouble) = self.beat().await {
            return Some(Err(trouble));
        }
        // There may be more than are known of: the answer to who made them was lost.
        let all = (0..self.topic.partitions.get()).all(|it| self.owned.contains(&it));
        for partition in self.owned.clone() {
            if self.finished.contains(&partition) {
                continue;
            }
            match self.read_on(partition).await {
                // Nobody writes any more.
                Ok(false) => {
                    self.finished.insert(partition);
                }
                Ok(true) => return Some(Ok(Progress::Some)),
                Err(trouble) => return Some(Err(trouble)),
            }
        }
        (!all).then_some(Ok(Progress::None))
    }
}

const FIRST_VERSION_WITH_MEMBER_EPOCHS: i16 = 9;
