//! Offsets: by mark, by time, by epoch, and where the log begins.

use protocol::ErrorCode;
use protocol::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use protocol::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest};
use protocol::messages::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use crate::broker::Broker;
use crate::scenario::{
    EARLIEST, LATEST, Topic, batch, batch_at, describe, list_offsets_request, new_name, wait_until,
};
use crate::wire::Connection;

/// Kafka protocol behaviour 59: retention by time goes by a segment's largest timestamp, so that
/// one record of the future pins it, and rolls the active segment first.
#[test]
fn retention_by_time_goes_by_the_largest_timestamp() {
    let broker = Broker::start_with(&["log.retention.check.interval.ms=50"]);
    let topic = Topic::create(&broker, new_name("by-time"), 4, &[("retention.ms", "60000")]);
    let mine: Vec<i32> = (0..4).filter(|&index| topic.leaders[index as usize] == 0).collect();
    let [old, pinned] = mine.as_slice() else { panic!("{:?}", topic.leaders) };
    let mut leader = broker.connect(0);
    leader.write(&topic, *pinned, batch(&["of now"]));
    leader.write(&topic, *pinned, batch_at(1_000, &["old"]));
    // The slot looks at one partition after the other: when the old one was emptied for the second
    // time, the pinned one has been looked at, too.
    for end in [2, 4] {
        leader.write(&topic, *old, batch_at(1_000, &["old", "old too"]));
        wait_until("the old segment goes", || {
            leader.list_offset(&topic, *old, EARLIEST).offset == end
        });
    }
    assert_eq!(leader.write(&topic, *old, batch(&["new"])), 4);
    assert_eq!(leader.list_offset(&topic, *pinned, EARLIEST).offset, 0);
    assert_eq!(leader.read(&topic, *pinned, 0).len(), 2);
}

/// Kafka protocol behaviour 50: the current epoch ends at the log's end, an older one where the
/// next begins; one that is not known has no end and is no error.
#[test]
fn epochs_end_where_the_next_begins() {
    let mut broker = Broker::start_new();
    let topic = Topic::new(&broker, "ends");
    let epoch = |broker: &Broker, topic: &Topic| {
        describe(&mut broker.connect(0), 12, &topic.name).partitions[0].leader_epoch
    };
    let first = epoch(&broker, &topic);
    topic.leader(&broker, 0).write(&topic, 0, batch(&["a", "b", "c"]));
    broker.restart_after_kill();
    let topic = Topic::find(&broker, &topic.name);
    let second = epoch(&broker, &topic);
    assert!(second > first);
    let mut leader = topic.leader(&broker, 0);
    leader.write(&topic, 0, batch(&["d"]));

    assert_eq!(end_of(&mut leader, &topic, -1, second), (ErrorCode::NONE, second, 4));
    assert_eq!(end_of(&mut leader, &topic, -1, first), (ErrorCode::NONE, first, 3));
    assert_eq!(end_of(&mut leader, &topic, second, first), (ErrorCode::NONE, first, 3));
    assert_eq!(end_of(&mut leader, &topic, -1, second + 5), (ErrorCode::NONE, -1, -1));
    assert_eq!(end_of(&mut leader, &topic, -1, -2), (ErrorCode::NONE, -2, 0));
    assert_eq!(end_of(&mut leader, &topic, first, first).0, ErrorCode::FENCED_LEADER_EPOCH);
    assert_eq!(end_of(&mut leader, &topic, second + 1, first).0, ErrorCode::UNKNOWN_LEADER_EPOCH);
}

