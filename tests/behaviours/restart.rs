//! What outlives the process, stopped in order or killed.

use bytes::Bytes;
use protocol::ErrorCode;
use protocol::messages::metadata::MetadataRequest;

use crate::broker::Broker;
use crate::scenario::{EARLIEST, LATEST, Topic, batch, describe, idempotent};

/// Kafka protocol behaviours 38 and 41: after kill -9 each of a producer's five remembered batches
/// is a duplicate still, on both slots, and the next sequence goes on.
#[test]
fn duplicates_are_known_after_kill_9() {
    check_duplicates_after(Broker::restart_after_kill);
}

/// Kafka protocol behaviours 38 and 41, where Coretide does better: after a stop in order all five
/// batches are known too.
#[test]
fn duplicates_are_known_after_a_clean_restart() {
    check_duplicates_after(Broker::restart_in_order);
}

fn check_duplicates_after(restart: fn(&mut Broker)) {
    let mut broker = Broker::start_new();
    let topic = Topic::on_both_slots(&broker, "duplicates");
    let producer = broker.connect(0).new_producer();
    let sent: Vec<Bytes> =
        (0..5).map(|number| idempotent(producer, number * 2, &["a", "b"])).collect();
    for partition in [0, 1] {
        let mut leader = topic.leader(&broker, partition);
        for (offset, batch) in (0..).step_by(2).zip(&sent) {
            assert_eq!(leader.write(&topic, partition, batch.clone()), offset);
        }
    }
    for _ in 0..2 {
        restart(&mut broker);
        let topic = Topic::find(&broker, &topic.name);
        for partition in [0, 1] {
            let mut leader = topic.leader(&broker, partition);
            for (offset, batch) in (0..).step_by(2).zip(&sent) {
                assert_eq!(leader.write(&topic, partition, batch.clone()), offset, "a duplicate");
            }
            assert_eq!(leader.list_offset(&topic, partition, LATEST).offset, 10);
            let gap = leader.produce_in(9, &topic, partition, idempotent(producer, 12, &["gap"]));
            assert_eq!(gap.error_code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        }
    }
    let topic = Topic::find(&broker, &topic.name);
    for partition in [0, 1] {
        let next = idempotent(producer, 10, &["next"]);
        assert_eq!(topic.leader(&broker, partition).write(&topic, partition, next), 10);
    }
    assert!(broker.connect(1).new_producer().0 > producer.0, "ids are given out once");
}

/// Every acknowledged record is there after kill -9, once and in order.
#[test]
fn acknowledged_records_survive_kill_9() {
    let mut broker = Broker::start_new();
    let topic = Topic::on_both_slots(&broker, "survives");
    let mut expected: Vec<(i64, String)> = Vec::new();
    for round in 0..3 {
        for number in 0..20 {
            let value = format!("{round}-{number}");
            for partition in [0, 1] {
                let mut leader = topic.leader(&broker, partition);
                let offset = leader.write(&topic, partition, batch(&[&value]));
                assert_eq!(offset, expected.len() as i64);
            }
            expected.push((expected.len() as i64, value));
        }
        broker.restart_after_kill();
        let topic = Topic::find(&broker, &topic.name);
        for partition in [0, 1] {
            assert_eq!(topic.leader(&broker, partition).read(&topic, partition, 0), expected);
        }
    }
}

/// Kafka protocol behaviours 16, 18 and 22: cluster id, topic ids and leaders stay over restarts,
/// and leader epochs never go back.
#[test]
fn metadata_survives() {
    let mut broker = Broker::start_new();
    let configs = [("retention.ms", "1234567")];
    let topic = Topic::create(&broker, crate::scenario::new_name("stays"), 4, &configs);
    let cluster_of =
        |broker: &Broker| broker.connect(0).ask(9, &MetadataRequest::default()).cluster_id.unwrap();
    let epochs_of = |broker: &Broker| -> Vec<i32> {
        let found = describe(&mut broker.connect(1), 12, &topic.name);
        found.partitions.iter().map(|it| it.leader_epoch).collect()
    };
    let (cluster, mut epochs) = (cluster_of(&broker), epochs_of(&broker));
    for restart in [Broker::restart_in_order, Broker::restart_after_kill] {
        restart(&mut broker);
        let found = Topic::find(&broker, &topic.name);
        assert_eq!((found.id, &found.leaders), (topic.id, &topic.leaders));
        assert_eq!(cluster_of(&broker), cluster);
        let now = epochs_of(&broker);
        assert!(now.iter().zip(&epochs).all(|(now, before)| now >= before), "{epochs:?} {now:?}");
        epochs = now;
    }
}

/// Kafka protocol behaviour 57: the log's start stays where DeleteRecords put it.
#[test]
fn deleted_records_stay_deleted() {
    use protocol::messages::delete_records::{
        DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
    };
    let mut broker = Broker::start_new();
    let topic = Topic::new(&broker, "start");
    let mut leader = topic.leader(&broker, 0);
    leader.write(&topic, 0, batch(&["a", "b", "c"]));
    let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: 2 }];
    let topics = vec![DeleteRecordsTopic { name: topic.name.clone(), partitions }];
    let answer = leader.ask(2, &DeleteRecordsRequest { topics, timeout_ms: 30_000 });
    assert_eq!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);
    for restart in [Broker::restart_after_kill, Broker::restart_in_order] {
        restart(&mut broker);
        let topic = Topic::find(&broker, &topic.name);
        let mut leader = topic.leader(&broker, 0);
        assert_eq!(leader.list_offset(&topic, 0, EARLIEST).offset, 2);
        assert_eq!(leader.list_offset(&topic, 0, LATEST).offset, 3);
    }
}

/// Kafka protocol behaviour 19: a topic deleted just before kill -9 stays deleted, and a namesake
/// made after it begins empty on both slots.
#[test]
fn deletions_survive_kill_9() {
    let mut broker = Broker::start_new();
    let old = Topic::on_both_slots(&broker, "deleted");
    for partition in [0, 1] {
        old.leader(&broker, partition).write(&old, partition, batch(&["old"]));
    }
    old.delete(&broker);
    broker.restart_after_kill();
    let found = describe(&mut broker.connect(1), 12, &old.name);
    assert_eq!(found.error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let new = Topic::create(&broker, old.name.clone(), 2, &[]);
    assert_ne!(new.id, old.id);
    broker.restart_after_kill();
    let new = Topic::find(&broker, &new.name);
    for partition in [0, 1] {
        let mut leader = new.leader(&broker, partition);
        assert!(leader.read(&new, partition, 0).is_empty());
        assert_eq!(leader.write(&new, partition, batch(&["new"])), 0);
    }
}
