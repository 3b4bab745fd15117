//! One member of the metadata quorum.
//!
//! Law: rounds of `ready` and `advance` alternate; between them the value is frozen. What `ready`
//! hands out to be stored is also what the Raft implementation will read from memory, so the
//! caller may only drop the value when storing fails. Committed entries come out in order, each
//! once, beginning behind the snapshot the member started from.

use std::collections::BTreeMap;

use bytes::Bytes;
use raft::{RawNode, StateRole};
use thiserror::Error;

use crate::admission::{Receiver, Refused, admit};
use crate::convert::{
    change_to_raft, entry_from_raft, hard_state_from_raft, members_from_raft, snapshot_from_raft,
};
use crate::election::ElectionTimeout;
use crate::encoding::{ENTRY_BYTES_MAX, encode_change};
use crate::member_log::MemberLog;
use crate::message::Message;
use crate::records::{
    Content, HardState, LogEntry, MemberId, Members, MembershipChange, Persisted, Settings,
    Snapshot,
};
use crate::status::{MemberStatus, Role, Status};

/// Where a proposal stands in the log. It is committed when the entry with this index and term
/// is; it is lost when another entry is committed at this index, or the member led no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Proposal {
    pub index: u64,
    pub term: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProposeError {
    #[error("this member does not lead")]
    NotLeader { leader: Option<MemberId> },
    #[error("a proposal of {bytes} bytes does not fit an entry")]
    Size { bytes: usize },
    /// Too much is proposed and not yet committed, or leadership is being handed over.
    #[error("the quorum takes no proposal now")]
    Busy,
    #[error("a change of members is under way, or this one is impossible")]
    Membership,
}

/// Why a member cannot start from what is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StartError {
    #[error("entries are missing: {expected} is followed by {found}")]
    Gap { expected: u64, found: u64 },
    #[error("entry {index} of term {term} follows one of a newer term")]
    TermsFall { index: u64, term: u64 },
    #[error("entries up to {commit} were committed, the log ends at {last}")]
    CommittedLost { commit: u64, last: u64 },
    #[error("the stored term {stored} is older than term {in_log} of the log")]
    TermLost { stored: u64, in_log: u64 },
    #[error("the set of members is impossible: {0:?}")]
    Members(Members),
    #[error("the settings are impossible: {0}")]
    Settings(String),
}

/// What to do next. Store, in this order: `snapshot`, `entries` (they replace stored ones of the
/// same or a later index), `hard_state`.
#[derive(Debug)]
pub struct Output {
    pub snapshot: Option<Snapshot>,
    pub entries: Vec<LogEntry>,
    pub hard_state: Option<HardState>,
    /// False when nothing of it must be durable before `advance`: only `commit` moved.
    pub must_sync: bool,
    /// May leave before anything is stored: only a leader has these.
    pub send_at_once: Vec<Outbound>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Outbound {
    pub to: MemberId,
    pub message: Message,
}

/// What became possible by storing.
#[derive(Debug)]
pub struct Advanced {
    pub send: Vec<Outbound>,
    /// The leader's state, to be applied before `committed`.
    pub snapshot: Option<Snapshot>,
    pub committed: Vec<Committed>,
}

/// An entry that will never change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    pub index: u64,
    pub term: u64,
    pub content: Content,
}

pub struct Quorum {
    id: MemberId,
    raft: RawNode<MemberLog>,
    timeout: ElectionTimeout,
    tick_ms: u64,
    next_tick_ms: Option<u64>,
    members: Members,
    /// Where the member's state stands: the last entry handed out as committed.
    applied: Proposal,
    last_heard_ms: BTreeMap<MemberId, u64>,
    /// Set between `ready` and `advance`.
    pending: Option<raft::Ready>,
}

