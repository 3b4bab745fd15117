//! Groups of the classic protocol and what they commit.

use bytes::Bytes;
use protocol::consumer_protocol::Subscription;
use protocol::messages::delete_groups::DeleteGroupsRequest;
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
    assert_eq!(committed(&mut connection, &group, &topic), Some(50));
    let error = commit(&mut connection, &group, (&member, generation), (&topic, 51));
    assert_eq!(error, ErrorCode::NONE);
    let error = commit(&mut connection, &group, (&member, generation - 1), (&topic, 9));
    assert_eq!(error, ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(committed(&mut connection, &group, &topic), Some(51));
}

/// Kafka protocol behaviour 63: a static member that comes back without an id keeps its share and
/// the generation; its predecessor is fenced.
#[test]
fn a_static_member_keeps_its_place() {
    let broker = Broker::start_with(&["group.initial.rebalance.delay.ms=0"]);
    let group = new_name("group");
    let mut connection = coordinator(&broker, &group);
    let request = JoinGroupRequest {
        group_instance_id: Some(Str::from_static("instance")),
        ..joining(&group, "")
    };
    let first = join_as(&mut connection, &request);
    assert_eq!((first.error_code, first.generation_id), (ErrorCode::NONE, 1));
    let sync = |connection: &mut Connection, joined: &JoinGroupResponse, shares: Vec<_>| {
        let request = SyncGroupRequest {
            group_id: group.clone(),
            generation_id: joined.generation_id,
            member_id: joined.member_id.clone(),
            group_instance_id: Some(Str::from_static("instance")),
            assignments: shares,
            ..SyncGroupRequest::default()
        };
        connection.ask(3, &request)
    };
    let share = SyncGroupRequestAssignment {
        member_id: first.member_id.clone(),
        assignment: Bytes::from_static(b"share"),
    };
    assert_eq!(sync(&mut connection, &first, vec![share]).assignment, "share");
    let second = connection.ask(9, &request);
    assert_eq!((second.error_code, second.generation_id), (ErrorCode::NONE, 1));
    assert!(second.member_id != first.member_id && second.skip_assignment);
    assert_eq!(sync(&mut connection, &second, Vec::new()).assignment, "share");
    let old = sync(&mut connection, &first, Vec::new());
    assert_eq!(old.error_code, ErrorCode::FENCED_INSTANCE_ID);
}

/// Kafka protocol behaviour 66: offsets whose time is over go, unless a member subscribes to their
/// topic.
#[test]
fn offsets_expire_unless_they_are_used() {
    let broker = Broker::start_with(&[
        "group.initial.rebalance.delay.ms=0",
        "offsets.retention.check.interval.ms=20",
    ]);
    let (used, unused) = (Topic::new(&broker, "used"), Topic::new(&broker, "unused"));
    let group = new_name("group");
    let mut connection = coordinator(&broker, &group);
    let subscription = Subscription { topics: vec![used.name.clone()], ..Default::default() };
    let mut request = joining(&group, "");
    request.protocols[0].metadata = subscription.encode(0);
    request.member_id = join_as(&mut connection, &request).member_id;
    let joined = join_as(&mut connection, &request);
    let sync = SyncGroupRequest {
        group_id: group.clone(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..SyncGroupRequest::default()
    };
    assert_eq!(connection.ask(3, &sync).error_code, ErrorCode::NONE);
    for topic in [&used, &unused] {
        let mut request = committing(&group, (&joined.member_id, 1), (topic, 5));
        request.retention_time_ms = 1;
        let answer = connection.ask(4, &request);
        assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);
    }
    wait_until("the unused one is gone", || committed(&mut connection, &group, &unused).is_none());
    assert_eq!(committed(&mut connection, &group, &used), Some(5));
}

/// A client that leaves while its join waits for others is let go at once.
#[test]
fn a_waiting_join_does_not_hold_the_connection_of_who_left() {
    let broker = Broker::start_with(&["group.initial.rebalance.delay.ms=300000"]);
    let group = new_name("group");
    let slot = coordinator_slot(&broker, &group);
    let mut connection = broker.connect(slot);
    let mut request = joining(&group, "");
    request.member_id = join_as(&mut connection, &request).member_id;
    let open = || broker.metric("coretide_connections", slot);
    connection.send(7, &request);
    wait_until("it is open", || open() >= 1.0);
    let before = open();
    drop(connection);
    wait_until("it is let go", || open() < before);
}

pub fn coordinator_slot(broker: &Broker, group: &Str) -> u16 {
    let request = FindCoordinatorRequest { key: group.clone(), ..Default::default() };
    let mut node = -1_i32;
    wait_until("there is a coordinator", || {
        let answer = broker.connect(0).ask(3, &request);
        node = answer.node_id;
        answer.error_code == ErrorCode::NONE
    });
    (node % 1000) as u16
}

/// The id and generation of the only member of a new group.
pub fn member_of(broker: &Broker, group: &Str) -> (Str, i32) {
    let mut connection = coordinator(broker, group);
    let told = join(&mut connection, group, "");
    become_stable(&mut connection, group, &told.member_id)
}

pub fn coordinator(broker: &Broker, group: &Str) -> Connection {
    broker.connect(coordinator_slot(broker, group))
}

fn joining(group: &Str, member: &str) -> JoinGroupRequest {
    JoinGroupRequest {
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
    }
}

fn join(connection: &mut Connection, group: &Str, member: &str) -> JoinGroupResponse {
    join_as(connection, &joining(group, member))
}

