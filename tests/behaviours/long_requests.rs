//! Requests with very many elements: what is read, decided and answered in pieces, beside the
//! core's loop or between two turns of others, is answered as one and in its order.

use protocol::messages::delete_groups::DeleteGroupsRequest;
use protocol::messages::leave_group::{LeaveGroupRequest, MemberIdentity};
use protocol::messages::list_offsets::ListOffsetsPartition;
use protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use protocol::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use protocol::{ErrorCode, Str};

use crate::broker::Broker;
use crate::groups::{coordinator, coordinator_slot};
use crate::scenario::{LATEST, Topic, list_offsets_request, new_name};

const MANY: usize = 100_000;

/// Whole topics, topics that are cut, and one that does not exist.
#[test]
fn a_commit_of_a_hundred_thousand_offsets() {
    let broker = Broker::shared();
    let (group, one, other) = (new_name("group"), Topic::new(broker, "a"), Topic::new(broker, "b"));
    let mut connection = coordinator(broker, &group);
    let missing = Str::from_static("there-is-none");
    let named = [(&one.name, 700), (&missing, 5), (&other.name, 2_300), (&one.name, MANY - 3_005)];
    let mut offset = 0;
    let mut partitions = |count: usize| -> Vec<OffsetCommitRequestPartition> {
        let each = (0..count).map(|_| {
            offset += 1;
            OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() }
        });
        each.collect()
    };
    let topics = named.map(|(name, count)| OffsetCommitRequestTopic {
        name: name.clone(),
        partitions: partitions(count),
        ..OffsetCommitRequestTopic::default()
    });
    let (group_id, topics) = (group.clone(), topics.to_vec());
    let request = OffsetCommitRequest { group_id, topics, ..OffsetCommitRequest::default() };
    let answer = connection.ask(9, &request);
    let answered = answer.topics.iter().map(|it| (&it.name, it.partitions.len()));
    assert_eq!(answered.collect::<Vec<_>>(), named);
    for topic in &answer.topics {
        let wanted = match topic.name == missing {
            true => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            false => ErrorCode::NONE,
        };
        assert!(topic.partitions.iter().all(|it| it.error_code == wanted), "{}", topic.name);
    }

    // The last mention of each counts. Both forms of the answer are long, too.
    let wanted = [(&other.name, 3_005_i64), (&one.name, MANY as i64)];
    let topics = wanted.map(|(name, _)| OffsetFetchRequestTopics {
        name: name.clone(),
        partition_indexes: vec![0; MANY / 2],
        ..OffsetFetchRequestTopics::default()
    });
    let (group_id, topics) = (group.clone(), Some(topics.to_vec()));
    let asked = OffsetFetchRequestGroup { group_id, topics, ..Default::default() };
    let request = OffsetFetchRequest { groups: vec![asked], ..OffsetFetchRequest::default() };
    let answer = connection.ask(9, &request);
    for (topic, (name, offset)) in answer.groups[0].topics.iter().zip(wanted) {
        assert_eq!((&topic.name, topic.partitions.len()), (name, MANY / 2));
        assert!(topic.partitions.iter().all(|it| it.committed_offset == offset), "{name}");
    }
    let answer = connection.ask(7, &flat(&group, &one.name, MANY));
    let topic = &answer.topics[0];
    assert_eq!((&topic.name, topic.partitions.len()), (&one.name, MANY));
    assert!(topic.partitions.iter().all(|it| it.committed_offset == MANY as i64));
}

