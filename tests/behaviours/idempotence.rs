//! Idempotent producers: every record once, whatever is sent again.

use protocol::ErrorCode;
use protocol::messages::describe_producers::{DescribeProducersRequest, TopicRequest};

use crate::broker::Broker;
use crate::scenario::{Topic, batch, idempotent};

/// Kafka protocol behaviour 38: a retry of one of the last five batches is answered as the first
/// time, with its offset, and appends nothing; an older one is out of order.
#[test]
fn the_last_five_batches_can_be_retried() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "five");
    let mut leader = topic.leader(broker, 0);
    let producer = leader.new_producer();
    let sent: Vec<_> = (0..6).map(|number| idempotent(producer, number * 2, &["a", "b"])).collect();
    for (offset, batch) in (0..).step_by(2).zip(&sent) {
        assert_eq!(leader.write(&topic, 0, batch.clone()), offset);
    }
    for (offset, batch) in (0..).step_by(2).zip(&sent).skip(1) {
        assert_eq!(leader.write(&topic, 0, batch.clone()), offset, "a retry");
    }
    let sixth_back = leader.produce(&topic, sent[0].clone());
    assert_eq!(sixth_back.error_code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(leader.list_offset(&topic, 0, -1).offset, 12);
}

/// Kafka protocol behaviour 38: a gap in the sequence is out of order, and so is a batch that
/// only overlaps one that was written.
#[test]
fn gaps_and_overlaps_are_out_of_order() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "gaps");
    let mut leader = topic.leader(broker, 0);
    let producer = leader.new_producer();
    leader.write(&topic, 0, idempotent(producer, 0, &["a", "b", "c"]));
    for (sequence, records) in [(4, &["gap"][..]), (1, &["b", "c"]), (0, &["a"]), (2, &["c", "d"])]
    {
        let outcome = leader.produce(&topic, idempotent(producer, sequence, records));
        assert_eq!(outcome.error_code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER, "{sequence}");
        assert_eq!(outcome.log_start_offset, 0);
    }
    assert_eq!(leader.write(&topic, 0, idempotent(producer, 3, &["d"])), 3);
}

/// Kafka protocol behaviour 39: sequences wrap from 2147483647 to 0, also inside a batch; a
/// producer that is not known may begin anywhere.
#[test]
fn sequences_wrap() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "wrap");
    let mut leader = topic.leader(broker, 0);
    let producer = leader.new_producer();
    assert_eq!(leader.write(&topic, 0, idempotent(producer, i32::MAX - 1, &["a"])), 0);
    let across = idempotent(producer, i32::MAX, &["b", "c"]);
    assert_eq!(leader.write(&topic, 0, across.clone()), 1);
    assert_eq!(leader.write(&topic, 0, idempotent(producer, 1, &["d"])), 3);
    assert_eq!(leader.write(&topic, 0, across), 1, "a retry");

    let topic = Topic::new(broker, "wrap-exactly");
    let mut leader = topic.leader(broker, 0);
    let producer = leader.new_producer();
    assert_eq!(leader.write(&topic, 0, idempotent(producer, i32::MAX, &["last"])), 0);
    assert_eq!(leader.write(&topic, 0, idempotent(producer, 0, &["first"])), 1);
}

/// Kafka protocol behaviour 39: a new epoch begins at sequence 0.
#[test]
fn a_new_epoch_begins_at_zero() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "new-epoch");
    let mut leader = topic.leader(broker, 0);
    let (id, epoch) = leader.new_producer();
    leader.write(&topic, 0, idempotent((id, epoch), 0, &["a"]));
    let outcome = leader.produce(&topic, idempotent((id, epoch + 1), 1, &["b"]));
    assert_eq!(outcome.error_code, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_eq!(leader.write(&topic, 0, idempotent((id, epoch + 1), 0, &["b"])), 1);
}

/// Kafka protocol behaviour 40: data of a stale epoch is INVALID_PRODUCER_EPOCH.
#[test]
fn a_stale_epoch_is_refused() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "stale");
    let mut leader = topic.leader(broker, 0);
    let (id, epoch) = leader.new_producer();
    leader.write(&topic, 0, idempotent((id, epoch + 1), 0, &["a"]));
    let outcome = leader.produce(&topic, idempotent((id, epoch), 0, &["b"]));
    assert_eq!(outcome.error_code, ErrorCode::INVALID_PRODUCER_EPOCH);
    let outcome = leader.produce(&topic, idempotent((id, -1), 0, &["b"]));
    assert_eq!(outcome.error_code, ErrorCode::INVALID_PRODUCER_EPOCH);
}

/// A batch with a producer id needs a sequence; one without is of no producer.
#[test]
fn a_producer_needs_a_sequence() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "no-sequence");
    let mut leader = topic.leader(broker, 0);
    let producer = leader.new_producer();
    let outcome = leader.produce(&topic, idempotent(producer, -1, &["a"]));
    assert_eq!(outcome.error_code, ErrorCode::INVALID_RECORD);
    let plain = batch(&["b"]);
    assert_eq!(leader.write(&topic, 0, plain.clone()), 0);
    assert_eq!(leader.write(&topic, 0, plain), 1, "nobody's batches are no duplicates");
}

/// Producer ids are given out once, by any node.
#[test]
fn producer_ids_are_unique() {
    let broker = Broker::shared();
    let (mut first, mut second) = (broker.connect(0), broker.connect(1));
    let mut ids: Vec<i64> = (0..20)
        .flat_map(|_| [first.new_producer(), second.new_producer()])
        .map(|it| it.0)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 40);
    assert!(ids[0] >= 0);
}

/// DescribeProducers shows who wrote to a partition, and how far.
#[test]
fn producers_of_a_partition_are_described() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "described");
    let mut leader = topic.leader(broker, 0);
    let (id, epoch) = leader.new_producer();
    leader.write(&topic, 0, idempotent((id, epoch), 0, &["a", "b", "c"]));
    let asked = TopicRequest { name: topic.name.clone(), partition_indexes: vec![0] };
    let answer = leader.ask(0, &DescribeProducersRequest { topics: vec![asked] });
    let [state] = answer.topics[0].partitions[0].active_producers.as_slice() else {
        panic!("{answer:?}")
    };
    let told = (state.producer_id, state.producer_epoch, state.last_sequence);
    assert_eq!(told, (id, i32::from(epoch), 2));
    assert_eq!(state.current_txn_start_offset, -1);
}
