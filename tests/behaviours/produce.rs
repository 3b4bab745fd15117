//! What becomes of a batch that a client writes.

use bytes::Bytes;
use protocol::batch::header::crc_ok;
use protocol::batch::{
    BatchBuilder, BatchHeader, Codec, Compression, HEADER_BYTES, NewRecord, TimestampType,
};
use protocol::messages::produce::{PartitionProduceData, ProduceRequest};
use protocol::{ErrorCode, Records, Str, Uuid};

use crate::broker::Broker;
use crate::configs::set_topic_config;
use crate::offsets::delete_to;
use crate::scenario::{
    ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT, Topic, altered, batch, batch_at, batches, compressed,
    describe, fill, now_ms, only_outcome, produce_request, values,
};

/// Kafka protocol behaviour 26: a partition takes exactly one batch, of format 2, whose count and
/// offsets agree and whose checksum is right.
#[test]
fn a_partition_takes_exactly_one_sound_batch() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "sound");
    let mut leader = topic.leader(broker, 0);
    let good = batch(&["a", "b"]);
    let two = Bytes::from([&good[..], &good[..]].concat());
    let mut corrupt = good.to_vec();
    corrupt[HEADER_BYTES + 3] ^= 0x40;
    let mut unknown_magic = good.to_vec();
    unknown_magic[16] = 3;
    let mut old_magic = good.to_vec();
    old_magic[16] = 1;

    let refused = [
        (two, ErrorCode::INVALID_RECORD),
        (Bytes::new(), ErrorCode::INVALID_RECORD),
        (good.slice(..good.len() - 1), ErrorCode::INVALID_RECORD),
        (old_magic.into(), ErrorCode::INVALID_RECORD),
        (unknown_magic.into(), ErrorCode::CORRUPT_MESSAGE),
        (corrupt.into(), ErrorCode::CORRUPT_MESSAGE),
        (altered(&good, LAST_OFFSET_DELTA_AT, &[0, 0, 0, 5]), ErrorCode::INVALID_RECORD),
        (altered(&good, 0, &5i64.to_be_bytes()), ErrorCode::INVALID_RECORD),
    ];
    for (case, (bytes, error)) in refused.into_iter().enumerate() {
        let outcome = leader.produce(&topic, bytes);
        assert_eq!((outcome.error_code, outcome.base_offset), (error, -1), "case {case}");
    }
    let nothing = only_outcome(leader.ask(9, &produce_request(-1, &topic, 0, None)));
    assert_eq!(nothing.error_code, ErrorCode::INVALID_RECORD);
    assert_eq!(leader.write(&topic, 0, good), 0, "nothing of this was kept");
}

/// Kafka protocol behaviour 27: zstd is refused below Produce 7.
#[test]
fn zstd_needs_version_7() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "zstd");
    let mut leader = topic.leader(broker, 0);
    let zstd = compressed(Codec::Zstd, &["x"]);
    for version in 3..=6 {
        let outcome = leader.produce_in(version, &topic, 0, zstd.clone());
        assert_eq!(outcome.error_code, ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
    }
    assert_eq!(leader.produce_in(7, &topic, 0, zstd).error_code, ErrorCode::NONE);
}

/// Kafka protocol behaviour 28: max.message.bytes is compared with the batch as it is compressed;
/// beyond segment.bytes it is RECORD_LIST_TOO_LARGE.
#[test]
fn batches_are_measured_compressed() {
    let broker = Broker::shared();
    let topic = Topic::with_configs(broker, "measured", &[("max.message.bytes", "1000")]);
    let mut leader = topic.leader(broker, 0);
    let long = "x".repeat(5_000);
    let outcome = leader.produce(&topic, batch(&[&long]));
    assert_eq!((outcome.error_code, outcome.log_start_offset), (ErrorCode::MESSAGE_TOO_LARGE, -1));
    assert_eq!(leader.write(&topic, 0, compressed(Codec::Gzip, &[&long])), 0);

    let configs = [("max.message.bytes", "3000000"), ("segment.bytes", "1048576")];
    let topic = Topic::with_configs(broker, "over-segment", &configs);
    let huge = "x".repeat(1_200_000);
    let outcome = topic.leader(broker, 0).produce(&topic, batch(&[&huge]));
    assert_eq!(outcome.error_code, ErrorCode::RECORD_LIST_TOO_LARGE);
}

