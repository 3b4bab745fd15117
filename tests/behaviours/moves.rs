//! Partitions that move from one slot of the host to the other, and what clients see of it.

use protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use protocol::messages::fetch::FetchRequest;
use protocol::messages::list_partition_reassignments::ListPartitionReassignmentsRequest;
use protocol::{ErrorCode, Str};
use serde_json::{Value, json};

use crate::broker::{Broker, run_refused, run_well};
use crate::groups::{commit, committed, coordinator, coordinator_slot, member_of};
use crate::scenario::{
    LATEST, Topic, batch, describe, fetch_request, fetched, idempotent, new_name, produce_request,
};

/// What is written before a move is read after it, offsets go on, and so do the sequences of an
/// idempotent producer, with the batches that can be sent again. The leader epoch grows by one.
#[test]
fn a_moved_partition_goes_on_where_it_was() {
    let broker = Broker::shared();
    let mut topic = Topic::new(broker, "goes-on");
    let epoch = |topic: &Topic| {
        describe(&mut broker.connect(0), 12, &topic.name).partitions[0].leader_epoch
    };
    let before = epoch(&topic);
    let producer = broker.connect(0).new_producer();
    let mut sent = Vec::new();
    for round in 0..4 {
        let values = [format!("a{round}"), format!("b{round}")];
        let next = idempotent(producer, round * 2, &[&values[0], &values[1]]);
        let offset = topic.leader(broker, 0).write(&topic, 0, next.clone());
        assert_eq!(offset, i64::from(round) * 2);
        sent.push((offset, next));
        assert_eq!(move_to(broker, &topic, 0, 1 - topic.leaders[0]), ErrorCode::NONE);
        topic = Topic::find(broker, &topic.name);
        for (offset, again) in &sent {
            assert_eq!(topic.leader(broker, 0).write(&topic, 0, again.clone()), *offset, "again");
        }
        let gap = topic.leader(broker, 0).produce(&topic, idempotent(producer, 100, &["gap"]));
        assert_eq!(gap.error_code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    }
    assert_eq!(epoch(&topic), before + 4);
    let read = topic.leader(broker, 0).read(&topic, 0, 0);
    let expected = ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"];
    assert_eq!(read, (0..).zip(expected.map(str::to_owned)).collect::<Vec<_>>());
}

/// The slot that had the partition says who has it now (KIP-951), to whoever comes and to a fetch
/// that has been waiting for records since before the move; in a session it is news.
#[test]
fn who_waits_at_the_old_slot_is_told_the_new_one() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "told");
    let (here, there) = (topic.leaders[0], 1 - topic.leaders[0]);
    let mut in_session = broker.connect(here);
    let begun =
        in_session.ask(17, &FetchRequest { session_epoch: 0, ..fetch_request(&[(&topic, 0, 0)]) });
    let mut waiting = broker.connect(here);
    waiting.send(17, &FetchRequest { max_wait_ms: 60_000, ..fetch_request(&[(&topic, 0, 0)]) });

    assert_eq!(move_to(broker, &topic, 0, there), ErrorCode::NONE);
    let (session_id, session_epoch) = (begun.session_id, 1);
    let followed = FetchRequest { session_id, session_epoch, ..fetch_request(&[]) };
    for answer in [waiting.receive_as(17).1, in_session.ask(17, &followed)] {
        let data = fetched(&answer)[0].1;
        assert_eq!(data.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
        assert_eq!(data.current_leader.leader_id, 1000 + i32::from(there));
        assert_eq!(answer.node_endpoints[0].port, i32::from(broker.port + there));
    }
    let request = produce_request(-1, &topic, 0, batch(&["x"]));
    let answer = broker.connect(here).ask(12, &request);
    let outcome = &answer.responses[0].partition_responses[0];
    assert_eq!(outcome.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(outcome.current_leader.leader_id, 1000 + i32::from(there));
    assert_eq!(outcome.current_leader.leader_epoch, 1);
    let stale = broker.connect(here).list_offset(&topic, 0, LATEST);
    assert_eq!(stale.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
    assert_eq!(broker.connect(there).write(&topic, 0, batch(&["x"])), 0);
}

/// What cannot be done is refused by partition, and what can be in the same request is done.
#[test]
fn mistakes_are_refused_one_by_one() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "mistaken");
    let nodes = |nodes: &[i32]| Some(nodes.to_vec());
    let asked = vec![
        (0, nodes(&[1000 + i32::from(1 - topic.leaders[0])])),
        (1, nodes(&[7])),
        (1, nodes(&[1000, 1001])),
        (1, nodes(&[])),
        (2, nodes(&[1000])),
        (1, None),
    ];
    for version in [0, 1] {
        let found = reassign(broker, version, &topic.name, asked.clone());
        let expected = [
            ErrorCode::NONE,
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            ErrorCode::INVALID_REPLICA_ASSIGNMENT,
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode::NO_REASSIGNMENT_IN_PROGRESS,
        ];
        assert_eq!(found, expected, "version {version}");
    }
    let unknown = reassign(broker, 1, &new_name("unknown"), vec![(0, nodes(&[1000]))]);
    assert_eq!(unknown, [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION]);
    let listed = broker.connect(1).ask(0, &ListPartitionReassignmentsRequest::default());
    assert_eq!((listed.error_code, listed.topics.len()), (ErrorCode::NONE, 0));
}

