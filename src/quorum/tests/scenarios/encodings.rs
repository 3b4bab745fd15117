//! What is encoded decodes to the same, and nothing else decodes to it.

use bytes::Bytes;
use quorum::{
    Change, Content, DecodeError, HardState, LogEntry, Members, MembershipChange, Message, Snapshot,
};

use crate::cluster::{Cluster, member};

fn entries() -> Vec<LogEntry> {
    let change = MembershipChange {
        changes: vec![
            Change::Voter(member(3)),
            Change::Learner(member(u64::MAX)),
            Change::Gone(member(1)),
        ],
        joint: true,
    };
    let contents = [
        Content::Nothing,
        Content::Payload(Bytes::from_static(b"p")),
        Content::Payload(Bytes::from(vec![0; quorum::ENTRY_BYTES_MAX])),
        Content::Membership(change),
        Content::Membership(MembershipChange::default()),
    ];
    let entry = |(index, content)| LogEntry { index, term: u64::MAX, content };
    (1..).zip(contents).map(entry).collect()
}

fn snapshot() -> Snapshot {
    let members = Members {
        voters: vec![member(1), member(2)],
        learners: vec![member(9)],
        outgoing: vec![member(1), member(4)],
        learners_next: vec![member(4)],
        leaves_joint: true,
    };
    Snapshot { index: 77, term: 5, members, data: Bytes::from_static(b"image") }
}

#[test]
fn entries_hard_states_and_snapshots_survive() {
    for entry in entries() {
        assert_eq!(LogEntry::decode(entry.encode()), Ok(entry));
    }
    for vote in [None, Some(member(7))] {
        let hard_state = HardState { term: 3, vote, commit: u64::MAX };
        assert_eq!(HardState::decode(hard_state.encode()), Ok(hard_state));
    }
    assert_eq!(Snapshot::decode(snapshot().encode()), Ok(snapshot()));
}

#[test]
fn every_shorter_input_is_an_error() {
    // A payload is whatever bytes are there; every other content has a length of its own.
    let has_length = |entry: &LogEntry| !matches!(entry.content, Content::Payload(_));
    let inputs: Vec<Bytes> =
        entries().into_iter().filter(has_length).map(|entry| entry.encode()).collect();
    for input in &inputs {
        for length in 0..input.len() {
            assert!(LogEntry::decode(input.slice(..length)).is_err(), "{length} of {input:?}");
        }
    }
    let hard_state = HardState { term: 3, vote: None, commit: 2 }.encode();
    for length in 0..hard_state.len() {
        assert!(HardState::decode(hard_state.slice(..length)).is_err());
    }
    let snapshot = snapshot().encode();
    for length in 0..snapshot.len() - b"image".len() {
        assert!(Snapshot::decode(snapshot.slice(..length)).is_err());
    }
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let mut bytes = snapshot().encode().to_vec();
    bytes[0] = 9;
    assert_eq!(Snapshot::decode(bytes.into()), Err(DecodeError::Format { found: 9 }));
}

#[test]
fn counts_that_the_bytes_cannot_hold_are_refused_before_anything_is_allocated() {
    let mut cluster = Cluster::new(1, 3);
    let leader = cluster.elect();
    cluster.run_for(200);
    let _ = cluster.node(leader).quorum().propose(Bytes::from_static(b"x"));
    let round = cluster.node(leader).pump().expect("a round");
    let (_, append) = round.sent.first().expect("the leader tells the others");
    let mut bytes = append.to_vec();
    // The number of entries follows three bytes, ten numbers and an empty context.
    let count = 3 + 80 + 4;
    assert_eq!(bytes[count..count + 4], [0, 0, 0, 1]);
    bytes[count..count + 4].copy_from_slice(&u32::MAX.to_be_bytes());
    assert_eq!(Message::decode(bytes.into()), Err(DecodeError::Short("the entries")));
}