/// Kafka protocol behaviour 28: the limit holds again after recompression.
#[test]
fn batches_are_measured_again_after_recompression() {
    let broker = Broker::shared();
    let configs = [("max.message.bytes", "1000"), ("compression.type", "uncompressed")];
    let topic = Topic::with_configs(broker, "remeasured", &configs);
    let small_on_the_wire = compressed(Codec::Gzip, &[&"x".repeat(5_000)]);
    let outcome = topic.leader(broker, 0).produce(&topic, small_on_the_wire);
    assert_eq!(outcome.error_code, ErrorCode::MESSAGE_TOO_LARGE);
}

/// Kafka protocol behaviour 29: a batch over today's limit that is in the log stays readable.
#[test]
fn old_batches_may_be_over_the_limit() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "lowered");
    let mut leader = topic.leader(broker, 0);
    let long = "x".repeat(5_000);
    leader.write(&topic, 0, batch(&[&long]));
    set_topic_config(broker, &topic, "max.message.bytes", "1000");
    let outcome = leader.produce(&topic, batch(&[&long]));
    assert_eq!(outcome.error_code, ErrorCode::MESSAGE_TOO_LARGE);
    assert_eq!(leader.read(&topic, 0, 0), [(0, long)]);
}

/// Kafka protocol behaviour 31: a CreateTime outside the topic's window is refused; by default a
/// record may be at most an hour ahead.
#[test]
fn timestamps_outside_the_window_are_refused() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "window");
    let mut leader = topic.leader(broker, 0);
    let hour = 3_600_000;
    let outcome = leader.produce(&topic, batch_at(now_ms() + 2 * hour, &["ahead"]));
    assert_eq!(outcome.error_code, ErrorCode::INVALID_TIMESTAMP);
    assert_eq!(outcome.log_start_offset, 0, "a refused record tells the real log start");
    assert_eq!(outcome.record_errors.len(), 1);
    assert_eq!(leader.write(&topic, 0, batch_at(now_ms() + hour / 2, &["a bit"])), 0);
    assert_eq!(leader.write(&topic, 0, batch_at(1, &["of 1970"])), 1);

    let configs = [("message.timestamp.before.max.ms", "60000")];
    let topic = Topic::with_configs(broker, "window-before", &configs);
    let outcome = topic.leader(broker, 0).produce(&topic, batch_at(now_ms() - hour, &["late"]));
    assert_eq!(outcome.error_code, ErrorCode::INVALID_TIMESTAMP);
}

/// Kafka protocol behaviour 31: the LogAppendTime bit is the broker's to set: a topic of that kind
/// refuses it, any other clears it.
#[test]
fn the_log_append_time_bit_is_not_the_clients() {
    let broker = Broker::shared();
    let marked = altered(&batch(&["x"]), ATTRIBUTES_AT, &[0, 8]);
    let topic = Topic::new(broker, "create-time");
    let mut leader = topic.leader(broker, 0);
    leader.write(&topic, 0, marked.clone());
    let kept = leader.fetch_in(12, &topic, 0, 0).records;
    assert_eq!(batches(kept.as_ref())[0].0.timestamp_type(), TimestampType::CreateTime);

    let configs = [("message.timestamp.type", "LogAppendTime")];
    let topic = Topic::with_configs(broker, "append-time-bit", &configs);
    let outcome = topic.leader(broker, 0).produce(&topic, marked);
    assert_eq!(outcome.error_code, ErrorCode::INVALID_TIMESTAMP);
}

