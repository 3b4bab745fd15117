//! Groups of the classic protocol and what they commit.

use bytes::Bytes;
use protocol::messages::find_coordinator::FindCoordinatorRequest;
use protocol::messages::heartbeat::HeartbeatRequest;
use protocol::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use protocol::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};
use protocol::{ErrorCode, Str};

use crate::broker::Broker;
use crate::scenario::{Topic, new_name, wait_until};
use crate::wire::Connection;

/// Kafka protocol behaviour 67: asking makes the internal topic, both nodes name the same one, and
/// the other says that it is not the coordinator.
#[test]
fn one_node_coordinates_a_group() {
    let broker = Broker::shared();
    let group = new_name("group");
    let slot = coordinator_slot(broker, &group);
    let request = FindCoordinatorRequest {
        coordinator_keys: vec![group.clone(), group.clone()],
        ..FindCoordinatorRequest::default()
    };
    let answer = broker.connect(1).ask(4, &request);
    assert_eq!(answer.coordinators.len(), 2);
    assert!(answer.coordinators.iter().all(|it| it.error_code == ErrorCode::NONE));
    let topic = Topic::new(broker, "commits");
    let mut stranger = broker.connect(1 - slot);
    let refused = commit(&mut stranger, &group, ("", -1), (&topic, 3));
    assert_eq!(refused, ErrorCode::NOT_COORDINATOR);
}

/// Kafka protocol behaviours 60 to 62: an id first, then a generation, and mistakes by name.
#[test]
fn a_member_joins_with_the_id_it_was_given() {
    let broker = Broker::shared();
    let group = new_name("group");
    let mut connection = coordinator(broker, &group);
    let told = join(&mut connection, &group, "");
    assert_eq!(told.error_code, ErrorCode::MEMBER_ID_REQUIRED);
    let (member, generation) = become_stable(&mut connection, &group, &told.member_id);
    let beat = |connection: &mut Connection, member: &Str, generation_id| {
        let request = HeartbeatRequest {
            group_id: group.clone(),
            generation_id,
            member_id: member.clone(),
            group_instance_id: None,
        };
        connection.ask(4, &request).error_code
    };
    assert_eq!(beat(&mut connection, &member, generation), ErrorCode::NONE);
    assert_eq!(beat(&mut connection, &member, generation + 1), ErrorCode::ILLEGAL_GENERATION);
    let nobody = Str::from_static("nobody");
    assert_eq!(beat(&mut connection, &nobody, generation), ErrorCode::UNKNOWN_MEMBER_ID);
}

/// Kafka protocol behaviours 64 and 65, and what this broker promises of commits: one that was
/// acknowledged is there after a kill, and so is the group.
#[test]
fn an_acknowledged_commit_survives_a_kill() {
    let mut broker = Broker::start_with(&["group.initial.rebalance.delay.ms=0"]);
    let topic = Topic::new(&broker, "commits");
    let group = new_name("group");
    let mut connection = coordinator(&broker, &group);
    let told = join(&mut connection, &group, "");
    let (member, generation) = become_stable(&mut connection, &group, &told.member_id);
    let simple = commit(&mut connection, &group, ("", -1), (&topic, 1));
    assert_eq!(simple, ErrorCode::UNKNOWN_MEMBER_ID);
    for offset in 1..=50 {
        let error = commit(&mut connection, &group, (&member, generation), (&topic, offset));
        assert_eq!(error, ErrorCode::NONE);
    }
    broker.restart_after_kill();
    let mut connection = coordinator(&broker, &group);
    let mut committed = None;
    wait_until("the group is loaded", || {
        committed = fetch(&mut connection, &group, &topic);
        committed.is_some()
    });
    assert_eq!(committed, Some(50));
    let error = commit(&mut connection, &group, (&member, generation), (&topic, 51));
    assert_eq!(error, ErrorCode::NONE);
    let error = commit(&mut connection, &group, (&member, generation - 1), (&topic, 9));
    assert_eq!(error, ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(fetch(&mut connection, &group, &topic), Some(51));
}

fn coordinator_slot(broker: &Broker, group: &Str) -> u16 {
    let request = FindCoordinatorRequest { key: group.clone(), ..Default::default() };
    let mut node = -1_i32;
    wait_until("there is a coordinator", || {
        let answer = broker.connect(0).ask(3, &request);
        node = answer.node_id;
        answer.error_code == ErrorCode::NONE
    });
    (node % 1000) as u16
}

pub fn coordinator(broker: &Broker, group: &Str) -> Connection {
    broker.connect(coordinator_slot(broker, group))
}

fn join(connection: &mut Connection, group: &Str, member: &str) -> JoinGroupResponse {
    let request = JoinGroupRequest {
        group_id: group.clone(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: Str::from(member.to_owned()),
        protocol_type: Str::from_static("consumer"),
        protocols: vec![JoinGroupRequestProtocol {
            name: Str::from_static("range"),
            metadata: Bytes::new(),
        }],
        ..JoinGroupRequest::default()
    };
    let mut answer = JoinGroupResponse::default();
    wait_until("the group is loaded", || {
        answer = connection.ask(7, &request);
        answer.error_code != ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
    });
    answer
}

fn become_stable(connection: &mut Connection, group: &Str, member: &str) -> (Str, i32) {
    let joined = join(connection, group, member);
    assert_eq!(joined.error_code, ErrorCode::NONE);
    let share = Bytes::from_static(b"share");
    let request = SyncGroupRequest {
        group_id: group.clone(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: joined.member_id.clone(),
            assignment: share.clone(),
        }],
        ..SyncGroupRequest::default()
    };
    let synced = connection.ask(3, &request);
    assert_eq!((synced.error_code, synced.assignment), (ErrorCode::NONE, share));
    (joined.member_id, joined.generation_id)
}

pub fn commit(
    connection: &mut Connection,
    group: &Str,
    (member, generation): (&str, i32),
    (topic, offset): (&Topic, i64),
) -> ErrorCode {
    let request = OffsetCommitRequest {
        group_id: group.clone(),
        generation_id_or_member_epoch: generation,
        member_id: Str::from(member.to_owned()),
        topics: vec![OffsetCommitRequestTopic {
            name: topic.name.clone(),
            partitions: vec![OffsetCommitRequestPartition {
                committed_offset: offset,
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    };
    let mut error = ErrorCode::NONE;
    wait_until("the group is loaded", || {
        error = connection.ask(8, &request).topics[0].partitions[0].error_code;
        error != ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
    });
    error
}

fn fetch(connection: &mut Connection, group: &Str, topic: &Topic) -> Option<i64> {
    let request = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.clone(),
            topics: Some(vec![OffsetFetchRequestTopics {
                name: topic.name.clone(),
                partition_indexes: vec![0],
                ..OffsetFetchRequestTopics::default()
            }]),
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    };
    let group = connection.ask(8, &request).groups.remove(0);
    if group.error_code == ErrorCode::COORDINATOR_LOAD_IN_PROGRESS {
        return None;
    }
    assert_eq!(group.error_code, ErrorCode::NONE);
    Some(group.topics[0].partitions[0].committed_offset)
}
