//! Reading: limits, order, waiting, and offsets that are not there.

use protocol::messages::fetch::{FetchRequest, FetchResponse};
use protocol::{ErrorCode, Uuid};

use crate::broker::Broker;
use crate::scenario::{
    Topic, batch, batches, describe, fetch_request, fetched, only_partition, values,
};

/// Kafka protocol behaviour 42: the first partition with data returns one whole batch even above
/// every limit; later ones obey (KIP-74).
#[test]
fn the_first_batch_may_be_over_the_limit() {
    let broker = Broker::shared();
    let (first, second) = (Topic::new(broker, "over"), Topic::new(broker, "under"));
    let second = same_leader(broker, &first, second);
    let mut leader = first.leader(broker, 0);
    let long = "x".repeat(2_000);
    for topic in [&first, &second] {
        leader.write(topic, 0, batch(&[&long]));
        leader.write(topic, 0, batch(&[&long]));
    }
    let limited = |max_bytes, partition_max_bytes| {
        let mut request = fetch_request(&[(&first, 0, 0), (&second, 0, 0)]);
        request.max_bytes = max_bytes;
        for topic in &mut request.topics {
            topic.partitions[0].partition_max_bytes = partition_max_bytes;
        }
        request
    };
    let mut read = |request: &FetchRequest| -> Vec<usize> {
        let answer = leader.ask(12, request);
        let found = fetched(&answer);
        found.iter().map(|(_, data)| values(data.records.as_ref()).len()).collect()
    };
    assert_eq!(read(&limited(1, 1 << 20)), [1, 0], "a limit of the whole answer");
    assert_eq!(read(&limited(1 << 20, 1)), [1, 0], "a limit of each partition");
    assert_eq!(read(&limited(1 << 20, 1 << 20)), [2, 2], "no limit that matters");
}

/// Kafka protocol behaviour 42: a read may begin inside a batch; the whole batch comes and the
/// client drops what it did not ask for.
#[test]
fn a_read_inside_a_batch_returns_the_batch() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "inside");
    let mut leader = topic.leader(broker, 0);
    leader.write(&topic, 0, batch(&["a", "b", "c"]));
    leader.write(&topic, 0, batch(&["d"]));
    for offset in 0..3 {
        let data = leader.fetch_in(12, &topic, 0, offset);
        let kept = batches(data.records.as_ref());
        assert_eq!((kept.len(), kept[0].0.base_offset), (2, 0), "from {offset}");
    }
    assert_eq!(leader.read(&topic, 0, 3), [(3, "d".to_owned())]);
}

/// Kafka protocol behaviour 43: partitions are read in the order of the request.
#[test]
fn partitions_are_read_in_the_order_of_the_request() {
    let broker = Broker::shared();
    let first = Topic::new(broker, "order-a");
    let second = same_leader(broker, &first, Topic::new(broker, "order-b"));
    let mut leader = first.leader(broker, 0);
    for topic in [&first, &second] {
        leader.write(topic, 0, batch(&["x"]));
    }
    for wanted in [[&first, &second], [&second, &first]] {
        let mut request = fetch_request(&[(wanted[0], 0, 0), (wanted[1], 0, 0)]);
        request.max_bytes = 1;
        let answer = leader.ask(12, &request);
        let found = fetched(&answer);
        assert_eq!(found[0].0, &wanted[0].name);
        assert!(!values(found[0].1.records.as_ref()).is_empty());
        assert!(values(found[1].1.records.as_ref()).is_empty());
    }
}