/// Kafka protocol behaviour 32: a LogAppendTime topic stamps the batch and says with what; others
/// answer -1.
#[test]
fn log_append_time_is_stamped_and_told() {
    let broker = Broker::shared();
    let configs = [("message.timestamp.type", "LogAppendTime")];
    let topic = Topic::with_configs(broker, "append-time", &configs);
    let mut leader = topic.leader(broker, 0);
    let before = now_ms();
    let outcome = leader.produce(&topic, batch_at(1, &["old", "older"]));
    assert_eq!(outcome.error_code, ErrorCode::NONE);
    assert!((before..=now_ms()).contains(&outcome.log_append_time_ms), "{outcome:?}");
    let data = leader.fetch_in(12, &topic, 0, 0);
    let (header, bytes) = &batches(data.records.as_ref())[0];
    assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
    assert_eq!(header.max_timestamp, outcome.log_append_time_ms);
    assert!(crc_ok(bytes));

    let topic = Topic::new(broker, "create-time-told");
    let outcome = topic.leader(broker, 0).produce(&topic, batch(&["x"]));
    assert_eq!(outcome.log_append_time_ms, -1);
}

/// Kafka protocol behaviour 33: clients write neither control batches nor internal topics.
#[test]
fn control_batches_are_not_the_clients() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "control");
    let builder = BatchBuilder::new(Compression::None).producer(1, 0, 0).transactional().control();
    let outcome = topic.leader(broker, 0).produce(&topic, fill(builder, now_ms(), &["marker"]));
    assert_ne!(outcome.error_code, ErrorCode::NONE);
    assert!(topic.leader(broker, 0).read(&topic, 0, 0).is_empty());
    let builder = BatchBuilder::new(Compression::None).control();
    let outcome = topic.leader(broker, 0).produce(&topic, fill(builder, now_ms(), &["marker"]));
    assert_eq!(outcome.error_code, ErrorCode::INVALID_RECORD);
}

/// Kafka protocol behaviour 34: with a compression.type of its own a topic recompresses what comes
/// in another codec; records, producer id, epoch and sequence stay, offsets become dense.
#[test]
fn a_topic_recompresses_to_its_own_codec() {
    let broker = Broker::shared();
    let codecs = [
        ("gzip", Codec::Gzip),
        ("snappy", Codec::Snappy),
        ("lz4", Codec::Lz4),
        ("zstd", Codec::Zstd),
    ];
    for (name, codec) in codecs {
        let topic = Topic::with_configs(broker, name, &[("compression.type", name)]);
        let mut leader = topic.leader(broker, 0);
        let producer = leader.new_producer();
        let builder = BatchBuilder::new(Compression::of(Codec::Gzip));
        let builder = builder.producer(producer.0, producer.1, 0);
        leader.write(&topic, 0, fill(builder, now_ms(), &["a", "b", "c"]));
        leader.write(&topic, 0, batch(&["d"]));
        let data = leader.fetch_in(12, &topic, 0, 0);
        let kept = batches(data.records.as_ref());
        for (header, bytes) in &kept {
            assert_eq!(header.compression(), Ok(codec));
            assert!(crc_ok(bytes));
        }
        let first = &kept[0].0;
        let kept_producer = (first.producer_id, first.producer_epoch, first.base_sequence);
        assert_eq!(kept_producer, (producer.0, producer.1, 0));
        let offsets: Vec<_> = values(data.records.as_ref());
        let expected = ["a", "b", "c", "d"].map(str::to_owned);
        assert_eq!(offsets, (0..).zip(expected).collect::<Vec<_>>());
    }
}

/// Each codec that comes in leaves as it came where the topic does not say otherwise.
#[test]
fn batches_stay_as_the_producer_compressed_them() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "as-sent");
    let mut leader = topic.leader(broker, 0);
    let codecs = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
    let sent: Vec<Bytes> = codecs.iter().map(|codec| compressed(*codec, &["a", "b"])).collect();
    for bytes in &sent {
        leader.write(&topic, 0, bytes.clone());
    }
    let data = leader.fetch_in(12, &topic, 0, 0);
    let kept = batches(data.records.as_ref());
    assert_eq!(kept.len(), sent.len());
    for ((_, kept), sent) in kept.iter().zip(&sent) {
        assert_eq!(kept[16..], sent[16..], "all but the offset and the epoch");
    }
}

