//! Our own encoding of what members store and send.
//!
//! Law: decoding is bounded by the bytes at hand: no allocation follows a count that the remaining
//! bytes cannot hold, nothing recurses, payloads stay slices of the input. Every encoding begins
//! with its format; a byte more or less than it needs is an error. Integrity is not checked here:
//! files and frames carry checksums.
//!
//! All numbers are big endian. `list` is a 2-byte count and that many 8-byte member ids; `bytes`
//! is a 4-byte length and the bytes.
//! ```text
//! entry       format (1), index (8), term (8), kind (1): 0 nothing, 1 payload: the rest,
//!             2 membership: change
//! change      joint (1), count (2), count × (kind (1): 0 voter, 1 learner, 2 gone; id (8))
//! hard state  format (1), term (8), vote (8; 0 = none), commit (8)
//! members     four lists (voters, learners, outgoing, learners next), leaves joint (1)
//! snapshot    format (1), index (8), term (8), members, data: the rest
//! message     format (1), kind (1), flags (1): 1 reject, 2 has snapshot; from, to, term, log term,
//!             index, commit, commit term, reject hint, request snapshot (8 each), priority (8),
//!             context (bytes), number of entries (4), entries (bytes each), snapshot (bytes)
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};
use raft::eraftpb as pb;
use thiserror::Error;

use crate::convert::{entry_from_raft, entry_to_raft, snapshot_from_raft, snapshot_to_raft};
use crate::message::Message;
use crate::records::{
    Change, Content, HardState, LogEntry, MemberId, Members, MembershipChange, Snapshot,
};

/// Largest payload of one entry.
pub const ENTRY_BYTES_MAX: usize = 8 << 20;
/// Largest snapshot that is stored or sent.
pub const SNAPSHOT_BYTES_MAX: usize = 256 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    #[error("format {found} is not known, the newest is {FORMAT}")]
    Format { found: u8 },
    #[error("the bytes end inside {0}")]
    Short(&'static str),
    #[error("{0} is larger than allowed")]
    TooLarge(&'static str),
    #[error("{0} has an impossible value")]
    Value(&'static str),
    #[error("{0} bytes are left over")]
    LeftOver(usize),
}

impl LogEntry {
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(32 + self.payload_bytes());
        out.put_u8(FORMAT);
        out.put_u64(self.index);
        out.put_u64(self.term);
        match &self.content {
            Content::Nothing => out.put_u8(0),
            Content::Payload(payload) => {
                out.put_u8(1);
                out.put_slice(payload);
            }
            Content::Membership(change) => {
                out.put_u8(2);
                out.put_slice(&encode_change(change));
            }
        }
        out.freeze()
    }

    pub fn decode(mut input: Bytes) -> Result<LogEntry, DecodeError> {
        format_of(&mut input)?;
        let index = number(&mut input, "an entry")?;
        let term = number(&mut input, "an entry")?;
        let content = match byte(&mut input, "an entry")? {
            0 => finish(input, Content::Nothing)?,
            1 if input.is_empty() => return Err(DecodeError::Short("a payload")),
            1 if input.len() > ENTRY_BYTES_MAX => return Err(DecodeError::TooLarge("a payload")),
            1 => Content::Payload(input),
            2 => Content::Membership(decode_change(&input)?),
            _ => return Err(DecodeError::Value("entry kind")),
        };
        Ok(LogEntry { index, term, content })
    }

    fn payload_bytes(&self) -> usize {
        match &self.content {
            Content::Payload(payload) => payload.len(),
            Content::Nothing | Content::Membership(_) => 0,
        }
    }
}

pub(crate) fn encode_change(change: &MembershipChange) -> Vec<u8> {
    let mut out = Vec::with_capacity(3 + change.changes.len() * 9);
    out.put_u8(u8::from(change.joint));
    out.put_u16(change.changes.len() as u16);
    for change in &change.changes {
        let (kind, id) = match *change {
            Change::Voter(id) => (0, id),
            Change::Learner(id) => (1, id),
            Change::Gone(id) => (2, id),
        };
        out.put_u8(kind);
        out.put_u64(id.get());
    }
    out
}

pub(crate) fn decode_change(input: &[u8]) -> Result<MembershipChange, DecodeError> {
    let mut input = Bytes::copy_from_slice(input);
    let joint = flag(&mut input, "a membership change")?;
    let count = count_of(&mut input, 9)?;
    let mut changes = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = byte(&mut input, "a membership change")?;
        let id = member(&mut input)?;
        changes.push(match kind {
            0 => Change::Voter(id),
            1 => Change::Learner(id),
            2 => Change::Gone(id),
            _ => return Err(DecodeError::Value("kind of membership change")),
        });
    }
    finish(input, MembershipChange { changes, joint })
}

