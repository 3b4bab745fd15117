//! Which batches of a log being cleaned belong to aborted transactions, and which markers have
//! lost their data.
//!
//! Law: batches are shown in offset order, each once. A batch of an aborted transaction may go at
//! once. A marker may go when no batch of its transaction was seen before it in the same walk,
//! so never before its data.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use protocol::batch::BatchHeader;

/// A transaction that was aborted, by the offsets of its first record and of its marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
    pub last_offset: i64,
}

/// What a marker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    Abort,
    Commit,
    /// The batch was emptied, by an earlier round.
    Gone,
    /// No marker of a transaction.
    Other,
}

impl Marker {
    /// By the key of a control record: version and type, two bytes each.
    pub fn of_key(key: Option<&[u8]>) -> Marker {
        match key {
            Some([_, _, 0, 0, ..]) => Marker::Abort,
            Some([_, _, 0, 1, ..]) => Marker::Commit,
            _ => Marker::Other,
        }
    }
}

/// The transactions that are open at the place where the walk is.
#[derive(Debug, Default)]
pub struct WalkedTransactions {
    /// By first offset.
    aborted: VecDeque<AbortedTransaction>,
    /// Producers in an aborted transaction, and whether a batch of it was seen.
    in_aborted: BTreeMap<i64, bool>,
    /// Producers with a batch seen of a transaction that was not aborted.
    in_committed: BTreeSet<i64>,
}

impl WalkedTransactions {
    /// `aborted` overlaps the offsets that will be walked over.
    pub fn new(mut aborted: Vec<AbortedTransaction>) -> WalkedTransactions {
        aborted.sort_unstable_by_key(|transaction| transaction.first_offset);
        WalkedTransactions { aborted: aborted.into(), ..WalkedTransactions::default() }
    }

    /// A batch of records comes. True when its transaction was aborted.
    pub fn on_batch(&mut self, header: &BatchHeader) -> bool {
        self.begin_up_to(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        match self.in_aborted.get_mut(&header.producer_id) {
            Some(seen) => {
                *seen = true;
                true
            }
            None => {
                self.in_committed.insert(header.producer_id);
                false
            }
        }
    }

    /// A marker comes. True when nothing of its transaction is left.
    pub fn on_marker(&mut self, header: &BatchHeader, marker: Marker) -> bool {
        self.begin_up_to(header.last_offset());
        match marker {
            Marker::Gone => true,
            Marker::Abort => !self.in_aborted.remove(&header.producer_id).unwrap_or(false),
            Marker::Commit => !self.in_committed.remove(&header.producer_id),
            Marker::Other => false,
        }
    }

    fn begin_up_to(&mut self, offset: i64) {
        while let Some(next) = self.aborted.pop_front_if(|next| next.first_offset <= offset) {
            self.in_aborted.entry(next.producer_id).or_insert(false);
        }
    }
}