/// Kafka protocol behaviour 51: the marks of ListOffsets, each from its version on.
#[test]
fn marks_of_list_offsets() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "marks");
    let mut leader = topic.leader(broker, 0);
    leader.write(&topic, 0, batch_at(1_000, &["a", "b", "c"]));
    leader.write(&topic, 0, batch_at(500, &["d"]));
    delete_to(&mut leader, &topic, 1);
    let marks = [
        (LATEST, 1, 4, -1),
        (EARLIEST, 1, 1, -1),
        (-3, 7, 2, 1_002),
        (-4, 8, 1, -1),
        (-5, 9, -1, -1),
        (-6, 11, -1, -1),
    ];
    for (mark, since, offset, timestamp) in marks {
        for version in 1..=11 {
            let found = leader.list_offset_in(version, &topic, 0, mark);
            if version < since {
                assert_eq!(found.error_code, ErrorCode::UNSUPPORTED_VERSION, "{mark} v{version}");
                continue;
            }
            let told = (found.error_code, found.offset, found.timestamp);
            assert_eq!(told, (ErrorCode::NONE, offset, timestamp), "{mark} v{version}");
        }
    }
    let unknown = leader.list_offset_in(11, &topic, 0, -7);
    assert_eq!(unknown.error_code, ErrorCode::UNSUPPORTED_VERSION);
}

/// Kafka protocol behaviour 51: without transactions the last stable offset is the high watermark,
/// so both isolation levels see the same end.
#[test]
fn both_isolation_levels_see_the_same_end() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "stable");
    let mut leader = topic.leader(broker, 0);
    leader.write(&topic, 0, batch(&["a", "b"]));
    for (isolation_level, error, offset) in
        [(0, ErrorCode::NONE, 2), (1, ErrorCode::NONE, 2), (2, ErrorCode::INVALID_REQUEST, -1)]
    {
        let latest = ListOffsetsPartition { timestamp: LATEST, ..Default::default() };
        let request =
            ListOffsetsRequest { isolation_level, ..list_offsets_request(&topic, vec![latest]) };
        let found = leader.ask(9, &request).topics.remove(0).partitions.remove(0);
        assert_eq!((found.error_code, found.offset), (error, offset));
    }
}

/// Kafka protocol behaviour 52: a time finds the first record that is not older; none is offset -1
/// without error. The epoch is told from version 4 on.
#[test]
fn times_find_the_first_record_not_older() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "times");
    let mut leader = topic.leader(broker, 0);
    leader.write(&topic, 0, batch_at(1_000, &["a", "b", "c"]));
    leader.write(&topic, 0, batch_at(2_000, &["d"]));
    leader.write(&topic, 0, batch_at(1_500, &["late"]));
    let expected = [
        (0, 0, 1_000),
        (1_000, 0, 1_000),
        (1_001, 1, 1_001),
        (1_002, 2, 1_002),
        (1_003, 3, 2_000),
        (2_000, 3, 2_000),
        (2_001, -1, -1),
    ];
    for (time, offset, timestamp) in expected {
        let found = leader.list_offset(&topic, 0, time);
        let told = (found.error_code, found.offset, found.timestamp);
        assert_eq!(told, (ErrorCode::NONE, offset, timestamp), "time {time}");
    }
    let epoch = describe(&mut leader, 12, &topic.name).partitions[0].leader_epoch;
    assert_eq!(leader.list_offset_in(4, &topic, 0, 1_000).leader_epoch, epoch);
    assert_eq!(leader.list_offset_in(3, &topic, 0, 1_000).leader_epoch, -1);
}

/// Kafka protocol behaviour 54: a partition that is named twice is an invalid request, told once.
#[test]
fn a_partition_listed_twice_is_refused() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "listed-twice");
    let latest = ListOffsetsPartition { timestamp: LATEST, ..Default::default() };
    let request = list_offsets_request(&topic, vec![latest.clone(), latest]);
    let answer = topic.leader(broker, 0).ask(9, &request);
    let errors: Vec<_> = answer.topics[0].partitions.iter().map(|it| it.error_code).collect();
    assert_eq!(errors, [ErrorCode::INVALID_REQUEST]);
}