impl HardState {
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(25);
        out.put_u8(FORMAT);
        out.put_u64(self.term);
        out.put_u64(self.vote.map_or(0, MemberId::get));
        out.put_u64(self.commit);
        out.freeze()
    }

    pub fn decode(mut input: Bytes) -> Result<HardState, DecodeError> {
        format_of(&mut input)?;
        let term = number(&mut input, "the hard state")?;
        let vote = MemberId::new(number(&mut input, "the hard state")?);
        let commit = number(&mut input, "the hard state")?;
        finish(input, HardState { term, vote, commit })
    }
}

impl Snapshot {
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(64 + self.data.len());
        out.put_u8(FORMAT);
        out.put_u64(self.index);
        out.put_u64(self.term);
        let members = &self.members;
        for list in [&members.voters, &members.learners, &members.outgoing, &members.learners_next]
        {
            out.put_u16(list.len() as u16);
            list.iter().for_each(|id| out.put_u64(id.get()));
        }
        out.put_u8(u8::from(members.leaves_joint));
        out.put_slice(&self.data);
        out.freeze()
    }

    pub fn decode(mut input: Bytes) -> Result<Snapshot, DecodeError> {
        format_of(&mut input)?;
        let index = number(&mut input, "a snapshot")?;
        let term = number(&mut input, "a snapshot")?;
        let mut lists = [const { Vec::new() }; 4];
        for list in &mut lists {
            let count = count_of(&mut input, 8)?;
            list.reserve_exact(count);
            for _ in 0..count {
                list.push(member(&mut input)?);
            }
        }
        let [voters, learners, outgoing, learners_next] = lists;
        let leaves_joint = flag(&mut input, "the members")?;
        let members = Members { voters, learners, outgoing, learners_next, leaves_joint };
        if members != Members::default() && !members.is_sound() {
            return Err(DecodeError::Value("the set of members"));
        }
        if input.len() > SNAPSHOT_BYTES_MAX {
            return Err(DecodeError::TooLarge("a snapshot"));
        }
        Ok(Snapshot { index, term, members, data: input })
    }
}

impl Message {
    pub fn encode(&self) -> Bytes {
        let Message(m) = self;
        let mut out = BytesMut::with_capacity(128);
        out.put_u8(FORMAT);
        out.put_u8(m.get_msg_type() as u8);
        out.put_u8(u8::from(m.reject) * FLAG_REJECT + u8::from(m.has_snapshot()) * FLAG_SNAPSHOT);
        let numbers = [m.from, m.to, m.term, m.log_term, m.index, m.commit, m.commit_term];
        numbers.into_iter().for_each(|number| out.put_u64(number));
        out.put_u64(m.reject_hint);
        out.put_u64(m.request_snapshot);
        out.put_i64(m.priority);
        put_bytes(&mut out, &m.context);
        out.put_u32(m.entries.len() as u32);
        for entry in m.entries.iter() {
            #[expect(clippy::expect_used, reason = "the log holds nothing else")]
            let entry = entry_from_raft(entry).expect("an entry of our log can be encoded");
            put_bytes(&mut out, &entry.encode());
        }
        if m.has_snapshot() {
            put_bytes(&mut out, &snapshot_from_raft(m.get_snapshot()).encode());
        }
        out.freeze()
    }

    pub fn decode(mut input: Bytes) -> Result<Message, DecodeError> {
        format_of(&mut input)?;
        let mut m = pb::Message::default();
        m.set_msg_type(kind_of(byte(&mut input, "a message")?)?);
        let flags = byte(&mut input, "a message")?;
        if flags & !(FLAG_REJECT | FLAG_SNAPSHOT) != 0 {
            return Err(DecodeError::Value("flags of a message"));
        }
        m.set_reject(flags & FLAG_REJECT != 0);
        decode_numbers(&mut m, &mut input)?;
        m.set_context(take_bytes(&mut input, CONTEXT_BYTES_MAX, "the context")?);
        let count = long(&mut input, "a message")? as usize;
        if count > input.len() / ENTRY_BYTES_MIN {
            return Err(DecodeError::Short("the entries"));
        }
        for _ in 0..count {
            let entry = take_bytes(&mut input, ENTRY_BYTES_MAX + ENTRY_BYTES_MIN, "an entry")?;
            m.mut_entries().push(entry_to_raft(&LogEntry::decode(entry)?));
        }
        if flags & FLAG_SNAPSHOT != 0 {
            let snapshot = take_bytes(&mut input, SNAPSHOT_BYTES_MAX * 2, "a snapshot")?;
            m.set_snapshot(snapshot_to_raft(&Snapshot::decode(snapshot)?));
        }
        finish(input, Message(m))
    }
}

