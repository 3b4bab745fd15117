//! What a member stores and is told: ids, entries, hard state, members, snapshots, settings.
//!
//! Law: plain data. Every one of these has an encoding of its own in `encoding`.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;

/// A member of the quorum: never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(NonZeroU64);

impl MemberId {
    pub const fn new(id: u64) -> Option<MemberId> {
        match NonZeroU64::new(id) {
            Some(id) => Some(MemberId(id)),
            None => None,
        }
    }

    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "member {}", self.0)
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a member must never forget: the term, whom it voted for in it, how far it knows the log
/// to be committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardState {
    pub term: u64,
    pub vote: Option<MemberId>,
    pub commit: u64,
}

/// One entry of the replicated log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub index: u64,
    pub term: u64,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A new leader's first entry, by which it learns what is committed.
    Nothing,
    /// What was proposed; never empty.
    Payload(Bytes),
    Membership(MembershipChange),
}

/// Members that join, leave or change their part, all at once. Several changes, or a change of a
/// voter's part, go through joint consensus and leave it by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembershipChange {
    /// Empty in the entry by which a joint configuration is left.
    pub changes: Vec<Change>,
    pub joint: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Voter(MemberId),
    Learner(MemberId),
    Gone(MemberId),
}

/// Who takes part. `outgoing` and `learners_next` are in use only during a joint configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    pub voters: Vec<MemberId>,
    pub learners: Vec<MemberId>,
    pub outgoing: Vec<MemberId>,
    pub learners_next: Vec<MemberId>,
    pub leaves_joint: bool,
}

impl Members {
    pub fn voters(voters: impl IntoIterator<Item = MemberId>) -> Members {
        Members { voters: voters.into_iter().collect(), ..Members::default() }
    }

    /// Everybody who takes part in any way, in order, each once.
    pub fn all(&self) -> Vec<MemberId> {
        let lists = [&self.voters, &self.learners, &self.outgoing, &self.learners_next];
        let mut all: Vec<MemberId> = lists.into_iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether this can be a configuration at all.
    pub fn is_sound(&self) -> bool {
        let joint = !self.outgoing.is_empty();
        let lists = [&self.voters, &self.learners, &self.outgoing, &self.learners_next];
        let votes = |id: &MemberId| self.voters.contains(id) || self.outgoing.contains(id);
        lists.into_iter().all(|list| each_once(list))
            && !self.voters.is_empty()
            && !self.learners.iter().any(votes)
            && self.learners_next.iter().all(|id| self.outgoing.contains(id))
            && !self.learners_next.iter().any(|id| self.voters.contains(id))
            && (joint || (self.learners_next.is_empty() && !self.leaves_joint))
    }
}

fn each_once(list: &[MemberId]) -> bool {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// The state machine's state after the entry `index`, which was written in `term`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub index: u64,
    pub term: u64,
    pub members: Members,
    pub data: Bytes,
}

/// All that a member has on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persisted {
    pub hard_state: HardState,
    pub snapshot: Snapshot,
    /// In order and without a gap; those that the snapshot covers are ignored.
    pub entries: Vec<LogEntry>,
}

impl Persisted {
    /// The first state of every first member of a new quorum; `data` is the state machine's first
    /// state. It is a snapshot, so that a member that joins later has to be sent one and learns
    /// the members from it.
    pub fn bootstrap(members: Members, data: Bytes) -> Persisted {
        Persisted {
            hard_state: HardState { term: FIRST, vote: None, commit: FIRST },
            snapshot: Snapshot { index: FIRST, term: FIRST, members, data },
            entries: Vec::new(),
        }
    }

    /// The state of a host that is to join a quorum: it waits to be sent a snapshot.
    pub fn joining() -> Persisted {
        Persisted {
            hard_state: HardState::default(),
            snapshot: Snapshot {
                index: 0,
                term: 0,
                members: Members::default(),
                data: Bytes::new(),
            },
            entries: Vec::new(),
        }
    }
}

/// How a member behaves. All members of a quorum use the same timing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub id: MemberId,
    /// All randomness of this member comes from here.
    pub seed: u64,
    pub timing: Timing,
}

/// A leader is given up after `election_ticks` to twice that many ticks of silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    pub tick: Duration,
    pub heartbeat_ticks: u32,
    pub election_ticks: u32,
}

impl Default for Timing {
    /// A heartbeat each 100 ms, a silent leader is replaced after 1 to 2 s.
    fn default() -> Self {
        Timing { tick: Duration::from_millis(50), heartbeat_ticks: 2, election_ticks: 20 }
    }
}

const FIRST: u64 = 1;