/// A partition named twice in a request moves to one of the places, and is served there.
#[test]
fn a_partition_that_is_sent_to_and_fro_is_served() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "to-and-fro");
    let (here, there) = (1000 + i32::from(topic.leaders[0]), 1001 - i32::from(topic.leaders[0]));
    let both = [there, here, there, there].map(|node| (0, Some(vec![node])));
    assert_eq!(reassign(broker, 1, &topic.name, both.to_vec()), [ErrorCode::NONE; 4]);
    let topic = Topic::find(broker, &topic.name);
    assert_eq!(topic.leader(broker, 0).write(&topic, 0, batch(&["x"])), 0);
}

/// Members, generations and committed offsets of a group go with the partition that they are in.
#[test]
fn groups_move_with_their_partition() {
    let settings = ["group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=1"];
    let broker = Broker::start_with(&settings);
    let (topic, group) = (Topic::new(&broker, "commits"), new_name("group"));
    let (member, generation) = member_of(&broker, &group);
    let offsets = Topic::find(&broker, &Str::from_static("__consumer_offsets"));
    let mut next = 1;
    for _ in 0..4 {
        let before = coordinator_slot(&broker, &group);
        let mut old = coordinator(&broker, &group);
        let error = commit(&mut old, &group, (&member, generation), (&topic, next));
        assert_eq!(error, ErrorCode::NONE);
        assert_eq!(move_to(&broker, &offsets, 0, 1 - before), ErrorCode::NONE);
        let refused = commit(&mut old, &group, (&member, generation), (&topic, 1000));
        assert_eq!(refused, ErrorCode::NOT_COORDINATOR);
        assert_eq!(coordinator_slot(&broker, &group), 1 - before);
        let mut new = coordinator(&broker, &group);
        let mut error = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
        while error == ErrorCode::COORDINATOR_LOAD_IN_PROGRESS {
            error = commit(&mut new, &group, (&member, generation), (&topic, next + 1));
        }
        assert_eq!(error, ErrorCode::NONE, "the member is still one");
        assert_eq!(committed(&mut new, &group, &topic), Some(next + 1));
        next += 2;
    }
}

/// Where a partition was moved to it is after a stop and after a kill, and then it can be moved,
/// added to and deleted as any other.
#[test]
fn a_move_holds_over_restarts() {
    let mut broker = Broker::start_new();
    let topic = Topic::on_both_slots(&broker, "holds");
    for (number, kill) in [(0, true), (1, false), (2, true)] {
        let from = Topic::find(&broker, &topic.name).leaders[0];
        let mut owner = broker.connect(from);
        assert_eq!(owner.write(&topic, 0, batch(&["before"])), number * 2);
        assert_eq!(move_to(&broker, &topic, 0, 1 - from), ErrorCode::NONE);
        assert_eq!(broker.connect(1 - from).write(&topic, 0, batch(&["after"])), number * 2 + 1);
        if kill {
            broker.restart_after_kill();
        } else {
            broker.restart_in_order();
        }
        assert_eq!(Topic::find(&broker, &topic.name).leaders[0], 1 - from);
        assert_eq!(broker.connect(1 - from).read(&topic, 0, 0).len(), number as usize * 2 + 2);
    }
    Topic::find(&broker, &topic.name).delete(&broker);
    let gone = broker.data.join(format!("{}-0", topic.name));
    assert!(!gone.exists(), "its directory left its place");
}

