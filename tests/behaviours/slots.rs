//! Every slot is a node: what that means for who serves what.

use protocol::ErrorCode;
use protocol::batch::{BatchBuilder, Compression};

use crate::broker::{Broker, metric};
use crate::offsets::{delete_to, end_of};
use crate::scenario::{
    LATEST, Topic, batch, describe, fetch_request, fetched, fill, now_ms, produce_request,
};

/// A write at the wrong node is NOT_LEADER_OR_FOLLOWER; from Produce 10 on with who leads and
/// where, below without (KIP-951).
#[test]
fn a_misdirected_write_is_told_the_leader() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "misdirected");
    for partition in [0, 1] {
        let leader = topic.leaders[partition as usize];
        let mut stranger = topic.stranger(broker, partition);
        for version in 3..=13 {
            let request = produce_request(-1, &topic, partition, batch(&["x"]));
            let answer = stranger.ask(version, &request);
            let outcome = &answer.responses[0].partition_responses[0];
            assert_eq!(outcome.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
            assert_eq!(outcome.base_offset, -1);
            let told = &outcome.current_leader;
            if version < 10 {
                assert_eq!((told.leader_id, answer.node_endpoints.len()), (-1, 0));
                continue;
            }
            assert_eq!(told.leader_id, 1000 + i32::from(leader), "version {version}");
            assert!(told.leader_epoch >= 0);
            let [node] = answer.node_endpoints.as_slice() else { panic!("{answer:?}") };
            let port = i32::from(broker.port + leader);
            assert_eq!((node.node_id, &*node.host, node.port), (told.leader_id, "127.0.0.1", port));
        }
        assert!(topic.leader(broker, partition).read(&topic, partition, 0).is_empty());
    }
}

/// A fetch at the wrong node is NOT_LEADER_OR_FOLLOWER; from Fetch 16 on with who leads and where,
/// below without (KIP-951).
#[test]
fn a_misdirected_fetch_is_told_the_leader() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "misread");
    let mut stranger = topic.stranger(broker, 1);
    for version in 4..=18 {
        let answer = stranger.ask(version, &fetch_request(&[(&topic, 1, 0)]));
        let data = fetched(&answer)[0].1;
        assert_eq!(data.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER, "version {version}");
        if version < 16 {
            assert_eq!((data.current_leader.leader_id, answer.node_endpoints.len()), (-1, 0));
            continue;
        }
        let leader = topic.leaders[1];
        assert_eq!(data.current_leader.leader_id, 1000 + i32::from(leader));
        let [node] = answer.node_endpoints.as_slice() else { panic!("{answer:?}") };
        assert_eq!(node.port, i32::from(broker.port + leader));
    }
}

/// ListOffsets at the wrong node is NOT_LEADER_OR_FOLLOWER.
#[test]
fn misdirected_list_offsets_are_refused() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "mislisted");
    for partition in [0, 1] {
        let found = topic.stranger(broker, partition).list_offset(&topic, partition, LATEST);
        assert_eq!(found.error_code, ErrorCode::NOT_LEADER_OR_FOLLOWER);
        assert_eq!(found.offset, -1);
    }
}

/// DeleteRecords and OffsetForLeaderEpoch at the wrong node are NOT_LEADER_OR_FOLLOWER, too.
#[test]
fn misdirected_deletions_and_epochs_are_refused() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "misdeleted");
    topic.leader(broker, 0).write(&topic, 0, batch(&["x"]));
    let mut stranger = topic.stranger(broker, 0);
    let wrong = ErrorCode::NOT_LEADER_OR_FOLLOWER;
    assert_eq!(delete_to(&mut stranger, &topic, 1), (wrong, -1));
    assert_eq!(end_of(&mut stranger, &topic, -1, 0), (wrong, -1, -1));
    assert_eq!(topic.leader(broker, 0).read(&topic, 0, 0).len(), 1);
}

/// A partition that the topic does not have is unknown to every node, not led elsewhere.
#[test]
fn partitions_that_do_not_exist_are_unknown() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "third");
    for slot in [0, 1] {
        let mut connection = broker.connect(slot);
        for partition in [2, -1] {
            let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            let outcome = connection.produce_in(9, &topic, partition, batch(&["x"]));
            assert_eq!(outcome.error_code, unknown);
            assert_eq!(connection.fetch_in(12, &topic, partition, 0).error_code, unknown);
            assert_eq!(connection.list_offset(&topic, partition, LATEST).error_code, unknown);
        }
    }
}

/// Each partition has one replica, on the node that leads it.
#[test]
fn replicas_are_where_the_leader_is() {
    let broker = Broker::shared();
    let topic = Topic::on_both_slots(broker, "replicas");
    for partition in describe(&mut broker.connect(0), 12, &topic.name).partitions {
        assert_eq!(partition.replica_nodes, [partition.leader_id]);
        assert_eq!(partition.isr_nodes, [partition.leader_id]);
        assert!(partition.offline_replicas.is_empty());
    }
}

/// Cross-core messages per record are 0: thousands of records written to and read from both
/// nodes move no counter of messages between cores.
#[test]
fn records_never_cross_cores() {
    let broker = Broker::start_new();
    let topic = Topic::on_both_slots(&broker, "own-core");
    let producers = [0, 1].map(|partition| topic.leader(&broker, partition).new_producer());

    let messages = |scraped: &str| [0, 1].map(|core| metric(scraped, CROSS_CORE, core));
    let records = |scraped: &str| [0, 1].map(|core| metric(scraped, RECORDS, core));
    let before = broker.http("GET /metrics").1;
    let value = "x".repeat(100);
    let many: Vec<&str> = (0..100).map(|_| value.as_str()).collect();
    for (partition, (id, epoch)) in (0..).zip(producers) {
        let mut leader = topic.leader(&broker, partition);
        for number in 0..50 {
            let builder = BatchBuilder::new(Compression::None).producer(id, epoch, number * 100);
            leader.write(&topic, partition, fill(builder, now_ms(), &many));
        }
        let mut read = 0;
        while read < 5_000 {
            read += leader.read(&topic, partition, read).len() as i64;
        }
        assert_eq!(leader.list_offset(&topic, partition, LATEST).offset, 5_000);
    }
    let after = broker.http("GET /metrics").1;

    let written = [0, 1].map(|core| records(&after)[core] - records(&before)[core]);
    assert_eq!(written, [5_000.0, 5_000.0]);
    // Slot 0 counts its own numbers, then asks slot 1 for its numbers: the first of the two
    // scrapes is one message that the second one sees.
    let sent = [0, 1].map(|core| messages(&after)[core] - messages(&before)[core]);
    assert_eq!(sent, [1.0, 0.0], "messages between cores beside the scrape's own");
}

const CROSS_CORE: &str = "coretide_cross_core_messages_total";
const RECORDS: &str = "coretide_records_produced_total";
