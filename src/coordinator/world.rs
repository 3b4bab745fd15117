//! What verbs are told from outside, and what they give back.

use bytes::Bytes;
use protocol::Str;
use protocol::messages::join_group::JoinGroupResponse;
use protocol::messages::sync_group::SyncGroupResponse;

/// The moment at which a verb is decided.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// Milliseconds of a clock that never jumps: for timeouts.
    pub now_ms: i64,
    /// Milliseconds since 1970: for what is written down.
    pub wall_ms: i64,
    /// Fresh for every verb.
    pub random: u128,
    pub settings: &'a GroupSettings,
}

/// The broker keys of this area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    pub initial_rebalance_delay_ms: i64,
    pub session_timeout_min_ms: i32,
    pub session_timeout_max_ms: i32,
    pub members_max: usize,
    pub offset_metadata_chars_max: usize,
    pub offsets_retention_ms: i64,
    /// The longest record that the log takes of a group.
    pub record_bytes_max: usize,
}

/// Who sends a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub client_id: Str,
    /// As Kafka shows addresses: `/127.0.0.1`.
    pub client_host: Str,
}

/// Names a request whose answer may come later; chosen by the caller, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A late answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Join(JoinGroupResponse),
    Sync(SyncGroupResponse),
}

/// Something to be written down; without a value it deletes what the key names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// What came out of a verb.
#[derive(Debug, Default)]
pub struct Output {
    pub records: Vec<Record>,
    pub replies: Vec<(Ticket, Reply)>,
}