/// `coretide rebalance` shows a plan and why, does it with --execute, and has nothing to do then.
#[test]
fn the_command_evens_out_and_moves_what_is_named() {
    let broker = Broker::start_new();
    let topic = Topic::create(&broker, new_name("planned"), 6, &[]);
    let all: Vec<_> = (0..6).map(|index| (index, Some(vec![1000]))).collect();
    assert_eq!(reassign(&broker, 1, &topic.name, all), [ErrorCode::NONE; 6]);

    let plan = &rebalance(&broker, &[])[0];
    assert_eq!(plan["executed"], false);
    let counts = |key: &str| [&plan["nodes"][0][key], &plan["nodes"][1][key]].map(Value::as_u64);
    assert_eq!(counts("partitions"), [Some(6), Some(0)]);
    assert_eq!(counts("partitions_after"), [Some(3), Some(3)]);
    assert_eq!(plan["moves"].as_array().unwrap().len(), 3);
    assert_eq!(plan["reason"], "3 to move: node 1000 has 6 partitions, node 1001 0");
    assert_eq!(rebalance(&broker, &[])[0]["moves"], plan["moves"], "nothing was moved");

    let done = rebalance(&broker, &["--execute"]);
    assert_eq!(done[1], json!({"moved": 3, "failed": []}));
    assert_eq!(rebalance(&broker, &[])[0]["moves"], json!([]));

    let named = format!("{}:0,5", topic.name);
    rebalance(&broker, &["--topic", &named, "--to", "1001", "--execute"]);
    let leaders = Topic::find(&broker, &topic.name).leaders;
    assert_eq!((leaders[0], leaders[5]), (1, 1));
    rebalance(&broker, &["--empty", "1000", "--execute"]);
    assert_eq!(Topic::find(&broker, &topic.name).leaders, [1; 6]);

    let bootstrap = broker.bootstrap();
    let refused =
        |words: &[&str]| run_refused(&[&["rebalance", "--bootstrap", &bootstrap], words].concat());
    assert!(refused(&["--topic", "nowhere"]).contains("no topic nowhere"));
    assert!(refused(&["--topic", &format!("{}:9", topic.name)]).contains("no partition 9"));
    assert!(refused(&["--empty", "1007"]).contains("no node 1007; there are 1000, 1001"));
    assert!(refused(&["--to", "1000"]).contains("--topic"));
}

fn rebalance(broker: &Broker, words: &[&str]) -> Vec<Value> {
    let bootstrap = broker.bootstrap();
    let printed =
        run_well(&[&["rebalance", "--json", "--bootstrap", &bootstrap], words].concat(), "");
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn move_to(broker: &Broker, topic: &Topic, partition: i32, slot: u16) -> ErrorCode {
    let asked = vec![(partition, Some(vec![1000 + i32::from(slot)]))];
    reassign(broker, 1, &topic.name, asked)[0]
}

/// The error of each partition, in the order in which they were asked for.
fn reassign(
    broker: &Broker,
    version: i16,
    name: &Str,
    asked: Vec<(i32, Option<Vec<i32>>)>,
) -> Vec<ErrorCode> {
    let partitions = asked
        .into_iter()
        .map(|(partition_index, replicas)| ReassignablePartition { partition_index, replicas });
    let topic = ReassignableTopic { name: name.clone(), partitions: partitions.collect() };
    let request = AlterPartitionReassignmentsRequest {
        timeout_ms: 30_000,
        topics: vec![topic],
        ..AlterPartitionReassignmentsRequest::default()
    };
    let answer = broker.connect(1).ask(version, &request);
    assert_eq!(answer.error_code, ErrorCode::NONE);
    answer.responses[0].partitions.iter().map(|it| it.error_code).collect()
}
