//! What the fuzz target `frames` does with one input.
//!
//! ```text
//! even first byte: the rest is a request frame, header and body
//! odd first byte:  number of the message | version, counted from the first | body;
//!                  without a body the message's defaults, encoded
//! ```
//! Decoding may fail, but what it accepts must survive encoding, in bounded memory.

use bytes::Bytes;
use protocol::{ApiKey, Decoder, RequestHeader};

#[path = "../../../src/protocol/tests/wire/cases.rs"]
pub mod cases;

use cases::{Case, Side};

pub fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    if kind % 2 == 0 {
        request_frame(Bytes::copy_from_slice(rest));
    } else if let [number, version, body @ ..] = rest {
        let all = cases::all();
        let case = &all[usize::from(*number) % all.len()];
        let version = case.versions.min + i16::from(*version);
        if case.versions.contains(version) {
            let body = match body {
                [] => (case.encode_default)(version),
                body => Bytes::copy_from_slice(body),
            };
            body_of(case, body, version);
        }
    }
}

fn request_frame(frame: Bytes) {
    let mut decoder = Decoder::new(frame.clone());
    let Ok(header) = RequestHeader::decode(&mut decoder) else { return };
    let body = frame.slice(frame.len() - decoder.remaining()..);
    let key = ApiKey::from_wire(header.api_key);
    let all = cases::all();
    let case = all.iter().find(|case| case.side == Side::Request && Some(case.key) == key);
    if let Some(case) = case.filter(|case| case.versions.contains(header.api_version)) {
        body_of(case, body, header.api_version);
    }
}

/// `decode` itself compares a message with what its encoding is read back as.
fn body_of(case: &Case, body: Bytes, version: i16) {
    let accepted = (case.decode_only)(body.clone(), version).is_ok();
    match (case.decode)(body.clone(), version) {
        Ok(message) => {
            assert!(accepted, "{} is decoded only sometimes", case.name);
            assert!(message.remaining <= body.len() && !message.shown.is_empty());
            let again = (case.decode)(message.encoded.clone(), version);
            let again = again.map(|again| again.encoded);
            assert_eq!(again, Ok(message.encoded), "{} changes when encoded twice", case.name);
        }
        Err(_) => assert!(!accepted, "{} is decoded only sometimes", case.name),
    }
}