/// Kafka protocol behaviour 44: a fetch is answered at once when it may not wait, names nothing,
/// has enough bytes, or has an error to tell.
#[test]
fn a_fetch_that_needs_not_wait_does_not() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "at-once");
    let mut leader = topic.leader(broker, 0);
    leader.write(&topic, 0, batch(&["x"]));
    let forever = |request: FetchRequest| FetchRequest { max_wait_ms: i32::MAX, ..request };
    let at_end = fetch_request(&[(&topic, 0, 1)]);
    let out_of_range = fetch_request(&[(&topic, 0, 7)]);
    let missing = fetch_request(&[(&topic, 9, 0)]);
    let requests = [
        FetchRequest { max_wait_ms: 0, ..at_end.clone() },
        FetchRequest { max_wait_ms: -1, ..at_end.clone() },
        FetchRequest { min_bytes: 0, ..forever(at_end.clone()) },
        FetchRequest { topics: Vec::new(), ..forever(at_end.clone()) },
        forever(fetch_request(&[(&topic, 0, 0)])),
        forever(out_of_range),
        forever(missing),
        FetchRequest {
            topics: [at_end.topics.clone(), fetch_request(&[(&topic, 9, 0)]).topics].concat(),
            ..forever(at_end)
        },
    ];
    for request in requests {
        leader.ask(12, &request);
    }
}

/// Kafka protocol behaviour 44: a fetch that waits is answered as soon as min_bytes are there.
#[test]
fn a_waiting_fetch_is_woken_by_enough_bytes() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "woken");
    let (mut reader, mut writer) = (topic.leader(broker, 0), topic.leader(broker, 0));
    let first = batch(&["first"]);
    let wanted = FetchRequest {
        max_wait_ms: i32::MAX,
        min_bytes: first.len() as i32 + 1,
        ..fetch_request(&[(&topic, 0, 0)])
    };
    reader.send(12, &wanted);
    writer.write(&topic, 0, first);
    assert!(reader.is_silent(), "one byte is missing");
    writer.write(&topic, 0, batch(&["second"]));
    let (_, answer) = reader.receive_as::<FetchResponse>(12);
    assert_eq!(values(only_partition(answer).records.as_ref()).len(), 2);
}

/// Kafka protocol behaviour 44: a fetch that waits in vain is answered when its time is over.
#[test]
fn a_waiting_fetch_ends() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "in-vain");
    let mut leader = topic.leader(broker, 0);
    let began = std::time::Instant::now();
    let request = FetchRequest { max_wait_ms: 300, ..fetch_request(&[(&topic, 0, 0)]) };
    let data = only_partition(leader.ask(12, &request));
    assert!(began.elapsed().as_millis() >= 300);
    assert_eq!((data.error_code, data.high_watermark), (ErrorCode::NONE, 0));
}

/// Kafka protocol behaviour 45: the end of the log is empty and no error; beyond it, or before its
/// start, is OFFSET_OUT_OF_RANGE with all positions -1.
#[test]
fn offsets_out_of_range_tell_no_positions() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "range");
    let mut leader = topic.leader(broker, 0);
    leader.write(&topic, 0, batch(&["a", "b"]));
    let end = leader.fetch_in(12, &topic, 0, 2);
    assert_eq!((end.error_code, end.high_watermark), (ErrorCode::NONE, 2));
    assert!(values(end.records.as_ref()).is_empty());
    for offset in [3, i64::MAX, -1, -5] {
        let data = leader.fetch_in(12, &topic, 0, offset);
        assert_eq!(data.error_code, ErrorCode::OFFSET_OUT_OF_RANGE, "{offset}");
        let positions = (data.high_watermark, data.last_stable_offset, data.log_start_offset);
        assert_eq!(positions, (-1, -1, -1));
    }
}

/// Kafka protocol behaviour 47: an id that no topic has is UNKNOWN_TOPIC_ID for its partitions.
#[test]
fn unknown_ids_are_told_per_partition() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "unknown-id");
    let stranger = Topic { id: Uuid([9; 16]), ..topic.clone() };
    let mut leader = topic.leader(broker, 0);
    leader.write(&topic, 0, batch(&["x"]));
    let answer = leader.ask(13, &fetch_request(&[(&stranger, 0, 0), (&topic, 0, 0)]));
    let found = fetched(&answer);
    assert_eq!(found[0].1.error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(found[1].1.error_code, ErrorCode::NONE);
    assert_eq!(values(found[1].1.records.as_ref()).len(), 1);
}