impl Quorum {
    /// A member as its disk has it. The only voter of a quorum stands for election at once and
    /// leads as soon as the first round is stored.
    pub fn new(settings: &Settings, persisted: Persisted) -> Result<Quorum, StartError> {
        let Persisted { mut hard_state, snapshot, mut entries } = persisted;
        entries.retain(|entry| entry.index > snapshot.index);
        check_chain(&hard_state, &snapshot, &entries)?;
        hard_state.commit = hard_state.commit.max(snapshot.index);
        let applied = Proposal { index: snapshot.index, term: snapshot.term };
        let members = snapshot.members.clone();
        let alone = members.voters == [settings.id] && members.outgoing.is_empty();
        let log = MemberLog::new(hard_state, snapshot, &entries);
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let raft = RawNode::new(&config(settings, applied.index), log, &logger)
            .map_err(|error| StartError::Settings(error.to_string()))?;
        let ticks = settings.timing.election_ticks;
        let mut quorum = Quorum {
            id: settings.id,
            raft,
            timeout: ElectionTimeout::new(settings.seed, settings.id, ticks),
            tick_ms: settings.timing.tick.as_millis().max(1) as u64,
            next_tick_ms: None,
            members,
            applied,
            last_heard_ms: BTreeMap::new(),
            pending: None,
        };
        if alone {
            quorum.campaign();
        }
        quorum.settle_timeout();
        Ok(quorum)
    }

    pub fn id(&self) -> MemberId {
        self.id
    }

    pub fn is_leader(&self) -> bool {
        self.raft.raft.state == StateRole::Leader
    }

    pub fn leader(&self) -> Option<MemberId> {
        MemberId::new(self.raft.raft.leader_id)
    }

    pub fn term(&self) -> u64 {
        self.raft.raft.term
    }

    /// As of the last applied entry.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The index and term up to which entries were handed out as committed.
    pub fn applied(&self) -> Proposal {
        self.applied
    }

    pub fn status(&self) -> Status {
        let raft = &self.raft.raft;
        let progress = raft.prs().iter().filter(|_| self.is_leader()).filter_map(|(id, pr)| {
            let id = MemberId::new(*id)?;
            let last_heard_ms = self.last_heard_ms.get(&id).copied();
            Some(MemberStatus { id, stored: pr.matched, last_heard_ms })
        });
        let mut progress: Vec<MemberStatus> = progress.collect();
        progress.sort_unstable_by_key(|member| member.id);
        Status {
            role: match raft.state {
                StateRole::Leader => Role::Leader,
                StateRole::Follower => Role::Follower,
                StateRole::Candidate | StateRole::PreCandidate => Role::Candidate,
            },
            term: raft.term,
            leader: self.leader(),
            committed: raft.raft_log.committed,
            applied: self.applied.index,
            last_index: raft.raft_log.last_index(),
            members: self.members.clone(),
            progress,
        }
    }

    /// Takes a message of another member.
    pub fn step(&mut self, now_ms: u64, message: Message) -> Result<(), Refused> {
        self.assert_between_rounds();
        let raft = &self.raft.raft;
        let receiver = Receiver {
            id: self.id,
            term: raft.term,
            committed: raft.raft_log.committed,
            last_index: raft.raft_log.last_index(),
            members: &self.members,
            log: raft.store(),
        };
        admit(&receiver, &message)?;
        if let Some(from) = message.from()
            && self.members.all().contains(&from)
        {
            self.last_heard_ms.insert(from, now_ms);
        }
        let from = message.0.from;
        let taken = self.raft.step(message.0);
        self.settle_timeout();
        taken.map_err(|_| Refused::Stranger { from })
    }

    /// Tells the time, milliseconds of a clock that never goes back. One tick passes at most,
    /// however late the call is: time that this process slept through is nobody's silence.
    pub fn tick(&mut self, now_ms: u64) {
        self.assert_between_rounds();
        let due = *self.next_tick_ms.get_or_insert(now_ms + self.tick_ms);
        if now_ms < due {
            return;
        }
        let late = now_ms - due >= self.tick_ms;
        self.next_tick_ms = Some(if late { now_ms + self.tick_ms } else { due + self.tick_ms });
        let elapsed = self.raft.raft.election_elapsed;
        let led = self.is_leader();
        self.raft.tick();
        if !led && self.raft.raft.election_elapsed <= elapsed {
            self.timeout.on_election_begun();
        }
        self.settle_timeout();
    }

    /// When `tick` should be called next.
    pub fn next_tick_ms(&self) -> Option<u64> {
        self.next_tick_ms
    }

    /// Appends `payload` to the log. The proposal says where; whether it stays there, only the
    /// committed entries tell.
    pub fn propose(&mut self, payload: Bytes) -> Result<Proposal, ProposeError> {
        self.assert_between_rounds();
        self.check_leads()?;
        if payload.is_empty() || payload.len() > ENTRY_BYTES_MAX {
            return Err(ProposeError::Size { bytes: payload.len() });
        }
        self.raft.propose(Vec::new(), payload.into()).map_err(|_| ProposeError::Busy)?;
        Ok(self.last_proposal())
    }

