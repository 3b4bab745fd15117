//! A message between members, opaque to the caller.
//!
//! Law: only kinds that travel between hosts exist here. Proposals are not among them: a proposal
//! is made at the leader or refused.

use std::fmt;

use raft::eraftpb as pb;

use crate::records::MemberId;

/// A message to another member: `encode` it, `decode` it there, hand it to `step`.
#[derive(Clone, PartialEq)]
pub struct Message(pub(crate) pb::Message);

impl Message {
    /// None for messages that nobody sent or that nobody is to get.
    pub fn from(&self) -> Option<MemberId> {
        MemberId::new(self.0.from)
    }

    pub fn to(&self) -> Option<MemberId> {
        MemberId::new(self.0.to)
    }

    /// True for messages that carry a whole snapshot: the sender must be told of their fate
    /// (`Quorum::on_snapshot_sent`).
    pub fn is_snapshot(&self) -> bool {
        self.0.get_msg_type() == pb::MessageType::MsgSnapshot
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = &self.0;
        write!(
            f,
            "{:?} {}→{} term {} index {} log term {} commit {} entries {}{}",
            m.get_msg_type(),
            m.from,
            m.to,
            m.term,
            m.index,
            m.log_term,
            m.commit,
            m.entries.len(),
            if m.reject { " rejected" } else { "" }
        )
    }
}
