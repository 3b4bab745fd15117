//! Groups of the consumer protocol (KIP-848).

use protocol::messages::consumer_group_describe::ConsumerGroupDescribeRequest;
use protocol::messages::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions,
};
use protocol::messages::describe_groups::DescribeGroupsRequest;
use protocol::{ErrorCode, Str, Uuid};

use crate::broker::Broker;
use crate::groups::{commit, committed, coordinator};
use crate::scenario::{Topic, new_name, wait_until};
use crate::wire::Connection;

/// A member that keeps to what it is told.
struct Member {
    group: Str,
    id: Str,
    topic: Str,
    epoch: i32,
    owned: Vec<(Uuid, i32)>,
}

impl Member {
    fn of(group: &Str, topic: &Topic) -> Member {
        let (group, topic) = (group.clone(), topic.name.clone());
        Member { group, id: new_name("member"), topic, epoch: 0, owned: Vec::new() }
    }

    fn request(&self) -> ConsumerGroupHeartbeatRequest {
        let joins = self.epoch == 0;
        let owned = self
            .owned
            .iter()
            .map(|&(topic_id, index)| TopicPartitions { topic_id, partitions: vec![index] });
        ConsumerGroupHeartbeatRequest {
            group_id: self.group.clone(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            rebalance_timeout_ms: if joins { 30_000 } else { -1 },
            subscribed_topic_names: joins.then(|| vec![self.topic.clone()]),
            topic_partitions: Some(owned.collect()),
            ..ConsumerGroupHeartbeatRequest::default()
        }
    }

    fn beat(&mut self, connection: &mut Connection) -> ConsumerGroupHeartbeatResponse {
        let mut answer = ConsumerGroupHeartbeatResponse::default();
        wait_until("the group is loaded", || {
            answer = connection.ask(1, &self.request());
            answer.error_code != ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
        });
        if !answer.error_code.is_error() {
            self.epoch = answer.member_epoch;
            if let Some(assignment) = &answer.assignment {
                let each = assignment.topic_partitions.iter();
                self.owned = each
                    .flat_map(|it| it.partitions.iter().map(|&index| (it.topic_id, index)))
                    .collect();
            }
        }
        answer
    }
}

/// Kafka protocol behaviour 72: the first join is answered with epoch 2 and all partitions; who
/// knows another epoch is fenced, and its commits come too late.
#[test]
fn a_member_is_known_by_its_epoch() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "shared");
    let group = new_name("group");
    let mut connection = coordinator(broker, &group);
    let mut member = Member::of(&group, &topic);
    let joined = member.beat(&mut connection);
    assert_eq!((joined.error_code, member.epoch), (ErrorCode::NONE, 2));
    assert_eq!(member.owned.len(), 2);
    assert_eq!(member.beat(&mut connection).assignment, None);
    let ahead = ConsumerGroupHeartbeatRequest { member_epoch: 9, ..member.request() };
    assert_eq!(connection.ask(1, &ahead).error_code, ErrorCode::FENCED_MEMBER_EPOCH);
    let id = member.id.as_str();
    for (epoch, expected) in [
        (2, ErrorCode::NONE),
        (1, ErrorCode::STALE_MEMBER_EPOCH),
        (3, ErrorCode::STALE_MEMBER_EPOCH),
    ] {
        let error = commit(&mut connection, &group, (id, epoch), (&topic, 5));
        assert_eq!(error, expected, "epoch {epoch}");
    }
    let unnamed = ConsumerGroupHeartbeatRequest { member_id: Str::EMPTY, ..member.request() };
    assert_eq!(connection.ask(1, &unnamed).error_code, ErrorCode::INVALID_REQUEST);
    let leaving = ConsumerGroupHeartbeatRequest { member_epoch: -1, ..member.request() };
    assert_eq!(connection.ask(1, &leaving).error_code, ErrorCode::NONE);
    assert_eq!(member.beat(&mut connection).error_code, ErrorCode::UNKNOWN_MEMBER_ID);
}

/// A kill takes nothing away: members go on at their epochs with what they own, and what they
/// committed is there.
#[test]
fn a_consumer_group_survives_a_kill() {
    let mut broker = Broker::start_with(&["group.consumer.assignment.interval.ms=0"]);
    let topic = Topic::on_both_slots(&broker, "kept");
    let group = new_name("group");
    let mut connection = coordinator(&broker, &group);
    let mut members = [Member::of(&group, &topic), Member::of(&group, &topic)];
    settle(&mut connection, &mut members);
    let (id, epoch) = (members[0].id.clone(), members[0].epoch);
    let error = commit(&mut connection, &group, (&id, epoch), (&topic, 7));
    assert_eq!(error, ErrorCode::NONE);
    broker.restart_after_kill();
    let mut connection = coordinator(&broker, &group);
    for member in &mut members {
        let before = (member.epoch, member.owned.clone());
        let answer = member.beat(&mut connection);
        assert_eq!((answer.error_code, answer.assignment), (ErrorCode::NONE, None));
        assert_eq!((member.epoch, member.owned.clone()), before);
    }
    assert_eq!(committed(&mut connection, &group, &topic), Some(7));
    let request = ConsumerGroupDescribeRequest {
        group_ids: vec![group.clone()],
        ..ConsumerGroupDescribeRequest::default()
    };
    let shown = connection.ask(1, &request).groups.remove(0);
    assert_eq!((shown.group_state.as_str(), shown.members.len()), ("Stable", 2));
    assert!(shown.members.iter().all(|it| it.assignment == it.target_assignment));
}

fn settle(connection: &mut Connection, members: &mut [Member; 2]) {
    wait_until("both own a partition", || {
        for member in members.iter_mut() {
            assert_eq!(member.beat(connection).error_code, ErrorCode::NONE);
        }
        members.iter().all(|it| it.owned.len() == 1)
    });
    assert_ne!(members[0].owned, members[1].owned);
}

/// Kafka protocol behaviour 68: what is no classic group is missing from version 6 on, and dead
/// before.
#[test]
fn missing_groups_are_dead_or_said_to_be_missing() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "described");
    let group = new_name("group");
    let mut connection = coordinator(broker, &group);
    let request =
        DescribeGroupsRequest { groups: vec![group.clone()], ..DescribeGroupsRequest::default() };
    let check = |connection: &mut Connection| {
        let old = connection.ask(5, &request).groups.remove(0);
        assert_eq!((old.error_code, old.group_state.as_str()), (ErrorCode::NONE, "Dead"));
        let new = connection.ask(6, &request).groups.remove(0);
        assert_eq!(new.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
        assert_eq!(new.group_state.as_str(), "Dead");
        assert!(new.error_message.is_some());
    };
    check(&mut connection);
    let mut member = Member::of(&group, &topic);
    assert_eq!(member.beat(&mut connection).error_code, ErrorCode::NONE);
    check(&mut connection);
}
