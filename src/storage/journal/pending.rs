//! Which entries of all journals together still count, by log.
//!
//! Law: of a log counts what came after the last entry that settled it (truncated, deleted, handed
//! over). Entries may be noted in any order; what is remembered grows with the logs, not with the
//! entries.

use std::collections::BTreeMap;

use protocol::Uuid;

use super::format::EntryKind;
use super::scan::{Order, Seen};

pub type LogKey = (Uuid, i32);

#[derive(Debug, Default)]
pub struct Pending {
    logs: BTreeMap<LogKey, Share>,
}

/// What there is of one log.
#[derive(Debug, Default)]
struct Share {
    /// The last entry that settled it.
    settled: Option<Order>,
    /// Openings of the log that left batches, in order.
    openings: Vec<Opening>,
    /// Bytes of batches, some of which may count no more.
    bytes: u64,
}

#[derive(Debug)]
struct Opening {
    ownership: u64,
    slot: u32,
    last: Order,
}

impl Seen<'_> {
    pub fn key(&self) -> LogKey {
        (self.head.topic_id, self.head.partition)
    }
}

impl Pending {
    pub fn note(&mut self, entry: &Seen<'_>) {
        let share = self.logs.entry(entry.key()).or_default();
        if settles(entry.head.kind) {
            share.settle(entry.order);
        } else if entry.head.kind == EntryKind::Batches {
            share.bytes += u64::from(entry.head.length);
            share.add(entry.order);
        }
    }

    /// Whether an entry counts, and as part of which of its log's openings, from 0 on.
    pub fn turn_of(&self, entry: &Seen<'_>) -> Option<usize> {
        let share = self.logs.get(&entry.key())?;
        let counts = entry.head.kind == EntryKind::Batches && share.counts(entry.order);
        let Order { ownership, slot, .. } = entry.order;
        let ours = |it: &Opening| (it.ownership, it.slot) == (ownership, slot);
        share.openings.iter().position(ours).filter(|_| counts)
    }

    /// How many openings of one log there are at most. More than one would need a log that nobody
    /// settled when it was opened again.
    pub fn turns(&self) -> usize {
        self.logs.values().map(|share| share.openings.len()).max().unwrap_or(0)
    }

    /// At most so many bytes of batches there are of a log.
    pub fn bytes_of(&self, key: &LogKey) -> u64 {
        self.logs.get(key).map_or(0, |share| share.bytes)
    }
}

impl Share {
    fn counts(&self, order: Order) -> bool {
        self.settled.is_none_or(|settled| settled < order)
    }

    fn settle(&mut self, order: Order) {
        self.settled = self.settled.max(Some(order));
        let settled = self.settled;
        self.openings.retain(|opening| Some(opening.last) > settled);
    }

    fn add(&mut self, order: Order) {
        if !self.counts(order) {
            return;
        }
        let Order { ownership, slot, .. } = order;
        let found =
            self.openings.binary_search_by_key(&(ownership, slot), |it| (it.ownership, it.slot));
        match found {
            Ok(at) => self.openings[at].last = self.openings[at].last.max(order),
            Err(at) => self.openings.insert(at, Opening { ownership, slot, last: order }),
        }
    }
}

/// Whether what came before an entry of this kind is settled.
fn settles(kind: EntryKind) -> bool {
    match kind {
        EntryKind::Batches => false,
        EntryKind::Truncated => !runtime::sabotaged("replay a cut tail"),
        EntryKind::Deleted => !runtime::sabotaged("replay a deleted topic"),
        EntryKind::HandedOver => true,
    }
}