/// Kafka protocol behaviour 35: acks other than -1, 0 and 1 are refused.
#[test]
fn odd_acks_are_refused() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "acks");
    let mut leader = topic.leader(broker, 0);
    for acks in [2, -2, i16::MAX] {
        let outcome = only_outcome(leader.ask(9, &produce_request(acks, &topic, 0, batch(&["x"]))));
        assert_eq!(outcome.error_code, ErrorCode::INVALID_REQUIRED_ACKS);
        assert_eq!(outcome.log_start_offset, -1);
    }
    assert!(leader.read(&topic, 0, 0).is_empty());
}

/// Kafka protocol behaviour 36: acks=1 waits for the append; consumers see records up to the high
/// watermark, and what was acknowledged is below it.
#[test]
fn acknowledged_records_are_visible() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "acks1");
    let mut leader = topic.leader(broker, 0);
    for (count, acks) in (1..).zip([1, -1, 1, -1]) {
        let outcome = only_outcome(leader.ask(9, &produce_request(acks, &topic, 0, batch(&["x"]))));
        assert_eq!((outcome.error_code, outcome.base_offset), (ErrorCode::NONE, count - 1));
        let data = leader.fetch_in(12, &topic, 0, count - 1);
        assert_eq!((data.high_watermark, data.last_stable_offset), (count, count));
        assert_eq!(values(data.records.as_ref()), [(count - 1, "x".to_owned())]);
    }
}

/// Kafka protocol behaviour 37: the broker stamps the leader epoch into the batch, outside the
/// checksum, which therefore stays right.
#[test]
fn the_leader_epoch_is_stamped_outside_the_checksum() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "stamped");
    let mut leader = topic.leader(broker, 0);
    let sent = batch(&["x"]);
    let sent_header = BatchHeader::parse(&sent).unwrap();
    assert_eq!(sent_header.partition_leader_epoch, -1);
    leader.write(&topic, 0, batch(&["first"]));
    leader.write(&topic, 0, sent);
    let data = leader.fetch_in(12, &topic, 0, 1);
    let (header, bytes) = &batches(data.records.as_ref())[0];
    let latest = leader.list_offset(&topic, 0, -1);
    assert_eq!(header.partition_leader_epoch, latest.leader_epoch);
    assert!(header.partition_leader_epoch >= 0);
    assert_eq!((header.base_offset, header.crc), (1, sent_header.crc));
    assert!(crc_ok(bytes));
}

/// The same partition twice in a request is one append and one outcome; an empty list of
/// partitions is answered with none.
#[test]
fn a_partition_named_twice_is_appended_once() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "twice");
    let mut leader = topic.leader(broker, 0);
    let mut request = produce_request(-1, &topic, 0, batch(&["first"]));
    let again = PartitionProduceData { index: 0, records: Some(Records::from(batch(&["last"]))) };
    request.topic_data[0].partition_data.push(again);
    let outcome = only_outcome(leader.ask(9, &request));
    assert_eq!((outcome.error_code, outcome.base_offset), (ErrorCode::NONE, 0));
    assert_eq!(leader.read(&topic, 0, 0).len(), 1);
    let nothing = ProduceRequest { acks: -1, timeout_ms: 1_000, ..Default::default() };
    assert!(leader.ask(9, &nothing).responses.is_empty());
}

/// Keys, null values and headers come back as they were sent.
#[test]
fn records_come_back_as_they_were_sent() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "whole");
    let mut leader = topic.leader(broker, 0);
    let headers = [("h", Some(&b"1"[..])), ("h", None), ("", Some(&b""[..]))];
    let mut builder = BatchBuilder::new(Compression::None);
    let timestamp = now_ms();
    builder.append(&NewRecord { timestamp, key: Some(b"k"), value: None, headers: &headers });
    let sent = builder.build();
    leader.write(&topic, 0, sent.clone());
    let data = leader.fetch_in(12, &topic, 0, 0);
    let kept = batches(data.records.as_ref());
    assert_eq!(kept[0].1[HEADER_BYTES..], sent[HEADER_BYTES..]);
}

