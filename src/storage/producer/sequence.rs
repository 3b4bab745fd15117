//! Sequence numbers: 31 bits, counted per record, with 0 after 2³¹−1.

/// The sequence number of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub i32);

impl Sequence {
    /// The number `records` later.
    pub fn plus(self, records: i32) -> Sequence {
        assert!(records >= 0, "sequence numbers only go forward, not by {records}");
        let sum = i64::from(self.0) + i64::from(records);
        let wrapped = if sum > i64::from(i32::MAX) { sum - (i64::from(i32::MAX) + 1) } else { sum };
        Sequence(wrapped as i32)
    }

    pub fn next(self) -> Sequence {
        self.plus(1)
    }
}