    /// Proposes other members. A change that is refused only when its turn comes is committed as
    /// an entry with no content.
    pub fn propose_members(&mut self, change: &MembershipChange) -> Result<Proposal, ProposeError> {
        self.assert_between_rounds();
        self.check_leads()?;
        if change.changes.is_empty() || change.changes.len() > CHANGES_MAX {
            return Err(ProposeError::Membership);
        }
        let pending = self.raft.raft.has_pending_conf();
        if pending || !self.members.outgoing.is_empty() {
            return Err(ProposeError::Membership);
        }
        self.raft
            .propose_conf_change(encode_change(change), change_to_raft(change))
            .map_err(|_| ProposeError::Busy)?;
        Ok(self.last_proposal())
    }

    /// Hands leadership to another voter, if it is up to it within an election timeout.
    pub fn transfer_leadership(&mut self, to: MemberId) {
        self.assert_between_rounds();
        if self.is_leader() {
            self.raft.transfer_leader(to.get());
            self.settle_timeout();
        }
    }

    /// A message could not be sent; the leader stops sending ahead to that member.
    pub fn on_unreachable(&mut self, member: MemberId) {
        self.assert_between_rounds();
        self.raft.report_unreachable(member.get());
    }

    /// What became of a message that carried a snapshot.
    pub fn on_snapshot_sent(&mut self, member: MemberId, arrived: Result<(), ()>) {
        self.assert_between_rounds();
        let status = match arrived {
            Ok(()) => raft::SnapshotStatus::Finish,
            Err(()) => raft::SnapshotStatus::Failure,
        };
        self.raft.report_snapshot(member.get(), status);
    }

    /// What is to be stored and sent; none when there is nothing to do.
    pub fn ready(&mut self) -> Option<Output> {
        self.assert_between_rounds();
        if !self.raft.has_ready() {
            return None;
        }
        let mut ready = self.raft.ready();
        let snapshot = Some(ready.snapshot()).filter(|s| !s.is_empty()).map(snapshot_from_raft);
        let hard_state = ready.hs().map(hard_state_from_raft);
        let log = self.raft.mut_store();
        if let Some(snapshot) = &snapshot {
            log.install(snapshot.clone());
        }
        log.append(ready.entries());
        if let Some(hard_state) = hard_state {
            log.set_hard_state(hard_state);
        }
        let entries = ready.entries().iter().map(own_entry).collect();
        let send_at_once = outbound(ready.take_messages());
        let must_sync = ready.must_sync();
        self.pending = Some(ready);
        Some(Output { snapshot, entries, hard_state, must_sync, send_at_once })
    }

    /// The output of the last `ready` is stored.
    pub fn advance(&mut self) -> Advanced {
        #[expect(clippy::expect_used, reason = "calling out of turn is a broken invariant")]
        let mut ready = self.pending.take().expect("advance follows ready");
        let mut send = outbound(ready.take_persisted_messages());
        let snapshot = Some(ready.snapshot()).filter(|s| !s.is_empty()).map(snapshot_from_raft);
        let mut entries = ready.take_committed_entries();
        let mut light = self.raft.advance_append(ready);
        send.extend(outbound(light.take_messages()));
        entries.extend(light.take_committed_entries());
        if let Some(snapshot) = &snapshot {
            self.members = snapshot.members.clone();
            self.applied = Proposal { index: snapshot.index, term: snapshot.term };
        }
        let committed = entries.iter().map(|entry| self.commit(entry)).collect();
        self.raft.advance_apply_to(self.applied.index);
        self.settle_timeout();
        Advanced { send, snapshot, committed }
    }

    /// True when a member can only be helped by a snapshot newer than the stored one: the caller
    /// takes one now, whatever the size of the log.
    pub fn snapshot_wanted(&self) -> bool {
        self.raft.store().newer_snapshot_wanted()
    }

    /// The state machine's state as of `applied`, ready to be stored.
    pub fn snapshot_of(&self, data: Bytes) -> Snapshot {
        let Proposal { index, term } = self.applied;
        Snapshot { index, term, members: self.members.clone(), data }
    }