/// Kafka protocol behaviour 48: a client that believes in an older leader epoch is fenced, one
/// that knows a newer one is told so, and -1 is not checked.
#[test]
fn leader_epochs_are_checked() {
    let mut broker = Broker::start_new();
    let topic = Topic::new(&broker, "fenced");
    broker.restart_after_kill();
    let topic = Topic::find(&broker, &topic.name);
    let mut leader = topic.leader(&broker, 0);
    let current = describe(&mut leader, 12, &topic.name).partitions[0].leader_epoch;
    assert!(current > 0, "an unclean stop begins a new epoch");
    let mut error_with = |epoch| {
        let mut request = fetch_request(&[(&topic, 0, 0)]);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        only_partition(leader.ask(12, &request)).error_code
    };
    assert_eq!(error_with(current), ErrorCode::NONE);
    assert_eq!(error_with(-1), ErrorCode::NONE);
    assert_eq!(error_with(current - 1), ErrorCode::FENCED_LEADER_EPOCH);
    assert_eq!(error_with(current + 1), ErrorCode::UNKNOWN_LEADER_EPOCH);
}

/// Kafka protocol behaviour 49: a reader whose last epoch ends elsewhere is told where the logs
/// part, and gets no data; an epoch newer than the log is out of range.
#[test]
fn diverging_readers_are_told_where() {
    let mut broker = Broker::start_new();
    let topic = Topic::new(&broker, "diverging");
    let old = topic.leader(&broker, 0).write(&topic, 0, batch(&["of the first epoch"]));
    assert_eq!(old, 0);
    let epoch = epoch_of(&broker, &topic);
    broker.restart_after_kill();
    let topic = Topic::find(&broker, &topic.name);
    let mut leader = topic.leader(&broker, 0);
    assert_eq!(leader.write(&topic, 0, batch(&["of the second"])), 1);
    let mut fetch = |offset, last_fetched_epoch| {
        let mut request = fetch_request(&[(&topic, 0, offset)]);
        request.topics[0].partitions[0].last_fetched_epoch = last_fetched_epoch;
        request.max_wait_ms = i32::MAX; // none of these answers may wait (behaviour 44)
        only_partition(leader.ask(12, &request))
    };
    let agreed = fetch(1, epoch);
    assert_eq!(agreed.diverging_epoch.end_offset, -1);
    assert_eq!(values(agreed.records.as_ref()).len(), 1);
    let parted = fetch(2, epoch);
    assert_eq!((parted.diverging_epoch.epoch, parted.diverging_epoch.end_offset), (epoch, 1));
    assert_eq!(parted.error_code, ErrorCode::NONE);
    assert!(values(parted.records.as_ref()).is_empty());
    assert_eq!(fetch(1, epoch + 9).error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
}

/// Isolation levels other than 0 and 1 are an invalid request.
#[test]
fn odd_isolation_levels_are_refused() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "isolation");
    let mut leader = topic.leader(broker, 0);
    leader.write(&topic, 0, batch(&["x"]));
    let with =
        |isolation_level| FetchRequest { isolation_level, ..fetch_request(&[(&topic, 0, 0)]) };
    let committed = only_partition(leader.ask(12, &with(1)));
    assert_eq!(committed.aborted_transactions, Some(Vec::new()));
    assert_eq!(values(committed.records.as_ref()).len(), 1);
    assert_eq!(leader.ask(12, &with(2)).error_code, ErrorCode::INVALID_REQUEST);
}

fn epoch_of(broker: &Broker, topic: &Topic) -> i32 {
    describe(&mut broker.connect(0), 12, &topic.name).partitions[0].leader_epoch
}

/// A topic led by the same slot as another: this one, or the next one made.
fn same_leader(broker: &Broker, as_of: &Topic, mut topic: Topic) -> Topic {
    while topic.leaders != as_of.leaders {
        topic = Topic::new(broker, "same-leader");
    }
    topic
}