fn join_as(connection: &mut Connection, request: &JoinGroupRequest) -> JoinGroupResponse {
    let mut answer = JoinGroupResponse::default();
    wait_until("the group is loaded", || {
        answer = connection.ask(7, request);
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

fn committing(
    group: &Str,
    (member, generation): (&str, i32),
    (topic, offset): (&Topic, i64),
) -> OffsetCommitRequest {
    OffsetCommitRequest {
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
    }
}

/// In the version that all members may use.
pub fn commit(
    connection: &mut Connection,
    group: &Str,
    member: (&str, i32),
    offset: (&Topic, i64),
) -> ErrorCode {
    let request = committing(group, member, offset);
    let mut error = ErrorCode::NONE;
    wait_until("the group is loaded", || {
        error = connection.ask(9, &request).topics[0].partitions[0].error_code;
        error != ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
    });
    error
}

/// What was committed for a topic goes with it, and a topic of the same name begins without; so
/// does a group that was deleted.
#[test]
fn offsets_go_with_their_topic_and_with_their_group() {
    let broker = Broker::shared();
    let (group, topic, stays) =
        (new_name("group"), Topic::new(broker, "goes"), Topic::new(broker, "stays"));
    let mut connection = coordinator(broker, &group);
    for each in [&topic, &stays] {
        assert_eq!(commit(&mut connection, &group, ("", -1), (each, 5)), ErrorCode::NONE);
    }
    topic.delete(broker);
    wait_until("the offset goes", || committed(&mut connection, &group, &topic).is_none());
    let again = Topic::create(broker, topic.name.clone(), 1, &[]);
    assert_eq!(committed(&mut connection, &group, &again), None);
    assert_eq!(commit(&mut connection, &group, ("", -1), (&again, 7)), ErrorCode::NONE);
    let offsets = [&again, &stays].map(|topic| committed(&mut connection, &group, topic));
    assert_eq!(offsets, [Some(7), Some(5)]);
    let request = DeleteGroupsRequest { groups_names: vec![group.clone(), group.clone()] };
    let outcomes = connection.ask(2, &request).results;
    let outcomes: Vec<_> = outcomes.into_iter().map(|it| it.error_code).collect();
    assert_eq!(outcomes, [ErrorCode::NONE, ErrorCode::GROUP_ID_NOT_FOUND]);
    assert_eq!(committed(&mut connection, &group, &again), None);
}

pub fn committed(connection: &mut Connection, group: &Str, topic: &Topic) -> Option<i64> {
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
    let mut offset = None;
    wait_until("the group is loaded", || {
        let group = connection.ask(8, &request).groups.remove(0);
        if group.error_code == ErrorCode::COORDINATOR_LOAD_IN_PROGRESS {
            return false;
        }
        assert_eq!(group.error_code, ErrorCode::NONE);
        offset = Some(group.topics[0].partitions[0].committed_offset);
        true
    });
    offset.filter(|offset| *offset >= 0)
}

/// A commit that is decided in several pieces is answered as one, in its order.
#[test]
fn a_very_long_commit_is_answered_in_order() {
    let broker = Broker::shared();
    let (group, topic) = (new_name("group"), Topic::new(broker, "long"));
    let mut connection = coordinator(broker, &group);
    assert_eq!(commit(&mut connection, &group, ("", -1), (&topic, 1)), ErrorCode::NONE);
    let indexes: Vec<i32> = (0..5_000).map(|place| if place % 7 == 6 { 999 } else { 0 }).collect();
    let mut request = committing(&group, ("", -1), (&topic, 0));
    let commits = indexes.iter().zip(2..).map(|(&partition_index, committed_offset)| {
        OffsetCommitRequestPartition {
            partition_index,
            committed_offset,
            ..OffsetCommitRequestPartition::default()
        }
    });
    request.topics[0].partitions = commits.collect();
    let answer = connection.ask(9, &request);
    let outcomes = &answer.topics[0].partitions;
    assert_eq!(outcomes.len(), indexes.len());
    for (outcome, &index) in outcomes.iter().zip(&indexes) {
        let wanted = match index {
            0 => ErrorCode::NONE,
            _ => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        };
        assert_eq!((outcome.partition_index, outcome.error_code), (index, wanted));
    }
    // The last one that exists: 4,999 is 1 beyond a multiple of 7.
    let asked = OffsetFetchRequestGroup {
        group_id: group.clone(),
        topics: Some(vec![OffsetFetchRequestTopics {
            name: topic.name.clone(),
            partition_indexes: vec![0; 2_500],
            ..OffsetFetchRequestTopics::default()
        }]),
        ..OffsetFetchRequestGroup::default()
    };
    let request = OffsetFetchRequest { groups: vec![asked], ..OffsetFetchRequest::default() };
    let answer = connection.ask(9, &request);
    let told = &answer.groups[0].topics[0].partitions;
    assert_eq!(told.len(), 2_500);
    assert!(told.iter().all(|it| it.committed_offset == 5_001), "{:?}", told[0]);
    // In the name of a generation that is not there, none of it is taken.
    let mut refused = committing(&group, ("nobody", 3), (&topic, 9));
    refused.topics[0].partitions = vec![refused.topics[0].partitions[0].clone(); 2_500];
    let answer = connection.ask(9, &refused);
    let outcomes = answer.topics[0].partitions.iter().map(|it| it.error_code);
    assert!(outcomes.clone().count() == 2_500 && outcomes.clone().all(|it| it.is_error()));
}
