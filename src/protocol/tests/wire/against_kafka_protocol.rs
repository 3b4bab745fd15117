//! Against the crate `kafka-protocol`: what we write it reads, and what it writes we read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestKind, ResponseKind};

use crate::cases::{Case, Side};
use crate::for_every_message;
use crate::value::{self, Form};

/// Has the crate read a body and write it again.
fn through_theirs(case: &Case, version: i16, body: &Bytes) -> Result<Bytes, String> {
    let key = ApiKey::try_from(case.key.number()).map_err(|()| UNKNOWN)?;
    let mut reader = body.clone();
    let mut written = BytesMut::new();
    let result = match case.side {
        Side::Request => RequestKind::decode(key, &mut reader, version)
            .and_then(|message| message.encode(&mut written, version)),
        Side::Response => ResponseKind::decode(key, &mut reader, version)
            .and_then(|message| message.encode(&mut written, version)),
    };
    result.map_err(|error| format!("{error:#}"))?;
    assert!(reader.is_empty(), "{} {version}: they leave {} bytes", case.name, reader.len());
    Ok(written.freeze())
}

/// How the crate says that it does not know a version.
const UNKNOWN: &str = "specified version not supported by this message type";

/// What it does not know, because it follows an older Kafka.
const NEWER: &[(&str, &[i16])] = &[
    ("ApiVersionsRequest", &[5]),
    ("ApiVersionsResponse", &[5]),
    ("DeleteGroupsRequest", &[3]),
    ("DeleteGroupsResponse", &[3]),
    ("DescribeLogDirsRequest", &[5]),
    ("DescribeLogDirsResponse", &[5]),
    ("DescribeShareGroupOffsetsRequest", &[1]),
    ("DescribeShareGroupOffsetsResponse", &[1]),
    ("ListOffsetsRequest", &[11]),
    ("ListOffsetsResponse", &[11]),
    ("OffsetCommitRequest", &[10]),
    ("OffsetFetchRequest", &[10]),
    ("ReadShareGroupStateSummaryRequest", &[1]),
    ("ReadShareGroupStateSummaryResponse", &[1]),
    ("ShareAcknowledgeRequest", &[2]),
    ("ShareAcknowledgeResponse", &[2]),
    ("ShareFetchRequest", &[2]),
    ("ShareFetchResponse", &[2]),
    ("StreamsGroupDescribeRequest", &[0, 1]),
    ("StreamsGroupDescribeResponse", &[0, 1]),
    ("StreamsGroupHeartbeatRequest", &[0, 1]),
    ("StreamsGroupHeartbeatResponse", &[0, 1]),
    ("StreamsGroupTopologyDescriptionUpdateRequest", &[0]),
    ("StreamsGroupTopologyDescriptionUpdateResponse", &[0]),
    ("TxnOffsetCommitRequest", &[6]),
    ("TxnOffsetCommitResponse", &[6]),
    ("UnregisterControllerRequest", &[0]),
    ("UnregisterControllerResponse", &[0]),
    ("WriteShareGroupStateRequest", &[1]),
    ("WriteShareGroupStateResponse", &[1]),
    ("WriteTxnMarkersRequest", &[2]),
    ("WriteTxnMarkersResponse", &[2]),
];

#[test]
fn what_we_write_they_read_and_what_they_write_we_read() {
    let unknown = RefCell::new(BTreeMap::<_, BTreeSet<_>>::new());
    for_every_message(64, |case, version, schemas, entropy| {
        let schema = schemas.get(case.name);
        let value = value::random(&schema.fields, version, entropy);
        let flexible = schema.is_flexible(version);
        let form = Form { version, flexible, unknown_tags: false, odd_nulls: false };
        let mut bytes = Vec::new();
        value::encode(&value, &schema.fields, form, &mut bytes);
        let ours = (case.decode)(bytes.into(), version)
            .unwrap_or_else(|error| panic!("{} {version}: {error}", case.name));
        let theirs = match through_theirs(case, version, &ours.encoded) {
            Ok(theirs) => theirs,
            Err(error) if error.contains(UNKNOWN) => {
                unknown.borrow_mut().entry(case.name).or_default().insert(version);
                return;
            }
            Err(error) => panic!("{} {version}: they say {error}\n{}", case.name, ours.shown),
        };
        let back = (case.decode)(theirs.clone(), version)
            .unwrap_or_else(|error| panic!("{} {version}: {error}", case.name));
        assert_eq!(back.shown, ours.shown, "{} {version}", case.name);
        assert_eq!(theirs, ours.encoded, "{} {version}\n{}", case.name, ours.shown);
    });
    let newer = NEWER.iter().map(|(name, versions)| (*name, versions.iter().copied().collect()));
    assert_eq!(unknown.into_inner(), newer.collect());
}
