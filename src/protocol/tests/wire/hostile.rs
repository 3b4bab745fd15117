//! Bodies that are cut short or lie about what is in them.

use bytes::Bytes;
use protocol::messages::metadata::MetadataRequest;
use protocol::messages::produce::ProduceRequest;
use protocol::{Decoder, Fault, Message};

use crate::allocation::peak_during;
use crate::for_every_message;
use crate::value::{self, Form};

/// Heap a body may cost for each of its bytes: a one-byte string is a structure of 32, and a list
/// that grows holds its old and its new room for a moment.
const HEAP_BYTES_PER_BYTE: usize = 128;

#[test]
fn a_body_cut_anywhere_is_an_error() {
    for_every_message(4, |case, version, schemas, entropy| {
        let schema = schemas.get(case.name);
        let value = value::random(&schema.fields, version, entropy);
        let flexible = schema.is_flexible(version);
        let form = Form { version, flexible, unknown_tags: true, odd_nulls: true };
        let mut bytes = Vec::new();
        value::encode(&value, &schema.fields, form, &mut bytes);
        let body = Bytes::from(bytes);
        for cut in 0..body.len() {
            let result = (case.decode_only)(body.slice(..cut), version);
            assert!(result.is_err(), "{} {version} cut at {cut} of {}", case.name, body.len());
        }
    });
}

#[test]
fn no_lie_about_lengths_costs_memory() {
    let lies: [&[u8]; 5] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff, 0x07],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
        &[0xff, 0x7f],
    ];
    for_every_message(1, |case, version, schemas, entropy| {
        let schema = schemas.get(case.name);
        let value = value::random(&schema.fields, version, entropy);
        let flexible = schema.is_flexible(version);
        let form = Form { version, flexible, unknown_tags: false, odd_nulls: false };
        let mut honest = Vec::new();
        value::encode(&value, &schema.fields, form, &mut honest);
        for at in 0..honest.len() {
            for lie in lies {
                let mut bytes = honest.clone();
                let end = (at + lie.len()).min(bytes.len());
                bytes[at..end].copy_from_slice(&lie[..end - at]);
                let body = Bytes::from(bytes);
                let limit = HEAP_BYTES_PER_BYTE * body.len() + 1024;
                let (peak, _) = peak_during(|| (case.decode_only)(body, version));
                assert!(peak <= limit, "{} {version} at {at}: {peak} bytes", case.name);
            }
        }
    });
}

#[test]
fn a_count_beyond_the_bytes_is_refused_before_room_is_made() {
    // A produce request without transactional id, acks -1, timeout 0, and 2³¹ - 1 topics.
    let body = Bytes::from_static(&[255, 255, 255, 255, 0, 0, 0, 0, 127, 255, 255, 255, 0, 0]);
    let decode = |body: Bytes| ProduceRequest::decode(&mut Decoder::new(body), 3);
    let (peak, result) = peak_during(|| decode(body));
    assert_eq!(result.unwrap_err().fault, Fault::CountBeyondEnd);
    assert!(peak < 128, "{peak} bytes");
}

#[test]
fn a_count_that_could_be_true_gets_no_more_room_than_there_are_bytes() {
    // A thousand topics could have two bytes each, but the first has no name.
    let mut body = 1000_i32.to_be_bytes().to_vec();
    body.extend([255; 2000]);
    let body = Bytes::from(body);
    let decode = |body: Bytes| MetadataRequest::decode(&mut Decoder::new(body), 1);
    let (peak, result) = peak_during(|| decode(body.clone()));
    assert_eq!(result.unwrap_err().fault, Fault::Null);
    assert!(peak < body.len() + 128, "{peak} bytes");
}

#[test]
fn lists_of_one_message_stay_below_the_heap_limit() {
    // Ten million topics with empty names, two bytes each.
    let topics = 10_000_000_i32;
    let mut body = topics.to_be_bytes().to_vec();
    body.resize(4 + 2 * topics as usize, 0);
    let body = Bytes::from(body);
    let decode = |body: Bytes| MetadataRequest::decode(&mut Decoder::new(body), 1);
    let (peak, result) = peak_during(|| decode(body.clone()));
    assert_eq!(result.unwrap_err().fault, Fault::HeapLimit);
    assert!(peak < 128, "{peak} bytes");

    let mut decoder = Decoder::with_heap_limit(body.slice(..), 1 << 30);
    assert_eq!(MetadataRequest::decode(&mut decoder, 1).unwrap().topics.unwrap().len(), 10_000_000);
    assert!(decoder.heap_bytes() >= 10_000_000 * 16);
}