/// Kafka protocol behaviour 57: -1 deletes to the high watermark, an offset may lie inside a batch,
/// and beyond the high watermark is out of range.
#[test]
fn records_are_deleted_up_to_an_offset() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "delete-records");
    let mut leader = topic.leader(broker, 0);
    leader.write(&topic, 0, batch(&["a", "b", "c"]));
    leader.write(&topic, 0, batch(&["d"]));
    assert_eq!(delete_to(&mut leader, &topic, 2), (ErrorCode::NONE, 2));
    assert_eq!(leader.list_offset(&topic, 0, EARLIEST).offset, 2);
    assert_eq!(leader.fetch_in(12, &topic, 0, 1).error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!(leader.read(&topic, 0, 2).last(), Some(&(3, "d".to_owned())));
    assert_eq!(delete_to(&mut leader, &topic, 1), (ErrorCode::NONE, 2), "it never goes back");
    assert_eq!(delete_to(&mut leader, &topic, 5), (ErrorCode::OFFSET_OUT_OF_RANGE, -1));
    assert_eq!(delete_to(&mut leader, &topic, -2), (ErrorCode::OFFSET_OUT_OF_RANGE, -1));
    assert_eq!(delete_to(&mut leader, &topic, -1), (ErrorCode::NONE, 4));
    assert_eq!(leader.write(&topic, 0, batch(&["e"])), 4);
}

/// Kafka protocol behaviour 59: retention by size never cuts below the limit and never touches the
/// active segment.
#[test]
fn retention_by_size_keeps_the_limit() {
    let broker = Broker::start_with(&["log.retention.check.interval.ms=50"]);
    let configs = [("segment.bytes", "1048576"), ("retention.bytes", "1500000")];
    let topic = Topic::with_configs(&broker, "by-size", &configs);
    let mut leader = topic.leader(&broker, 0);
    let value = "x".repeat(600_000); // one batch for each segment, as two do not fit
    for offset in 0..6 {
        assert_eq!(leader.write(&topic, 0, batch(&[&value])), offset);
    }
    // 1.5 MB need three batches of 0.6 MB: two would be below the limit.
    wait_until("old segments go", || leader.list_offset(&topic, 0, EARLIEST).offset == 3);
    assert_eq!(leader.list_offset(&topic, 0, LATEST).offset, 6);
    assert_eq!(leader.read(&topic, 0, 3)[0].0, 3);
}

/// Kafka protocol behaviour 53: with one replica the high watermark is never behind the start of
/// an epoch, so after an unclean stop offsets are told at once, and none that was lost.
#[test]
fn offsets_are_told_at_once_after_an_election() {
    let mut broker = Broker::start_new();
    let topic = Topic::on_both_slots(&broker, "elected");
    for partition in [0, 1] {
        topic.leader(&broker, partition).write(&topic, partition, batch_at(1_000, &["a", "b"]));
    }
    for _ in 0..2 {
        broker.restart_after_kill();
        for partition in [0, 1] {
            let mut leader = topic.leader(&broker, partition);
            for (asked, offset) in [(LATEST, 2), (EARLIEST, 0), (1_001, 1)] {
                let found = leader.list_offset_in(5, &topic, partition, asked);
                assert_eq!((found.error_code, found.offset), (ErrorCode::NONE, offset), "{asked}");
            }
        }
    }
}

/// Error and low watermark of a deletion.
pub fn delete_to(leader: &mut Connection, topic: &Topic, offset: i64) -> (ErrorCode, i64) {
    let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset }];
    let topics = vec![DeleteRecordsTopic { name: topic.name.clone(), partitions }];
    let answer = leader.ask(2, &DeleteRecordsRequest { topics, timeout_ms: 30_000 });
    let result = &answer.topics[0].partitions[0];
    (result.error_code, result.low_watermark)
}

/// Error, epoch and end offset that OffsetForLeaderEpoch tells.
pub fn end_of(
    leader: &mut Connection,
    topic: &Topic,
    current_leader_epoch: i32,
    leader_epoch: i32,
) -> (ErrorCode, i32, i64) {
    let asked = OffsetForLeaderPartition { partition: 0, current_leader_epoch, leader_epoch };
    let topics = vec![OffsetForLeaderTopic { topic: topic.name.clone(), partitions: vec![asked] }];
    let answer = leader.ask(4, &OffsetForLeaderEpochRequest { replica_id: -1, topics });
    let end = &answer.topics[0].partitions[0];
    (end.error_code, end.leader_epoch, end.end_offset)
}