/// Kafka protocol behaviour 33: topics that the broker writes itself are closed to clients.
#[test]
fn internal_topics_are_not_the_clients() {
    let broker = Broker::shared();
    let topic = Topic::create(broker, Str::from_static("__transaction_state"), 1, &[]);
    let mut leader = topic.leader(broker, 0);
    let outcome = leader.produce(&topic, batch(&["x"]));
    assert_eq!(outcome.error_code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    assert_eq!(delete_to(&mut leader, &topic, 0).0, ErrorCode::INVALID_TOPIC_EXCEPTION);
    assert!(describe(&mut leader, 12, &topic.name).is_internal);
    topic.delete(broker);
}

/// Lengths that no batch can have are CORRUPT_MESSAGE, and the connection stays.
#[test]
fn impossible_batch_lengths_are_corrupt() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "lengths");
    let mut leader = topic.leader(broker, 0);
    for length in [-1i32, 0, 13, 48, i32::MIN] {
        let mut bytes = batch(&["x"]).to_vec();
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        let outcome = leader.produce(&topic, bytes.into());
        assert_eq!(outcome.error_code, ErrorCode::CORRUPT_MESSAGE, "{length}");
        assert_eq!(outcome.log_start_offset, -1);
    }
    assert_eq!(leader.write(&topic, 0, batch(&["x"])), 0);
}

/// Codecs that do not exist, and payloads that are not what their codec says, have errors of their
/// own instead of UNKNOWN_SERVER_ERROR.
#[test]
fn impossible_compression_is_told() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "codecs");
    let mut leader = topic.leader(broker, 0);
    for codec in 5..=7 {
        let outcome = leader.produce(&topic, altered(&batch(&["x"]), ATTRIBUTES_AT, &[0, codec]));
        assert_eq!(outcome.error_code, ErrorCode::UNSUPPORTED_COMPRESSION_TYPE, "codec {codec}");
    }
    for codec in 1..=4 {
        let outcome = leader.produce(&topic, altered(&batch(&["x"]), ATTRIBUTES_AT, &[0, codec]));
        assert_eq!(outcome.error_code, ErrorCode::CORRUPT_MESSAGE, "codec {codec}");
    }
    assert!(leader.read(&topic, 0, 0).is_empty());
}

/// A transactional batch without a transactional id is refused, and so is one that was not added
/// to a transaction: none can be begun yet.
#[test]
fn transactional_batches_are_refused() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "transactional");
    let mut leader = topic.leader(broker, 0);
    let bytes = || {
        let builder = BatchBuilder::new(Compression::None).producer(7, 0, 0).transactional();
        fill(builder, now_ms(), &["x"])
    };
    let outcome = leader.produce(&topic, bytes());
    assert_eq!(outcome.error_code, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    for (version, error) in
        [(10, ErrorCode::INVALID_TXN_STATE), (11, ErrorCode::TRANSACTION_ABORTABLE)]
    {
        let mut request = produce_request(-1, &topic, 0, bytes());
        request.transactional_id = Some(Str::from_static("t"));
        assert_eq!(only_outcome(leader.ask(version, &request)).error_code, error);
    }
    assert!(leader.read(&topic, 0, 0).is_empty());
}

/// Topics are named by id from version 13 on.
#[test]
fn topics_are_written_by_id_from_version_13() {
    let broker = Broker::shared();
    let topic = Topic::new(broker, "by-id");
    let nameless = Topic { name: Str::EMPTY, ..topic.clone() };
    let mut leader = topic.leader(broker, 0);
    let answer = leader.ask(13, &produce_request(-1, &nameless, 0, batch(&["x"])));
    assert_eq!(answer.responses[0].topic_id, topic.id);
    assert_eq!(only_outcome(answer).error_code, ErrorCode::NONE);
    let stranger = Topic { id: Uuid([5; 16]), ..topic.clone() };
    let outcome = leader.produce_in(13, &stranger, 0, batch(&["x"]));
    assert_eq!(outcome.error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    assert_eq!(leader.read(&topic, 0, 0).len(), 1);
}