    /// A snapshot made by `snapshot_of` is stored: entries that it covers go, but for the last
    /// few. Returns the index up to which the caller may remove stored entries.
    pub fn compact(&mut self, snapshot: Snapshot) -> u64 {
        self.assert_between_rounds();
        assert!(snapshot.index <= self.applied.index, "a snapshot of what is yet to come");
        let index = snapshot.index;
        if index > self.raft.store().snapshot().index {
            self.raft.mut_store().compact(snapshot, ENTRIES_KEPT);
        }
        index
    }

    fn commit(&mut self, entry: &raft::eraftpb::Entry) -> Committed {
        let LogEntry { index, term, content } = own_entry(entry);
        assert!(index == self.applied.index + 1, "entry {index} follows {:?}", self.applied);
        self.applied = Proposal { index, term };
        if let Content::Membership(change) = &content {
            // A change that makes no sense changes nothing, on every member alike.
            if let Ok(members) = self.raft.apply_conf_change(&change_to_raft(change)) {
                self.members = members_from_raft(&members);
            }
        }
        Committed { index, term, content }
    }

    fn campaign(&mut self) {
        // It cannot fail: the member is a voter and there is nobody else.
        let _ = self.raft.campaign();
    }

    fn check_leads(&self) -> Result<(), ProposeError> {
        match self.is_leader() {
            true => Ok(()),
            false => Err(ProposeError::NotLeader { leader: self.leader() }),
        }
    }

    fn last_proposal(&self) -> Proposal {
        let raft = &self.raft.raft;
        Proposal { index: raft.raft_log.last_index(), term: raft.term }
    }

    /// See `election`.
    fn settle_timeout(&mut self) {
        let ticks = self.timeout.ticks(self.raft.raft.term);
        self.raft.raft.set_randomized_election_timeout(ticks);
    }

    fn assert_between_rounds(&self) {
        assert!(self.pending.is_none(), "between ready and advance nothing may change");
    }
}

/// Entries must follow the snapshot and each other, and hold all that was committed.
fn check_chain(
    hard_state: &HardState,
    snapshot: &Snapshot,
    entries: &[LogEntry],
) -> Result<(), StartError> {
    if snapshot.members != Members::default() && !snapshot.members.is_sound() {
        return Err(StartError::Members(snapshot.members.clone()));
    }
    let (mut last, mut term) = (snapshot.index, snapshot.term);
    for entry in entries {
        if entry.index != last + 1 {
            return Err(StartError::Gap { expected: last + 1, found: entry.index });
        }
        if entry.term < term {
            return Err(StartError::TermsFall { index: entry.index, term: entry.term });
        }
        (last, term) = (entry.index, entry.term);
    }
    if hard_state.commit > last {
        return Err(StartError::CommittedLost { commit: hard_state.commit, last });
    }
    if hard_state.term < term {
        return Err(StartError::TermLost { stored: hard_state.term, in_log: term });
    }
    Ok(())
}

fn config(settings: &Settings, applied: u64) -> raft::Config {
    raft::Config {
        id: settings.id.get(),
        election_tick: settings.timing.election_ticks as usize,
        heartbeat_tick: settings.timing.heartbeat_ticks as usize,
        applied,
        max_size_per_msg: MESSAGE_BYTES_MAX,
        max_inflight_msgs: MESSAGES_AHEAD_MAX,
        check_quorum: true,
        pre_vote: true,
        max_uncommitted_size: UNCOMMITTED_BYTES_MAX,
        max_committed_size_per_ready: UNCOMMITTED_BYTES_MAX,
        ..raft::Config::default()
    }
}

#[expect(clippy::expect_used, reason = "the log holds nothing else")]
fn own_entry(entry: &raft::eraftpb::Entry) -> LogEntry {
    entry_from_raft(entry).expect("the log holds only entries of our encoding")
}

fn outbound(messages: Vec<raft::eraftpb::Message>) -> Vec<Outbound> {
    let addressed = |message: raft::eraftpb::Message| {
        MemberId::new(message.to).map(|to| Outbound { to, message: Message(message) })
    };
    messages.into_iter().filter_map(addressed).collect()
}

const MESSAGE_BYTES_MAX: u64 = 1 << 20;
const MESSAGES_AHEAD_MAX: usize = 64;
const UNCOMMITTED_BYTES_MAX: u64 = 64 << 20;
/// Entries that stay behind a snapshot, for members that are a little behind.
const ENTRIES_KEPT: u64 = 1_000;
const CHANGES_MAX: usize = 64;
