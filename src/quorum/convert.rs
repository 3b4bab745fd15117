//! Between our records and the Raft implementation's.
//!
//! Law: lossless in both directions for everything that our encoding can hold. A membership change
//! travels in the entry's context, in our own encoding. The implementation puts protobuf bytes
//! beside it when it is proposed; nobody reads them, and they reach neither disk nor wire.

use raft::eraftpb as pb;

use crate::encoding::{DecodeError, decode_change, encode_change};
use crate::records::{
    Change, Content, HardState, LogEntry, MemberId, Members, MembershipChange, Snapshot,
};

pub(crate) fn hard_state_to_raft(hard_state: &HardState) -> pb::HardState {
    let mut raft = pb::HardState::default();
    raft.set_term(hard_state.term);
    raft.set_vote(hard_state.vote.map_or(0, MemberId::get));
    raft.set_commit(hard_state.commit);
    raft
}

pub(crate) fn hard_state_from_raft(raft: &pb::HardState) -> HardState {
    HardState { term: raft.term, vote: MemberId::new(raft.vote), commit: raft.commit }
}

pub(crate) fn entry_to_raft(entry: &LogEntry) -> pb::Entry {
    let mut raft = pb::Entry::default();
    raft.set_index(entry.index);
    raft.set_term(entry.term);
    match &entry.content {
        Content::Nothing => {}
        Content::Payload(payload) => raft.set_data(payload.clone()),
        Content::Membership(change) => {
            raft.set_entry_type(pb::EntryType::EntryConfChangeV2);
            raft.set_context(encode_change(change).into());
        }
    }
    raft
}

/// The entry came from `entry_to_raft` or from the implementation itself.
pub(crate) fn entry_from_raft(raft: &pb::Entry) -> Result<LogEntry, DecodeError> {
    let content = match raft.get_entry_type() {
        pb::EntryType::EntryNormal if raft.data.is_empty() => Content::Nothing,
        pb::EntryType::EntryNormal => Content::Payload(raft.data.clone()),
        pb::EntryType::EntryConfChangeV2 if raft.context.is_empty() => {
            Content::Membership(MembershipChange::default())
        }
        pb::EntryType::EntryConfChangeV2 => Content::Membership(decode_change(&raft.context)?),
        pb::EntryType::EntryConfChange => return Err(DecodeError::Value("entry kind")),
    };
    Ok(LogEntry { index: raft.index, term: raft.term, content })
}

pub(crate) fn change_to_raft(change: &MembershipChange) -> pb::ConfChangeV2 {
    let mut raft = pb::ConfChangeV2::default();
    if change.joint {
        raft.set_transition(pb::ConfChangeTransition::Implicit);
    }
    for change in &change.changes {
        let (id, kind) = match *change {
            Change::Voter(id) => (id, pb::ConfChangeType::AddNode),
            Change::Learner(id) => (id, pb::ConfChangeType::AddLearnerNode),
            Change::Gone(id) => (id, pb::ConfChangeType::RemoveNode),
        };
        let mut single = pb::ConfChangeSingle::default();
        single.set_node_id(id.get());
        single.set_change_type(kind);
        raft.mut_changes().push(single);
    }
    raft
}

pub(crate) fn members_to_raft(members: &Members) -> pb::ConfState {
    let ids = |list: &[MemberId]| list.iter().map(|id| id.get()).collect::<Vec<u64>>();
    let mut raft = pb::ConfState::default();
    raft.set_voters(ids(&members.voters));
    raft.set_learners(ids(&members.learners));
    raft.set_voters_outgoing(ids(&members.outgoing));
    raft.set_learners_next(ids(&members.learners_next));
    raft.set_auto_leave(members.leaves_joint);
    raft
}

/// Sorted, so that the same configuration is the same bytes on every member.
pub(crate) fn members_from_raft(raft: &pb::ConfState) -> Members {
    let ids = |list: &[u64]| {
        let mut ids: Vec<MemberId> = list.iter().filter_map(|id| MemberId::new(*id)).collect();
        ids.sort_unstable();
        ids
    };
    Members {
        voters: ids(&raft.voters),
        learners: ids(&raft.learners),
        outgoing: ids(&raft.voters_outgoing),
        learners_next: ids(&raft.learners_next),
        leaves_joint: raft.auto_leave,
    }
}

pub(crate) fn snapshot_to_raft(snapshot: &Snapshot) -> pb::Snapshot {
    let mut raft = pb::Snapshot::default();
    raft.mut_metadata().set_index(snapshot.index);
    raft.mut_metadata().set_term(snapshot.term);
    raft.mut_metadata().set_conf_state(members_to_raft(&snapshot.members));
    raft.set_data(snapshot.data.clone());
    raft
}

pub(crate) fn snapshot_from_raft(raft: &pb::Snapshot) -> Snapshot {
    let metadata = raft.get_metadata();
    Snapshot {
        index: metadata.index,
        term: metadata.term,
        members: members_from_raft(metadata.get_conf_state()),
        data: raft.data.clone(),
    }
}
