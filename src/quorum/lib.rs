//! The metadata quorum: Raft as a value.
//!
//! [`Quorum`] is one member. Time, messages and proposals go in; what must be stored, what must be
//! sent and what is committed come out, in rounds:
//!
//! 1. `ready` gives an [`Output`]. Messages in `send_at_once` may leave.
//! 2. The caller makes snapshot, entries and hard state durable, in this order.
//! 3. `advance` gives an [`Advanced`]: its messages may leave now, its entries are committed and
//!    are applied in order.
//!
//! Between `ready` and `advance` nothing else may be called; what arrives meanwhile waits.
//!
//! Law: no clock, no I/O, no randomness but the seed. The same calls give the same answers, byte
//! for byte. Bytes from disk and from other hosts are decoded by `encoding`, bounded, and messages
//! that would break an invariant of the Raft implementation are refused before it sees them.
//! Absent: what the entries mean, connections, files.

#![forbid(unsafe_code)]

mod admission;
mod convert;
mod election;
mod encoding;
mod member_log;
mod message;
mod quorum;
mod records;
mod status;

pub use admission::Refused;
pub use encoding::{DecodeError, ENTRY_BYTES_MAX, SNAPSHOT_BYTES_MAX};
pub use message::Message;
pub use quorum::{
    Advanced, Committed, Outbound, Output, Proposal, ProposeError, Quorum, StartError,
};
pub use records::{
    Change, Content, HardState, LogEntry, MemberId, Members, MembershipChange, Persisted, Settings,
    Snapshot, Timing,
};
pub use status::{MemberStatus, Role, Status};
