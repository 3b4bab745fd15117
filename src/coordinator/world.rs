//! What verbs are told from outside, and what they give back.

use bytes::Bytes;
use metadata::Image;
use metadata::record::ConfigResource;
use protocol::messages::join_group::JoinGroupResponse;
use protocol::messages::sync_group::SyncGroupResponse;
use protocol::{ErrorCode, Str};

use crate::consumer::Assignor;

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
    /// The topics of the cluster, and what is set for single groups.
    pub image: &'a Image,
}

impl World<'_> {
    /// Whether a moment that was written down is less than so long ago. One that lies ahead was
    /// written by a clock that has been set back since, and does not count.
    pub(crate) fn is_recent(&self, written_ms: i64, span_ms: i64) -> bool {
        (written_ms..written_ms.saturating_add(span_ms)).contains(&self.wall_ms)
    }
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
    pub consumer: ConsumerGroupSettings,
}

/// The broker keys `group.consumer.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroupSettings {
    pub session_timeout_ms: GroupTiming,
    pub heartbeat_interval_ms: GroupTiming,
    pub assignment_interval_ms: GroupTiming,
    pub members_max: usize,
    /// The first is taken where members ask for none.
    pub assignors: Vec<Assignor>,
    pub migration: Migration,
    /// How often patterns are matched again although no topic came.
    pub pattern_refresh_ms: i64,
}

/// A time that groups may set for themselves, within bounds. In milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupTiming {
    /// The name of the group config.
    pub key: &'static str,
    /// Of groups that set nothing.
    pub usual: i32,
    pub least: i32,
    pub most: i32,
}

impl GroupTiming {
    /// What holds for a group. Bounds that were narrowed since it was set hold too.
    pub fn of(&self, group: &Str, image: &Image) -> i32 {
        let own = image.config(&ConfigResource::Group(group.clone()), self.key);
        let own: Option<i32> = own.and_then(|text| text.trim().parse().ok());
        own.map_or(self.usual, |it| it.clamp(self.least, self.most.max(self.least)))
    }
}

/// `group.consumer.migration.policy`: how groups may change their protocol while they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migration {
    Disabled,
    Upgrade,
    Downgrade,
    Bidirectional,
}

impl Migration {
    pub fn upgrades(self) -> bool {
        matches!(self, Migration::Upgrade | Migration::Bidirectional)
    }

    pub fn downgrades(self) -> bool {
        matches!(self, Migration::Downgrade | Migration::Bidirectional)
    }
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
    /// What came of the deletion of a group.
    Deleted(ErrorCode),
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