fn decode_numbers(m: &mut pb::Message, input: &mut Bytes) -> Result<(), DecodeError> {
    m.set_from(number(input, "a message")?);
    m.set_to(number(input, "a message")?);
    m.set_term(number(input, "a message")?);
    m.set_log_term(number(input, "a message")?);
    m.set_index(number(input, "a message")?);
    m.set_commit(number(input, "a message")?);
    m.set_commit_term(number(input, "a message")?);
    m.set_reject_hint(number(input, "a message")?);
    m.set_request_snapshot(number(input, "a message")?);
    m.set_priority(number(input, "a message")? as i64);
    Ok(())
}

/// The kinds that travel, by their number in the Raft implementation.
fn kind_of(kind: u8) -> Result<pb::MessageType, DecodeError> {
    TRAVELLING
        .iter()
        .find(|known| **known as u8 == kind)
        .copied()
        .ok_or(DecodeError::Value("kind of message"))
}

fn format_of(input: &mut Bytes) -> Result<(), DecodeError> {
    match byte(input, "the format")? {
        FORMAT => Ok(()),
        found => Err(DecodeError::Format { found }),
    }
}

fn byte(input: &mut Bytes, what: &'static str) -> Result<u8, DecodeError> {
    input.try_get_u8().map_err(|_| DecodeError::Short(what))
}

fn flag(input: &mut Bytes, what: &'static str) -> Result<bool, DecodeError> {
    match byte(input, what)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(DecodeError::Value(what)),
    }
}

fn long(input: &mut Bytes, what: &'static str) -> Result<u32, DecodeError> {
    input.try_get_u32().map_err(|_| DecodeError::Short(what))
}

fn number(input: &mut Bytes, what: &'static str) -> Result<u64, DecodeError> {
    input.try_get_u64().map_err(|_| DecodeError::Short(what))
}

fn member(input: &mut Bytes) -> Result<MemberId, DecodeError> {
    MemberId::new(number(input, "a member id")?).ok_or(DecodeError::Value("member id"))
}

/// A 2-byte count of things that take at least `each` bytes.
fn count_of(input: &mut Bytes, each: usize) -> Result<usize, DecodeError> {
    let count = usize::from(input.try_get_u16().map_err(|_| DecodeError::Short("a count"))?);
    match count * each > input.len() {
        true => Err(DecodeError::Short("a list")),
        false => Ok(count),
    }
}

fn take_bytes(input: &mut Bytes, max: usize, what: &'static str) -> Result<Bytes, DecodeError> {
    let length = long(input, what)? as usize;
    if length > max {
        return Err(DecodeError::TooLarge(what));
    }
    if length > input.len() {
        return Err(DecodeError::Short(what));
    }
    Ok(input.split_to(length))
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(bytes.len() as u32);
    out.put_slice(bytes);
}

fn finish<T>(input: Bytes, value: T) -> Result<T, DecodeError> {
    match input.is_empty() {
        true => Ok(value),
        false => Err(DecodeError::LeftOver(input.len())),
    }
}

const FORMAT: u8 = 1;
const FLAG_REJECT: u8 = 1;
const FLAG_SNAPSHOT: u8 = 2;
/// Format, index, term, kind, and the length before them.
const ENTRY_BYTES_MIN: usize = 22;
const CONTEXT_BYTES_MAX: usize = 64;
const TRAVELLING: [pb::MessageType; 10] = [
    pb::MessageType::MsgAppend,
    pb::MessageType::MsgAppendResponse,
    pb::MessageType::MsgRequestVote,
    pb::MessageType::MsgRequestVoteResponse,
    pb::MessageType::MsgSnapshot,
    pb::MessageType::MsgHeartbeat,
    pb::MessageType::MsgHeartbeatResponse,
    pb::MessageType::MsgTimeoutNow,
    pb::MessageType::MsgRequestPreVote,
    pb::MessageType::MsgRequestPreVoteResponse,
];
