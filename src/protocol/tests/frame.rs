//! Headers, frames and records: the parts of the wire that are not a message body.

use bytes::Bytes;
use protocol::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};
use protocol::{
    ApiKey, Decoder, Encoder, Fault, Message, Records, RequestHeader, ResponseHeader, Str,
};

/// A produce request of one batch in two pieces.
fn request(records: Records) -> ProduceRequest {
    let partition = PartitionProduceData { index: 7, records: Some(records) };
    let partition_data = vec![partition];
    let topic =
        TopicProduceData { name: "orders".into(), partition_data, ..TopicProduceData::default() };
    ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..Default::default() }
}

#[test]
fn records_leave_as_the_very_slices_they_came_as() {
    let (one, two) = (Bytes::from(vec![1; 100]), Bytes::from(vec![2; 50]));
    let records: Records = [one.clone(), Bytes::new(), two.clone()].into_iter().collect();
    let header = RequestHeader { api_key: 0, api_version: 9, ..RequestHeader::default() };
    let mut encoder = Encoder::framed(64);
    header.encode(&mut encoder);
    request(records.clone()).encode(&mut encoder, 9);
    let slices = encoder.finish();
    let at: Vec<_> = slices.iter().map(|slice| slice.as_ptr()).collect();
    assert!(at.contains(&one.as_ptr()) && at.contains(&two.as_ptr()));

    let frame = Bytes::from(slices.concat());
    let size = i32::from_be_bytes(*frame.first_chunk().unwrap());
    assert_eq!(size as usize, frame.len() - 4);
    let mut decoder = Decoder::new(frame.slice(4..));
    assert_eq!(RequestHeader::decode(&mut decoder).unwrap(), header);
    let back = ProduceRequest::decode(&mut decoder, 9).unwrap();
    assert_eq!((back.clone(), decoder.remaining()), (request(records), 0));
    let batch = back.topic_data[0].partition_data[0].records.clone().unwrap().into_bytes();
    let inside = frame.as_ptr_range();
    assert!(inside.contains(&batch.as_ptr()), "decoded records are a slice of the frame");
}

/// Kafka 4.4 refuses a negative number of tags and one above the number of bytes that are left.
#[test]
fn a_number_of_tags_that_cannot_be_is_refused() {
    let header = RequestHeader { api_key: 3, api_version: 12, correlation_id: 77, client_id: None };
    let mut encoder = Encoder::new();
    header.encode(&mut encoder);
    let whole = encoder.finish_contiguous();
    for count in [&[5][..], &[0xff, 0xff, 0xff, 0xff, 0x07], &[0xff, 0xff, 0xff, 0xff, 0x0f]] {
        let frame = [&whole[..whole.len() - 1], count, &[1, 0, 0, 0]].concat();
        let refused = RequestHeader::decode(&mut Decoder::new(frame.into())).unwrap_err();
        assert_eq!(refused.fault, Fault::Truncated, "{count:?}");
    }
}

#[test]
fn the_header_has_tags_exactly_where_the_version_is_flexible() {
    for &key in protocol::versions::all() {
        for version in key.spec().advertised.iter() {
            let header = RequestHeader {
                api_key: key.number(),
                api_version: version,
                correlation_id: 77,
                client_id: Some("c".into()),
            };
            let mut encoder = Encoder::new();
            header.encode(&mut encoder);
            let frame = encoder.finish_contiguous();
            let flexible = key.spec().is_flexible(version);
            assert_eq!(frame.len(), 11 + usize::from(flexible), "{key:?} {version}");
            for cut in 0..frame.len() {
                let cut = frame.slice(..cut);
                assert!(RequestHeader::decode(&mut Decoder::new(cut)).is_err(), "{key:?}");
            }
            assert_eq!(RequestHeader::decode(&mut Decoder::new(frame)).unwrap(), header);

            let mut encoder = Encoder::new();
            ResponseHeader { correlation_id: 77 }.encode(&mut encoder, key, version);
            let tagged = flexible && key != ApiKey::ApiVersions;
            assert_eq!(encoder.len(), 4 + usize::from(tagged), "{key:?} {version}");
        }
    }
}

#[test]
fn unknown_apis_and_versions_are_told_apart_from_damage() {
    let unknown = Bytes::from_static(&[0, 120, 0, 0, 0, 0, 0, 0, 255, 255]);
    let fault = RequestHeader::decode(&mut Decoder::new(unknown)).unwrap_err().fault;
    assert_eq!(fault, Fault::UnknownApi);
    let fault = ProduceRequest::decode(&mut Decoder::new(Bytes::new()), 2).unwrap_err().fault;
    assert_eq!(fault, Fault::UnknownVersion);
    let error = ProduceResponse::decode(&mut Decoder::new(Bytes::new()), 3).unwrap_err();
    assert_eq!((error.fault, error.field), (Fault::Truncated, "ProduceResponse.responses"));
}

#[test]
fn text_that_is_not_utf8_is_served_with_replacement_characters() {
    assert_eq!(Str::from_wire(Bytes::from_static(b"a\xffb")), "a\u{fffd}b");
}

#[test]
fn text_too_long_for_the_wire_ends_with_the_last_character_that_fits() {
    let long: Str = "é".repeat(20_000).into();
    let mut encoder = Encoder::new();
    let header = RequestHeader { client_id: Some(long), ..RequestHeader::default() };
    header.encode(&mut encoder);
    let mut decoder = Decoder::new(encoder.finish_contiguous());
    let back = RequestHeader::decode(&mut decoder).unwrap();
    assert_eq!(back.client_id.unwrap().len(), 32_766);
}
