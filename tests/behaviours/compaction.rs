//! Compacted topics.

use bytes::Bytes;
use protocol::ErrorCode;
use protocol::batch::compression::Compression;
use protocol::batch::{BatchBuilder, Codec, NewRecord};
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};

use crate::broker::Broker;
use crate::groups::{commit, committed, coordinator};
use crate::scenario::{EARLIEST, LATEST, Topic, batch, batches, new_name, now_ms, wait_until};
use crate::wire::Connection;

/// A batch of keys with their values; none is a tombstone.
fn keyed(codec: Codec, records: &[(&str, Option<&str>)]) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::of(codec));
    for (key, value) in records {
        builder.append(&NewRecord {
            timestamp: now_ms(),
            key: Some(key.as_bytes()),
            value: value.map(str::as_bytes),
            headers: &[],
        });
    }
    builder.build()
}

/// All values that a reader gets who begins at `offset` and goes on to the end; tombstones as "-".
fn read_through(leader: &mut Connection, topic: &Topic, mut offset: i64) -> Vec<(i64, String)> {
    let end = leader.list_offset(topic, 0, LATEST).offset;
    let mut found = Vec::new();
    while offset < end {
        let data = leader.fetch_in(12, topic, 0, offset);
        assert_eq!(data.error_code, ErrorCode::NONE, "{data:?}");
        for (header, bytes) in batches(data.records.as_ref()) {
            found.extend(shown(&header, &bytes).into_iter().filter(|(at, _)| *at >= offset));
            offset = header.last_offset() + 1;
        }
    }
    found
}

fn shown(header: &protocol::batch::BatchHeader, batch: &Bytes) -> Vec<(i64, String)> {
    let body = match header.count {
        0 => Vec::new(),
        _ => {
            let codec = header.compression().unwrap();
            protocol::batch::decompress(codec, &batch[protocol::batch::HEADER_BYTES..], 1 << 20)
                .unwrap()
        }
    };
    let text = |value: Option<&[u8]>| {
        value.map_or("-".to_owned(), |value| String::from_utf8_lossy(value).into_owned())
    };
    protocol::batch::RecordIter::new(&body, header.count)
        .map(|record| record.unwrap())
        .map(|it| (header.base_offset + i64::from(it.offset_delta), text(it.value)))
        .collect()
}

const COMPACTED: [(&str, &str); 5] = [
    ("cleanup.policy", "compact"),
    ("min.cleanable.dirty.ratio", "0.01"),
    ("delete.retention.ms", "3600000"),
    // A segment takes a handful of batches.
    ("segment.index.bytes", "48"),
    ("index.interval.bytes", "0"),
];

/// Kafka protocol behaviour 58: compaction keeps the newest record of every key at its offset,
/// tombstones until their horizon, and the log's ends; a reader steps over the gaps, also after a
/// kill.
#[test]
fn compaction_keeps_the_newest_of_every_key_where_it_was() {
    let mut broker = Broker::start_with(&["log.cleaner.backoff.ms=20"]);
    let topic = Topic::with_configs(&broker, "table", &COMPACTED);
    let mut leader = topic.leader(&broker, 0);
    for (number, codec) in (0..40).zip(Codec::ALL.into_iter().cycle()) {
        let (first, second) = (format!("a{number}"), format!("b{number}"));
        leader.write(&topic, 0, keyed(codec, &[("a", Some(&first)), ("b", Some(&second))]));
    }
    leader.write(&topic, 0, keyed(Codec::None, &[("c", Some("gone")), ("d", Some("stays"))]));
    leader.write(&topic, 0, keyed(Codec::Zstd, &[("c", None)]));
    // What follows takes all of it out of the active segment.
    for number in 0..10 {
        let value = format!("e{number}");
        leader.write(&topic, 0, keyed(Codec::None, &[("e", Some(&value))]));
    }
    let compacted = [(78, "a39"), (79, "b39"), (81, "stays"), (82, "-")];
    let compacted = compacted.map(|(offset, value)| (offset, value.to_owned()));
    wait_until("it is compacted", || read_through(&mut leader, &topic, 0).starts_with(&compacted));
    assert_eq!(leader.list_offset(&topic, 0, EARLIEST).offset, 0);
    assert_eq!(leader.list_offset(&topic, 0, LATEST).offset, 93);
    assert_eq!(read_through(&mut leader, &topic, 50)[..4], compacted);
    assert_eq!(read_through(&mut leader, &topic, 80)[..2], compacted[2..]);
    let all = read_through(&mut leader, &topic, 0);
    assert_eq!(all.last(), Some(&(92, "e9".to_owned())));

    broker.restart_after_kill();
    let topic = Topic::find(&broker, &topic.name);
    let mut leader = topic.leader(&broker, 0);
    assert!(read_through(&mut leader, &topic, 0).starts_with(&compacted));
    assert_eq!(leader.write(&topic, 0, keyed(Codec::None, &[("e", Some("e10"))])), 93);
}

