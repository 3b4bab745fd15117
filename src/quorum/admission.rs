//! Which messages of other members the Raft implementation may see.
//!
//! Law: the implementation ends the process when its invariants break, and it computes with the
//! numbers it is sent. So a message that no correct member sends, whatever the disks and networks
//! in between did, is refused here, with the reason. A refusal changes nothing.

use raft::eraftpb as pb;
use thiserror::Error;

use crate::member_log::MemberLog;
use crate::message::Message;
use crate::records::{MemberId, Members};

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    #[error("the message is for another member")]
    NotForUs,
    #[error("the message does not come from a member: {from}")]
    Stranger { from: u64 },
    #[error("{what} is out of range")]
    OutOfRange { what: &'static str },
    #[error("the entries do not follow each other")]
    Broken,
    #[error("entry {index}, committed here in term {ours}, has term {theirs} at its sender")]
    Diverged { index: u64, ours: u64, theirs: u64 },
    /// Our own disk lost what we once said to have stored.
    #[error("the leader counts on entry {counted} here, the last one is {last}")]
    Lost { counted: u64, last: u64 },
    #[error("the set of members in the snapshot is impossible")]
    Members,
    #[error("the member answered what it was not asked")]
    Unasked,
}

/// What admission needs to know of the receiver.
pub(crate) struct Receiver<'a> {
    pub id: MemberId,
    pub term: u64,
    pub committed: u64,
    pub last_index: u64,
    pub members: &'a Members,
    pub log: &'a MemberLog,
}

pub(crate) fn admit(receiver: &Receiver<'_>, message: &Message) -> Result<(), Refused> {
    let m = &message.0;
    if m.to != receiver.id.get() {
        return Err(Refused::NotForUs);
    }
    match message.from() {
        None => return Err(Refused::Stranger { from: 0 }),
        Some(from) if from == receiver.id => return Err(Refused::Stranger { from: m.from }),
        Some(_) => {}
    }
    admit_numbers(m)?;
    let current = m.term >= receiver.term;
    match m.get_msg_type() {
        pb::MessageType::MsgAppend if current => admit_entries(receiver, m),
        pb::MessageType::MsgHeartbeat if current && m.commit > receiver.last_index => {
            Err(Refused::Lost { counted: m.commit, last: receiver.last_index })
        }
        pb::MessageType::MsgSnapshot => admit_snapshot(m),
        pb::MessageType::MsgAppendResponse
        | pb::MessageType::MsgHeartbeatResponse
        | pb::MessageType::MsgRequestVoteResponse
        | pb::MessageType::MsgRequestPreVoteResponse => admit_answer(receiver, m),
        _ => Ok(()),
    }
}

/// Terms and indexes grow by one at a time: no quorum ever gets near these bounds, so that what
/// is computed from them never overflows. Term 0 would pass as a message of our own.
fn admit_numbers(m: &pb::Message) -> Result<(), Refused> {
    if m.term == 0 || m.term > NUMBER_MAX {
        return Err(Refused::OutOfRange { what: "the term" });
    }
    let others = [m.log_term, m.index, m.commit, m.commit_term, m.reject_hint, m.request_snapshot];
    match others.into_iter().all(|number| number <= NUMBER_MAX) {
        true => Ok(()),
        false => Err(Refused::OutOfRange { what: "a number" }),
    }
}

fn admit_entries(receiver: &Receiver<'_>, m: &pb::Message) -> Result<(), Refused> {
    if m.log_term > m.term {
        return Err(Refused::Broken);
    }
    admit_committed(receiver, m.index, m.log_term)?;
    let mut term = m.log_term;
    for (entry, index) in m.entries.iter().zip(m.index + 1..) {
        if entry.index != index || entry.term < term || entry.term > m.term {
            return Err(Refused::Broken);
        }
        term = entry.term;
        admit_committed(receiver, index, term)?;
    }
    Ok(())
}

/// What is committed never changes.
fn admit_committed(receiver: &Receiver<'_>, index: u64, theirs: u64) -> Result<(), Refused> {
    if index > receiver.committed {
        return Ok(());
    }
    match receiver.log.term_at(index) {
        Some(ours) if ours != theirs => Err(Refused::Diverged { index, ours, theirs }),
        _ => Ok(()),
    }
}

fn admit_snapshot(m: &pb::Message) -> Result<(), Refused> {
    let metadata = m.get_snapshot().get_metadata();
    if metadata.index == 0 || metadata.index > NUMBER_MAX || metadata.term > m.term {
        return Err(Refused::OutOfRange { what: "the snapshot's index or term" });
    }
    match crate::convert::members_from_raft(metadata.get_conf_state()).is_sound() {
        true => Ok(()),
        false => Err(Refused::Members),
    }
}

fn admit_answer(receiver: &Receiver<'_>, m: &pb::Message) -> Result<(), Refused> {
    if !receiver.members.all().iter().any(|id| id.get() == m.from) {
        return Err(Refused::Stranger { from: m.from });
    }
    let stored = m.get_msg_type() == pb::MessageType::MsgAppendResponse && !m.reject;
    if stored && m.term == receiver.term && m.index > receiver.last_index {
        return Err(Refused::Unasked);
    }
    Ok(())
}

const NUMBER_MAX: u64 = 1 << 62;
