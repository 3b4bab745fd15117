//! What the clients of one run asked for, and what they were told: the only evidence rules judge
//! by.
//!
//! Law: a request is in here from the moment it is sent, with an unknown outcome until an answer
//! was read. Values are unique over the whole run, so that a record read tells which request wrote
//! it.

use std::collections::{BTreeMap, BTreeSet};

use protocol::{ErrorCode, Str, Uuid};

pub type Value = u64;

/// One partition of one incarnation of a topic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub topic: Uuid,
    pub partition: i32,
}

/// When an operation was sent and when its answer was read, in nanoseconds of virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub invoked: u64,
    pub completed: u64,
}

impl Span {
    pub fn since(invoked: u64) -> Self {
        Self { invoked, completed: u64::MAX }
    }

    /// Whether this was over before the other began.
    pub fn precedes(&self, other: &Span) -> bool {
        self.completed < other.invoked
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The answer never came, or says nothing about what happened.
    Unknown,
    Acknowledged {
        base_offset: i64,
    },
    /// The broker says that it did not append.
    Refused(ErrorCode),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Sequence {
    pub producer_id: i64,
    pub epoch: i16,
    pub first: i32,
}

/// One try to append one batch. A resend is another try with the same values and sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Produce {
    pub key: Key,
    pub span: Span,
    pub acks: i16,
    pub values: Vec<Value>,
    pub sequence: Option<Sequence>,
    pub outcome: Outcome,
    /// What was answered, if anything.
    pub error: Option<ErrorCode>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenRecord {
    pub offset: i64,
    pub timestamp: i64,
    pub value: Value,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenBatch {
    pub epoch: i32,
    pub sequence: Option<Sequence>,
    pub records: Vec<SeenRecord>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetch {
    pub key: Key,
    pub span: Span,
    pub offset: i64,
    pub error: ErrorCode,
    pub high_watermark: i64,
    pub last_stable_offset: i64,
    pub log_start_offset: i64,
    pub batches: Vec<SeenBatch>,
}

impl Fetch {
    pub fn records(&self) -> impl Iterator<Item = (&SeenBatch, &SeenRecord)> {
        self.batches
            .iter()
            .flat_map(|batch| batch.records.iter().map(move |record| (batch, record)))
    }
}

pub const EARLIEST: i64 = -2;
pub const LATEST: i64 = -1;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offsets {
    pub key: Key,
    pub span: Span,
    /// `EARLIEST`, `LATEST` or a time in ms.
    pub wanted: i64,
    pub error: ErrorCode,
    pub offset: i64,
    pub timestamp: i64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deletion {
    pub key: Key,
    pub span: Span,
    /// The records before this offset were to go; -1 means all.
    pub before: i64,
    /// What the broker answered; none while unknown.
    pub low_watermark: Option<i64>,
}

/// A partition as it was read from beginning to end once everything had healed.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct FinalLog {
    pub log_start_offset: i64,
    pub high_watermark: i64,
    pub batches: Vec<SeenBatch>,
    /// Times asked for, and the offsets and times that were answered.
    pub times: Vec<(i64, i64, i64)>,
}

impl FinalLog {
    pub fn records(&self) -> impl Iterator<Item = &SeenRecord> {
        self.batches.iter().flat_map(|batch| &batch.records)
    }
}

/// What a member was given when it joined a generation of its group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owned {
    pub group: Str,
    pub generation: i32,
    pub topic: Uuid,
    /// The instance id of a static member, the member id of another one.
    pub owner: Str,
    pub partitions: Vec<i32>,
}

/// What the leader of a generation handed in for a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    pub group: Str,
    pub generation: i32,
    pub owner: Str,
    pub partitions: Vec<i32>,
}

/// Records that a member of a consumer group has read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Consumed {
    pub group: Str,
    pub key: Key,
    pub values: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Unknown,
    Done,
    Refused,
}

/// One try to commit an offset that nobody else commits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    pub group: Str,
    pub key: Key,
    pub span: Span,
    pub offset: i64,
    /// In the name of a generation or member that was surely gone.
    pub outdated: bool,
    pub fate: Fate,
}

/// What was answered to the question how far a group has come; none when it never committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    pub group: Str,
    pub key: Key,
    pub span: Span,
    pub offset: Option<i64>,
}

#[derive(Default, Debug)]
pub struct History {
    pub produces: Vec<Produce>,
    pub fetches: Vec<Fetch>,
    pub offsets: Vec<Offsets>,
    pub deletions: Vec<Deletion>,
    /// Moments at which the power went.
    pub power_losses: Vec<u64>,
    /// Topics that may lose what a power loss takes, because they are flushed only now and then.
    pub relaxed: BTreeSet<Uuid>,
    /// Topics whose deletion was asked for.
    pub deleted: BTreeSet<Uuid>,
    pub finals: BTreeMap<Key, FinalLog>,
    pub owned: Vec<Owned>,
    pub shares: Vec<Share>,
    /// What members of consumer groups had at the epoch that stands for the generation.
    pub held: Vec<Owned>,
    pub consumed: Vec<Consumed>,
    pub commits: Vec<Commit>,
    pub known: Vec<Known>,
    pub values_made: u64,
}

impl History {
    pub fn next_value(&mut self) -> Value {
        self.values_made += 1;
        self.values_made
    }

    /// Whether acknowledged records of this partition may be gone.
    pub fn may_have_lost(&self, key: Key) -> bool {
        self.relaxed.contains(&key.topic) && !self.power_losses.is_empty()
    }

    /// Everything that was read of a partition: while the run went on, and in the end.
    pub fn seen(&self, key: Key) -> impl Iterator<Item = (&SeenBatch, &SeenRecord)> {
        let fetches = self.fetches.iter().filter(move |fetch| fetch.key == key);
        let finals = self.finals.get(&key).into_iter().flat_map(|log| &log.batches);
        fetches
            .flat_map(Fetch::records)
            .chain(finals.flat_map(|batch| batch.records.iter().map(move |record| (batch, record))))
    }

    /// Every partition that anybody spoke of.
    pub fn keys(&self) -> BTreeSet<Key> {
        let produced = self.produces.iter().map(|produce| produce.key);
        let fetched = self.fetches.iter().map(|fetch| fetch.key);
        let asked = self.offsets.iter().map(|offsets| offsets.key);
        let ended = self.finals.keys().copied();
        produced.chain(fetched).chain(asked).chain(ended).collect()
    }
}
