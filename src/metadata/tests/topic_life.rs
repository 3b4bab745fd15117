//! DeleteTopics, CreatePartitions, elections and reassignments: what Kafka 4.4 answers, and what
//! is different where nodes share a host.

use metadata::configs::StaticSettings;
use metadata::controller::{
    alter_partition_reassignments, create_partitions, delete_topics, elect_leaders,
    list_partition_reassignments,
};
use metadata::record::{MetadataRecord, PartitionChanged};
use metadata::{Decision, Image};
use protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use protocol::messages::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic,
};
use protocol::messages::delete_topics::{
    DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use protocol::messages::elect_leaders::{ElectLeadersRequest, TopicPartitions};
use protocol::messages::list_partition_reassignments::ListPartitionReassignmentsRequest;
use protocol::{ErrorCode, NodeId, Uuid};

use crate::world::{
    after, context, hosts, id, one_host, partition, replica, text, topic, with_topics,
};

// ---- DeleteTopics

fn by_name(names: &[&str]) -> DeleteTopicsRequest {
    let topic_names = names.iter().map(|name| text(name)).collect();
    DeleteTopicsRequest { topic_names, ..DeleteTopicsRequest::default() }
}

fn by_either(topics: &[(Option<&str>, Uuid)]) -> DeleteTopicsRequest {
    let topics = topics
        .iter()
        .map(|(name, topic_id)| DeleteTopicState { name: name.map(text), topic_id: *topic_id });
    DeleteTopicsRequest { topics: topics.collect(), ..DeleteTopicsRequest::default() }
}

fn delete(image: &Image, request: &DeleteTopicsRequest) -> Decision<DeleteTopicsResponse> {
    delete_topics(&context(image, &StaticSettings::default()), request, 6)
}

fn codes(decision: &Decision<DeleteTopicsResponse>) -> Vec<ErrorCode> {
    decision.response.responses.iter().map(|it| it.error_code).collect()
}

#[test]
fn topics_are_deleted_by_name_and_by_id() {
    let image = with_topics(&one_host(1), &[("one", 1), ("two", 2), ("three", 1)]);
    let two = image.topic("two").unwrap().id;
    let decision = delete(&image, &by_either(&[(Some("one"), Uuid::ZERO), (None, two)]));
    assert_eq!(codes(&decision), [ErrorCode::NONE; 2]);
    let answered = &decision.response.responses[1];
    assert_eq!((&answered.name, answered.topic_id), (&Some(text("two")), two));
    let image = after(&image, &decision.records);
    assert_eq!(image.topic_names().collect::<Vec<_>>(), [&text("three")]);
}

#[test]
fn an_unknown_topic_is_unknown_by_name_or_by_id() {
    let image = one_host(1);
    let unknown = delete(&image, &by_either(&[(Some("t"), Uuid::ZERO), (None, id(9))]));
    assert_eq!(
        codes(&unknown),
        [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ErrorCode::UNKNOWN_TOPIC_ID]
    );
    for name in ["", "a/b", "__cluster_metadata", "../x"] {
        let decision = delete(&image, &by_name(&[name]));
        assert_eq!(codes(&decision), [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION], "{name:?}");
        assert_eq!(decision.records, []);
    }
}

#[test]
fn a_topic_asked_for_twice_is_kept() {
    let image = with_topics(&one_host(1), &[("t", 1)]);
    let known = image.topic("t").unwrap().id;
    for request in [
        by_name(&["t", "t"]),
        by_either(&[(Some("t"), Uuid::ZERO), (Some("t"), Uuid::ZERO)]),
        by_either(&[(None, known), (None, known)]),
        by_either(&[(None, known), (Some("t"), Uuid::ZERO)]),
        by_name(&["missing", "missing"]),
    ] {
        let decision = delete(&image, &request);
        assert_eq!(codes(&decision), [ErrorCode::INVALID_REQUEST], "{request:?}");
        assert_eq!(decision.records, []);
    }
}

#[test]
fn neither_name_nor_id_and_both_are_invalid() {
    let image = with_topics(&one_host(1), &[("t", 1)]);
    let known = image.topic("t").unwrap().id;
    let decision = delete(&image, &by_either(&[(None, Uuid::ZERO), (Some("t"), known)]));
    assert_eq!(codes(&decision), [ErrorCode::INVALID_REQUEST; 2]);
    assert_eq!(decision.records, []);
}

#[test]
fn deletion_can_be_turned_off() {
    let image = with_topics(&one_host(1), &[("t", 1)]);
    let mut statics = StaticSettings::default();
    statics.set("delete.topic.enable", "false").unwrap();
    let at = context(&image, &statics);
    let by_version = |version| delete_topics(&at, &by_name(&["t"]), version);
    assert_eq!(codes(&by_version(5)), [ErrorCode::TOPIC_DELETION_DISABLED]);
    assert_eq!(codes(&by_version(2)), [ErrorCode::INVALID_REQUEST], "before KIP-322");
    assert_eq!(by_version(5).records, []);
}

// ---- CreatePartitions

fn more(name: &str, count: i32, assignments: Option<&[&[i32]]>) -> CreatePartitionsTopic {
    let assigned = assignments.map(|all| {
        all.iter().map(|nodes| CreatePartitionsAssignment { broker_ids: nodes.to_vec() }).collect()
    });
    CreatePartitionsTopic { name: text(name), count, assignments: assigned }
}

fn grow(image: &Image, topics: Vec<CreatePartitionsTopic>) -> (Image, Vec<ErrorCode>) {
    let request = CreatePartitionsRequest { topics, ..CreatePartitionsRequest::default() };
    let decision = create_partitions(&context(image, &StaticSettings::default()), &request);
    let codes = decision.response.results.iter().map(|it| it.error_code).collect();
    (after(image, &decision.records), codes)
}

#[test]
fn partitions_are_added_where_the_topic_has_fewest() {
    let image = with_topics(&one_host(4), &[("t", 2)]);
    let (image, codes) = grow(&image, vec![more("t", 4, None)]);
    assert_eq!(codes, [ErrorCode::NONE]);
    let mut nodes: Vec<_> = image
        .topic("t")
        .unwrap()
        .indexed()
        .map(|(_, partition)| partition.leader_node().unwrap().0)
        .collect();
    nodes.sort_unstable();
    assert_eq!(nodes, [1000, 1001, 1002, 1003]);
}

#[test]
fn wrong_counts_are_refused() {
    let image = with_topics(&one_host(1), &[("t", 2)]);
    for (count, code) in [
        (2, ErrorCode::INVALID_PARTITIONS),
        (1, ErrorCode::INVALID_PARTITIONS),
        (0, ErrorCode::INVALID_PARTITIONS),
        (-1, ErrorCode::INVALID_PARTITIONS),
        (1_000_000, ErrorCode::POLICY_VIOLATION),
        (i32::MAX, ErrorCode::POLICY_VIOLATION),
    ] {
        let (grown, codes) = grow(&image, vec![more("t", count, None)]);
        assert_eq!(codes, [code], "{count}");
        assert_eq!(grown.topic("t"), image.topic("t"));
    }
    for name in ["missing", "a/b", ""] {
        let (_, codes) = grow(&image, vec![more(name, 3, None)]);
        assert_eq!(codes, [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION], "{name:?}");
    }
    let (_, codes) = grow(&image, vec![more("t", 3, None), more("t", 4, None)]);
    assert_eq!(codes, [ErrorCode::INVALID_REQUEST], "once");
}

#[test]
fn added_partitions_can_be_assigned() {
    let image = with_topics(&one_host(2), &[("t", 1)]);
    let (grown, codes) = grow(&image, vec![more("t", 3, Some(&[&[1001], &[1001]]))]);
    assert_eq!(codes, [ErrorCode::NONE]);
    let last = grown.topic("t").unwrap().partition(2).unwrap();
    assert_eq!(last.leader_node(), Some(NodeId(1001)));
    let cases: [(&str, &[&[i32]]); 7] = [
        ("none", &[]),
        ("too few", &[&[1000]]),
        ("too many", &[&[1000], &[1000], &[1000]]),
        ("an empty one", &[&[1000], &[]]),
        ("an unknown node", &[&[1000], &[7]]),
        ("two slots of one host", &[&[1000], &[1000, 1001]]),
        ("a node twice", &[&[1000], &[1001, 1001]]),
    ];
    for (what, assignments) in cases {
        let (_, codes) = grow(&image, vec![more("t", 3, Some(assignments))]);
        assert_eq!(codes, [ErrorCode::INVALID_REPLICA_ASSIGNMENT], "{what}");
    }
}

#[test]
fn added_partitions_have_as_many_replicas_as_the_others() {
    let image =
        after(&hosts(3, 1), &[topic("t", 1), partition(1, 0, &[replica(1, 0), replica(2, 0)])]);
    let (grown, codes) = grow(&image, vec![more("t", 2, None)]);
    assert_eq!(codes, [ErrorCode::NONE]);
    assert_eq!(grown.topic("t").unwrap().partition(1).unwrap().replicas.len(), 2);
    let (_, codes) = grow(&image, vec![more("t", 2, Some(&[&[1000]]))]);
    assert_eq!(codes, [ErrorCode::INVALID_REPLICA_ASSIGNMENT]);
}

#[test]
fn validating_adds_nothing() {
    let image = with_topics(&one_host(1), &[("t", 1)]);
    let request = CreatePartitionsRequest {
        topics: vec![more("t", 3, None)],
        validate_only: true,
        timeout_ms: 1,
    };
    let decision = create_partitions(&context(&image, &StaticSettings::default()), &request);
    assert_eq!(decision.records, []);
    assert_eq!(decision.response.results[0].error_code, ErrorCode::NONE);
}

// ---- ElectLeaders

fn elect(
    image: &Image,
    kind: i8,
    topics: Option<&[(&str, &[i32])]>,
) -> (Image, ErrorCode, Vec<ErrorCode>) {
    let topic_partitions = topics.map(|topics| {
        let named = topics.iter().map(|(topic, partitions)| TopicPartitions {
            topic: text(topic),
            partitions: partitions.to_vec(),
        });
        named.collect()
    });
    let request = ElectLeadersRequest { election_type: kind, topic_partitions, timeout_ms: 1 };
    let decision = elect_leaders(&context(image, &StaticSettings::default()), &request);
    let each = decision.response.replica_election_results.iter();
    let codes = each.flat_map(|topic| &topic.partition_result).map(|it| it.error_code).collect();
    (after(image, &decision.records), decision.response.error_code, codes)
}

#[test]
fn on_one_host_there_is_nothing_to_elect() {
    let image = with_topics(&one_host(2), &[("t", 2)]);
    for kind in [0, 1] {
        let (_, top, codes) = elect(&image, kind, Some(&[("t", &[0, 1, 9]), ("missing", &[0])]));
        assert_eq!(top, ErrorCode::NONE);
        assert_eq!(
            codes,
            [
                ErrorCode::ELECTION_NOT_NEEDED,
                ErrorCode::ELECTION_NOT_NEEDED,
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
            ]
        );
        assert_eq!(elect(&image, kind, None).2, [], "all that need one");
        assert_eq!(elect(&image, kind, Some(&[])).2, []);
    }
    let (_, top, codes) = elect(&image, 9, Some(&[("t", &[0])]));
    assert_eq!((top, &codes[..]), (ErrorCode::INVALID_REQUEST, &[ErrorCode::INVALID_REQUEST][..]));
}

#[test]
fn a_preferred_election_brings_leadership_back() {
    let image =
        after(&hosts(2, 1), &[topic("t", 1), partition(1, 0, &[replica(1, 0), replica(2, 0)])]);
    let to_two = MetadataRecord::PartitionChanged(PartitionChanged {
        topic: id(1),
        index: 0,
        replicas: None,
        in_sync: None,
        leader: Some(metadata::record::NextLeader::Host(protocol::HostId(2))),
    });
    let image = after(&image, &[to_two]);
    let (elected, _, codes) = elect(&image, 0, None);
    assert_eq!(codes, [ErrorCode::NONE]);
    let partition = elected.partition(id(1), 0).unwrap();
    assert_eq!(partition.leader_node(), Some(NodeId(1000)));
    assert_eq!(partition.leader_epoch, 2);
    let (_, _, codes) = elect(&image, 1, Some(&[("t", &[0])]));
    assert_eq!(codes, [ErrorCode::ELECTION_NOT_NEEDED], "somebody leads");
}

// ---- reassignments

fn reassign(
    image: &Image,
    name: &str,
    index: i32,
    replicas: Option<&[i32]>,
    resizing: bool,
) -> (Image, ErrorCode) {
    let partition =
        ReassignablePartition { partition_index: index, replicas: replicas.map(<[i32]>::to_vec) };
    let topics = vec![ReassignableTopic { name: text(name), partitions: vec![partition] }];
    let request = AlterPartitionReassignmentsRequest {
        topics,
        timeout_ms: 1,
        allow_replication_factor_change: resizing,
    };
    let statics = StaticSettings::default();
    let decision = alter_partition_reassignments(&context(image, &statics), &request);
    let code = decision.response.responses[0].partitions[0].error_code;
    (after(image, &decision.records), code)
}

/// A move between cores is one record: another slot, another leader epoch, the same replica set.
#[test]
fn a_partition_moves_between_the_slots_of_its_host() {
    let image = with_topics(&one_host(2), &[("t", 1)]);
    let (moved, code) = reassign(&image, "t", 0, Some(&[1001]), true);
    assert_eq!(code, ErrorCode::NONE);
    let (was, is) = (image.topic("t").unwrap(), moved.topic("t").unwrap());
    let (was, is) = (was.partition(0).unwrap(), is.partition(0).unwrap());
    assert_eq!((was.leader_node(), is.leader_node()), (Some(NodeId(1000)), Some(NodeId(1001))));
    assert_eq!(is.leader_epoch, was.leader_epoch + 1);
    assert_eq!(is.in_sync, was.in_sync);
    let (again, code) = reassign(&moved, "t", 0, Some(&[1001]), true);
    assert_eq!(code, ErrorCode::NONE);
    assert_eq!(again.topic("t"), moved.topic("t"), "it is there already");
}

#[test]
fn impossible_reassignments_are_refused() {
    let image = with_topics(&hosts(2, 2), &[("t", 1)]);
    type Case<'a> = (&'a str, i32, Option<&'a [i32]>, bool, ErrorCode);
    let cases: [Case<'_>; 10] = [
        ("t", 0, None, true, ErrorCode::NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 0, Some(&[7000]), true, ErrorCode::INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, Some(&[]), true, ErrorCode::INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, Some(&[1000, 1000]), true, ErrorCode::INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, Some(&[1000, 1001]), true, ErrorCode::INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, Some(&[2000, 1000]), true, ErrorCode::INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, Some(&[2000, 1000]), false, ErrorCode::INVALID_REPLICATION_FACTOR),
        ("t", 9, Some(&[1000]), true, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1, Some(&[1000]), true, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        ("missing", 0, Some(&[1000]), true, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
    ];
    for (name, index, replicas, resizing, wanted) in cases {
        let (after, code) = reassign(&image, name, index, replicas, resizing);
        assert_eq!(code, wanted, "{name} {index} {replicas:?}");
        assert_eq!(after.topic("t"), image.topic("t"));
    }
}

#[test]
fn no_reassignment_is_ever_pending() {
    let answer = list_partition_reassignments(&ListPartitionReassignmentsRequest::default());
    assert_eq!((answer.error_code, answer.error_message), (ErrorCode::NONE, None));
    assert_eq!(answer.topics, []);
}