#[test]
fn offsets_are_deleted_in_pieces() {
    let broker = Broker::shared();
    let (group, topic) = (new_name("group"), Topic::new(broker, "deleted"));
    let mut connection = coordinator(broker, &group);
    let delete = |indexes: &[i32]| OffsetDeleteRequest {
        group_id: group.clone(),
        topics: vec![OffsetDeleteRequestTopic {
            name: topic.name.clone(),
            partitions: indexes
                .iter()
                .map(|&partition_index| OffsetDeleteRequestPartition { partition_index })
                .collect(),
        }],
    };
    let answer = connection.ask(0, &delete(&[0]));
    assert_eq!(answer.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    let partition = OffsetCommitRequestPartition { committed_offset: 5, ..Default::default() };
    let topics = vec![OffsetCommitRequestTopic {
        name: topic.name.clone(),
        partitions: vec![partition],
        ..OffsetCommitRequestTopic::default()
    }];
    let (group_id, topics) = (group.clone(), topics);
    let commit = OffsetCommitRequest { group_id, topics, ..OffsetCommitRequest::default() };
    connection.ask(9, &commit);
    let indexes: Vec<i32> = (0..20_000).map(|place| if place % 3 == 0 { 0 } else { 999 }).collect();
    let answer = connection.ask(0, &delete(&indexes));
    assert_eq!(answer.error_code, ErrorCode::NONE);
    let outcomes = answer.topics[0].partitions.iter();
    let outcomes: Vec<_> = outcomes.map(|it| (it.partition_index, it.error_code)).collect();
    let wanted = indexes.iter().map(|&index| match index {
        0 => (0, ErrorCode::NONE),
        _ => (index, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
    });
    assert_eq!(outcomes, wanted.collect::<Vec<_>>());
    let answer = connection.ask(7, &flat(&group, &topic.name, 1));
    assert_eq!(answer.topics[0].partitions[0].committed_offset, -1);
}

/// What concerns the group is said for each partition where the version has no other place.
#[test]
fn the_oldest_fetch_of_offsets_has_the_error_of_the_group_at_each_partition() {
    let broker = Broker::shared();
    let (group, topic) = (new_name("group"), Topic::new(broker, "refused"));
    drop(coordinator(broker, &group));
    let mut stranger = broker.connect(1 - coordinator_slot(broker, &group));
    let request = flat(&group, &topic.name, 3);
    let answer = stranger.ask(1, &request);
    let told = answer.topics[0].partitions.iter().map(|it| (it.error_code, it.committed_offset));
    assert_eq!(told.collect::<Vec<_>>(), [(ErrorCode::NOT_COORDINATOR, -1); 3]);
    let answer = stranger.ask(2, &request);
    assert_eq!((answer.error_code, answer.topics.len()), (ErrorCode::NOT_COORDINATOR, 0));
}

#[test]
fn each_of_many_names_is_answered() {
    let broker = Broker::shared();
    let group = new_name("group");
    let mut connection = coordinator(broker, &group);
    let names: Vec<Str> = (0..20_000).map(|number| format!("none-{number}").into()).collect();

    let topics = names.iter().map(|name| MetadataRequestTopic {
        name: Some(name.clone()),
        ..MetadataRequestTopic::default()
    });
    let request = MetadataRequest {
        topics: Some(topics.collect()),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    let answer = connection.ask(12, &request);
    let told = answer.topics.iter().map(|it| (it.name.clone(), it.error_code));
    let wanted =
        names.iter().map(|name| (Some(name.clone()), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    assert!(told.eq(wanted));

    let answer = connection.ask(2, &DeleteGroupsRequest { groups_names: names.clone() });
    let told = answer.results.iter().map(|it| it.group_id.clone());
    assert!(told.eq(names.iter().cloned()));
    let refused = [ErrorCode::GROUP_ID_NOT_FOUND, ErrorCode::NOT_COORDINATOR];
    assert!(answer.results.iter().all(|it| refused.contains(&it.error_code)));

    let members = names
        .iter()
        .map(|name| MemberIdentity { member_id: name.clone(), ..MemberIdentity::default() });
    let (group_id, members) = (group, members.collect());
    let request = LeaveGroupRequest { group_id, members, ..LeaveGroupRequest::default() };
    let answer = connection.ask(5, &request);
    let told = answer.members.iter().map(|it| (it.member_id.clone(), it.error_code));
    assert!(told.eq(names.iter().map(|name| (name.clone(), ErrorCode::UNKNOWN_MEMBER_ID))));
}

#[test]
fn offsets_of_many_partitions_are_listed() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "listed");
    let wanted = (0..20_000).map(|partition_index| ListOffsetsPartition {
        partition_index,
        timestamp: LATEST,
        ..ListOffsetsPartition::default()
    });
    let request = list_offsets_request(&topic, wanted.collect());
    let answer = topic.leader(broker, 0).ask(9, &request);
    let told = &answer.topics[0].partitions;
    assert!(told.iter().map(|it| it.partition_index).eq(0..20_000));
    assert_eq!((told[0].error_code, told[0].offset), (ErrorCode::NONE, 0));
    assert_eq!(told[19_999].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

/// As it was asked before several groups could be named.
fn flat(group: &Str, topic: &Str, partitions: usize) -> OffsetFetchRequest {
    let (name, partition_indexes) = (topic.clone(), vec![0; partitions]);
    let topics = Some(vec![OffsetFetchRequestTopic { name, partition_indexes }]);
    OffsetFetchRequest { group_id: group.clone(), topics, ..OffsetFetchRequest::default() }
}
