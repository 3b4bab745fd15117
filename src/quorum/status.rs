//! What a member knows of the quorum, for DescribeQuorum and for the log.

use crate::records::{MemberId, Members};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Leader,
    Follower,
    /// Standing for election, or asking whether it would be elected.
    Candidate,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub role: Role,
    pub term: u64,
    pub leader: Option<MemberId>,
    pub committed: u64,
    pub applied: u64,
    pub last_index: u64,
    /// As of the last applied entry.
    pub members: Members,
    /// What the leader knows of each member, itself included; empty elsewhere.
    pub progress: Vec<MemberStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    pub id: MemberId,
    /// The last entry it is known to have stored.
    pub stored: u64,
    /// Milliseconds of the caller's clock when it was last heard of; none when never.
    pub last_heard_ms: Option<u64>,
}
