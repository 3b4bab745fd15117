//! What is read or written in one go has a bound that the caller chooses, and what is longer is the
//! same when it is read or written elsewhere.

use bytes::Bytes;
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use protocol::messages::offset_fetch::{
    OffsetFetchResponse, OffsetFetchResponseGroup, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
};
use protocol::{Decoder, Encoder, Message, RequestHeader};

const VERSION: i16 = 8;
const PARTITIONS: usize = 100_000;

#[test]
fn a_request_with_more_elements_is_left_as_it_was() {
    let request = commit(PARTITIONS);
    let mut encoder = Encoder::new();
    request.encode(&mut encoder, VERSION);
    let mut decoder = Decoder::new(encoder.finish_contiguous());
    let before = decoder.remaining();
    let read = |decoder: &mut Decoder| OffsetCommitRequest::decode(decoder, VERSION);
    // One topic, and each partition.
    for limit in [0, 1, 2_000, PARTITIONS] {
        assert_eq!(decoder.within(limit, read), Ok(None), "{limit}");
        let left = (decoder.remaining(), decoder.elements(), decoder.heap_bytes());
        assert_eq!(left, (before, 0, 0), "{limit}");
    }
    assert_eq!(decoder.within(PARTITIONS + 1, read).unwrap().unwrap(), request);
    assert_eq!(decoder.elements(), PARTITIONS + 1);
}

#[test]
fn a_long_list_is_refused_before_it_is_begun() {
    let mut encoder = Encoder::new();
    commit(PARTITIONS).encode(&mut encoder, VERSION);
    let mut decoder = Decoder::new(encoder.finish_contiguous());
    let mut seen = 0;
    let within = decoder.within(2_000, |decoder| {
        let decoded = OffsetCommitRequest::decode(decoder, VERSION);
        seen = decoder.elements();
        decoded
    });
    assert_eq!((within, seen), (Ok(None), 1), "the topic, none of its partitions");
}

#[test]
fn tagged_fields_count_too() {
    // A header with 10,000 tagged fields of no bytes.
    let header = RequestHeader { api_key: 8, api_version: VERSION, ..RequestHeader::default() };
    let mut encoder = Encoder::new();
    header.encode(&mut encoder);
    let mut bytes = encoder.finish_contiguous().to_vec();
    assert_eq!(bytes.pop(), Some(0), "no tagged fields");
    bytes.extend([0x90, 0x4e]);
    bytes.extend([1, 0].repeat(10_000));
    let mut decoder = Decoder::new(Bytes::from(bytes));
    assert_eq!(decoder.within(9_999, RequestHeader::decode), Ok(None));
    assert_eq!(decoder.within(10_000, RequestHeader::decode), Ok(Some(header)));
}

#[test]
fn what_was_read_before_does_not_count() {
    let mut encoder = Encoder::new();
    for _ in 0..2 {
        commit(10).encode(&mut encoder, VERSION);
    }
    let mut decoder = Decoder::new(encoder.finish_contiguous());
    let read = |decoder: &mut Decoder| OffsetCommitRequest::decode(decoder, VERSION);
    assert!(decoder.within(11, read).unwrap().is_some());
    assert!(decoder.within(11, read).unwrap().is_some());
    assert_eq!(decoder.elements(), 22);
}

#[test]
fn an_answer_is_written_no_further_than_the_limit() {
    let answer = fetched(PARTITIONS, "");
    let whole = encoded(&answer, Encoder::new());
    let enough = Encoder::new().within(PARTITIONS + 2, usize::MAX);
    assert_eq!(encoded(&answer, enough), whole);
    for limit in [0, 1, 2, 2_000, PARTITIONS + 1] {
        let mut encoder = Encoder::new().within(limit, usize::MAX);
        answer.encode(&mut encoder, VERSION);
        assert!(encoder.is_exceeded(), "{limit}");
        assert!(encoder.len() <= 32 * (limit + 2), "{limit}: {} bytes", encoder.len());
    }
}

#[test]
fn long_elements_reach_the_limit_of_bytes() {
    let metadata = "m".repeat(4096);
    let answer = fetched(1_000, &metadata);
    let mut encoder = Encoder::new().within(usize::MAX, 512 << 10);
    answer.encode(&mut encoder, VERSION);
    assert!(encoder.is_exceeded());
    assert!(encoder.len() <= (512 << 10) + 2 * 4096, "{} bytes", encoder.len());
}

fn encoded(answer: &OffsetFetchResponse, mut encoder: Encoder) -> Bytes {
    answer.encode(&mut encoder, VERSION);
    assert!(!encoder.is_exceeded());
    encoder.finish_contiguous()
}

fn commit(partitions: usize) -> OffsetCommitRequest {
    let each = (0..partitions as i32).map(|partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 7,
        ..OffsetCommitRequestPartition::default()
    });
    let partitions = each.collect();
    let topic = OffsetCommitRequestTopic { name: "wide".into(), partitions, ..Default::default() };
    OffsetCommitRequest { group_id: "group".into(), topics: vec![topic], ..Default::default() }
}

fn fetched(partitions: usize, metadata: &str) -> OffsetFetchResponse {
    let each = (0..partitions as i32).map(|partition_index| OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: 7,
        metadata: Some(metadata.to_owned().into()),
        ..OffsetFetchResponsePartitions::default()
    });
    let partitions = each.collect();
    let topic = OffsetFetchResponseTopics { name: "wide".into(), partitions, ..Default::default() };
    let group = OffsetFetchResponseGroup { topics: vec![topic], ..Default::default() };
    OffsetFetchResponse { groups: vec![group], ..OffsetFetchResponse::default() }
}
