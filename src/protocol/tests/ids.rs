//! Ids, their text, and the error codes.

use protocol::{ErrorCode, HostId, NodeId, SlotIndex, Uuid};

#[test]
fn a_node_is_a_slot_of_a_host() {
    let node = NodeId::of(HostId(12), SlotIndex(3));
    assert_eq!(node, NodeId(12_003));
    assert_eq!((node.host(), node.slot()), (HostId(12), SlotIndex(3)));
    assert_eq!(NodeId(-1).host(), HostId(-1), "no node is no slot of host 0");
}

#[test]
fn ids_are_written_as_kafka_writes_them() {
    let id = Uuid(*b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\xff");
    assert_eq!(id.to_string(), "AQIDBAUGBwgJCgsMDQ4P_w");
    assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
    for id in [id, Uuid::ZERO, Uuid([0xff; 16])] {
        assert_eq!(id.to_string().parse(), Ok(id));
    }
    assert!("AQIDBAUGBwgJCgsMDQ4P".parse::<Uuid>().is_err());
    assert!("AQIDBAUGBwgJCgsMDQ4P.w".parse::<Uuid>().is_err());
}

#[test]
fn error_codes_run_without_a_gap_and_have_text() {
    let numbers: Vec<i16> = ErrorCode::ALL.iter().map(|code| code.0).collect();
    assert_eq!(numbers, (-1..=136).collect::<Vec<_>>());
    for &code in ErrorCode::ALL {
        assert_eq!(code.message().is_empty(), code == ErrorCode::NONE, "{code}");
    }
    assert_eq!(ErrorCode(9999).name(), "UNKNOWN_SERVER_ERROR");
    assert!(ErrorCode::NOT_LEADER_OR_FOLLOWER.retriable());
    assert!(!ErrorCode::INVALID_REQUEST.retriable());
}
