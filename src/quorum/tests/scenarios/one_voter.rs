//! A quorum of one: the very same code, no waiting.

use crate::cluster::{Disk, Node, member, settings};
use bytes::Bytes;
use quorum::{
    Content, HardState, LogEntry, Members, Persisted, ProposeError, Quorum, Role, Snapshot,
    StartError,
};

fn alone() -> Node {
    let persisted = Persisted::bootstrap(Members::voters([member(1)]), Bytes::new());
    Node::new(1, 7, &persisted)
}

fn settle(node: &mut Node) {
    while node.pump().is_some() {}
}

#[test]
fn leads_without_a_single_tick() {
    let mut node = alone();
    settle(&mut node);
    assert!(node.quorum().is_leader());
    assert_eq!(node.quorum().leader(), Some(member(1)));
    let status = node.quorum().status();
    assert_eq!((status.role, status.committed), (Role::Leader, status.last_index));
}

#[test]
fn commits_what_it_stored_and_nothing_sooner() {
    let mut node = alone();
    settle(&mut node);
    let before = node.committed.len();
    let proposal = node.quorum().propose(Bytes::from_static(b"a")).unwrap();
    assert_eq!(node.committed.len(), before);
    let output = node.quorum().ready().expect("something to store");
    assert!(output.must_sync && output.send_at_once.is_empty());
    assert_eq!(output.entries.len(), 1);
    let advanced = node.quorum().advance();
    let last = advanced.committed.last().expect("stored is committed");
    assert_eq!((last.index, last.term), (proposal.index, proposal.term));
    assert_eq!(last.content, Content::Payload(Bytes::from_static(b"a")));
}

#[test]
fn many_proposals_are_one_round() {
    let mut node = alone();
    settle(&mut node);
    for value in 0..100u8 {
        node.quorum().propose(Bytes::copy_from_slice(&[value])).unwrap();
    }
    let round = node.pump().expect("a round");
    assert_eq!(round.committed.len(), 100);
    assert_eq!(node.state.len(), 100);
}

#[test]
fn a_restart_replays_everything_behind_the_snapshot() {
    let mut node = alone();
    settle(&mut node);
    for value in 0..20u8 {
        node.quorum().propose(Bytes::copy_from_slice(&[value])).unwrap();
        settle(&mut node);
        if value == 9 {
            node.snapshot();
            assert!(node.disk.entries.is_empty());
        }
    }
    let state = node.state.clone();
    node.start();
    assert_eq!(&node.state[..], &state[..10], "the snapshot is the first state");
    settle(&mut node);
    assert_eq!(node.state, state);
    assert!(node.quorum().is_leader());
    node.quorum().propose(Bytes::from_static(b"more")).unwrap();
    settle(&mut node);
    assert_eq!(node.state.len(), state.len() + 4);
}

#[test]
fn the_log_in_memory_is_bounded_by_snapshots() {
    let mut node = alone();
    settle(&mut node);
    for value in 0..5_000u32 {
        node.quorum().propose(Bytes::copy_from_slice(&value.to_be_bytes())).unwrap();
        settle(&mut node);
        if value % 500 == 0 {
            node.snapshot();
        }
    }
    node.start();
    settle(&mut node);
    assert_eq!(node.state.len(), 20_000);
}

#[test]
fn impossible_proposals_are_refused() {
    let mut node = alone();
    settle(&mut node);
    let empty = node.quorum().propose(Bytes::new());
    assert_eq!(empty, Err(ProposeError::Size { bytes: 0 }));
    let bytes = quorum::ENTRY_BYTES_MAX + 1;
    let large = node.quorum().propose(Bytes::from(vec![0; bytes]));
    assert_eq!(large, Err(ProposeError::Size { bytes }));
}

#[test]
fn uncommitted_proposals_are_bounded() {
    let mut node = alone();
    settle(&mut node);
    let large = Bytes::from(vec![1; quorum::ENTRY_BYTES_MAX]);
    let taken = (0..100).take_while(|_| node.quorum().propose(large.clone()).is_ok()).count();
    assert!((1..=16).contains(&taken), "{taken} proposals of 8 MiB were taken");
    assert_eq!(node.quorum().propose(large.clone()), Err(ProposeError::Busy));
    settle(&mut node);
    assert!(node.quorum().propose(large).is_ok());
}

#[test]
fn missing_or_impossible_state_is_refused() {
    let mut node = alone();
    settle(&mut node);
    for value in 0..5u8 {
        node.quorum().propose(Bytes::copy_from_slice(&[value])).unwrap();
        settle(&mut node);
    }
    let start = |disk: &Disk| Quorum::new(&settings(1, 1), disk.load()).err();
    assert_eq!(start(&node.disk), None);

    let mut shorter = node.disk.clone();
    let (last, _) = shorter.entries.pop_last().expect("entries");
    let (previous, _) = shorter.entries.pop_last().expect("entries");
    let hard_state = HardState::decode(shorter.hard_state.clone()).unwrap();
    let commit = last;
    shorter.hard_state = HardState { commit, ..hard_state }.encode();
    let lost = StartError::CommittedLost { commit, last: previous - 1 };
    assert_eq!(start(&shorter), Some(lost));

    let mut holed = node.disk.clone();
    holed.entries.remove(&previous);
    let gap = StartError::Gap { expected: previous, found: last };
    assert_eq!(start(&holed), Some(gap));

    let mut forgotten = node.disk.clone();
    forgotten.hard_state = HardState { term: 1, vote: None, commit: 1 }.encode();
    assert_eq!(start(&forgotten), Some(StartError::TermLost { stored: 1, in_log: 2 }));

    let mut falling = node.disk.clone();
    let content = Content::Nothing;
    falling.entries.insert(last, LogEntry { index: last, term: 1, content }.encode());
    assert_eq!(start(&falling), Some(StartError::TermsFall { index: last, term: 1 }));
}

#[test]
fn a_snapshot_of_impossible_members_is_refused() {
    let twice = Members::voters([member(1), member(1)]);
    let persisted = Persisted::bootstrap(twice.clone(), Bytes::new());
    let refused = Quorum::new(&settings(1, 1), persisted.clone()).err();
    assert_eq!(refused, Some(StartError::Members(twice)));
    assert!(Snapshot::decode(persisted.snapshot.encode()).is_err());
}