/// Kafka protocol behaviour 30: a record without a key has no place in a compacted topic.
#[test]
fn a_compacted_topic_takes_no_record_without_a_key() {
    let broker = Broker::shared();
    let topic = Topic::with_configs(broker, "keys-only", &COMPACTED);
    let mut leader = topic.leader(broker, 0);
    let refused = leader.produce(&topic, batch(&["no", "key"]));
    assert_eq!(refused.error_code, ErrorCode::INVALID_RECORD);
    let wrong: Vec<i32> = refused.record_errors.iter().map(|error| error.batch_index).collect();
    assert_eq!(wrong, [0, 1]);
    assert_eq!(leader.list_offset(&topic, 0, LATEST).offset, 0);
}

/// What a group says over and over is sealed and compacted long before a segment is full, and what
/// it said last stays.
#[test]
fn history_of_groups_is_compacted_by_itself() {
    let settings = ["log.cleaner.backoff.ms=50", "offsets.topic.num.partitions=1"];
    let mut broker = Broker::start_with(&settings);
    let (group, topic) = (new_name("group"), Topic::new(&broker, "read"));
    let mut connection = coordinator(&broker, &group);
    assert_eq!(commit(&mut connection, &group, ("", -1), (&topic, 1)), ErrorCode::NONE);
    let commits = (0..COMMITS).map(|committed_offset| OffsetCommitRequestPartition {
        committed_offset,
        ..OffsetCommitRequestPartition::default()
    });
    let (name, partitions) = (topic.name.clone(), commits.collect());
    let topics = vec![OffsetCommitRequestTopic { name, partitions, ..Default::default() }];
    let (group_id, topics) = (group.clone(), topics);
    let request = OffsetCommitRequest { group_id, topics, ..OffsetCommitRequest::default() };
    let answer = connection.ask(8, &request);
    assert!(answer.topics[0].partitions.iter().all(|it| it.error_code == ErrorCode::NONE));
    // Key and value without what a record adds to them.
    let record_bytes = 10 + group.len() + topic.name.len() + 24;
    let written = COMMITS as f64 * record_bytes as f64;
    let series = "coretide_partition_log_bytes{topic=\"__consumer_offsets\",partition=\"0\"} ";
    wait_until("a part of it is gone", || {
        let (_, page) = broker.http("GET /metrics");
        let line = page.lines().find_map(|line| line.strip_prefix(series));
        line.is_some_and(|bytes| bytes.parse::<f64>().unwrap() < written - HISTORY_BYTES)
    });
    assert_eq!(committed(&mut connection, &group, &topic), Some(COMMITS - 1));
    broker.restart_after_kill();
    let mut connection = coordinator(&broker, &group);
    assert_eq!(committed(&mut connection, &group, &topic), Some(COMMITS - 1));
}

const COMMITS: i64 = 40_000;
/// Less than what is sealed first.
const HISTORY_BYTES: f64 = 768.0 * 1024.0;
