//! The logs with batches that are only in the journal, and whose turn it is to write them out.
//!
//! Law: a log is here from its first such record until all of it is in the segments, and not a
//! moment longer. Whose turn it is, is found without a walk, however many logs there are: the
//! longest undestaged first, of one record those with the smaller number.

use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use crate::log::LogInner;

/// Sequence number of a log's oldest record that is not in its segment, and the log's number.
type Since = (u64, u64);

#[derive(Default)]
pub(super) struct Undestaged {
    /// Not asked to write out yet.
    waiting: BTreeMap<Since, Weak<LogInner>>,
    asked: BTreeMap<Since, Weak<LogInner>>,
    /// Bytes of memory that all of them hold.
    pub held_bytes: usize,
    /// Bytes of batches.
    pub bytes: u64,
}

impl Undestaged {
    /// The log has its first undestaged record.
    pub fn begin(&mut self, sequence: u64, log: &Rc<LogInner>) {
        self.waiting.insert((sequence, log.number), Rc::downgrade(log));
    }

    /// All of the log is in its segments; `sequence` is what it began with.
    pub fn end(&mut self, sequence: u64, log: &LogInner) {
        let since = (sequence, log.number);
        let found = self.waiting.remove(&since).or_else(|| self.asked.remove(&since));
        assert!(found.is_some(), "a log leaves once");
    }

    /// Whose turn it is; it counts as asked from now on.
    pub fn next(&mut self) -> Option<Rc<LogInner>> {
        loop {
            let (since, log) = self.waiting.pop_first()?;
            if let Some(found) = log.upgrade() {
                self.asked.insert(since, log);
                return Some(found);
            }
        }
    }

    /// How many were asked and are not done.
    pub fn asked(&self) -> usize {
        self.asked.len()
    }

    pub fn logs(&self) -> usize {
        self.waiting.len() + self.asked.len()
    }

    /// Sequence number of the oldest record that counts; none when all is in the segments. A log
    /// that nobody has any more was given up with its slot.
    pub fn oldest(&mut self) -> Option<u64> {
        let [waiting, asked] = [&mut self.waiting, &mut self.asked].map(|logs| {
            while logs.first_key_value().is_some_and(|(_, log)| log.strong_count() == 0) {
                logs.pop_first();
            }
            logs.first_key_value().map(|((sequence, _), _)| *sequence)
        });
        waiting.into_iter().chain(asked).min()
    }
}
