//! What this executor's thread has done, counted where it happens.

use std::cell::Cell;

thread_local! {
    pub(crate) static COUNTERS: Counters = const { Counters::new() };
}

/// One set per executor thread; nothing else touches them.
pub(crate) struct Counters {
    pub(crate) receives: Cell<u64>,
    pub(crate) received_bytes: Cell<u64>,
    pub(crate) sends: Cell<u64>,
    pub(crate) sent_bytes: Cell<u64>,
    pub(crate) accepts: Cell<u64>,
    pub(crate) file_reads: Cell<u64>,
    pub(crate) file_read_bytes: Cell<u64>,
    pub(crate) file_writes: Cell<u64>,
    pub(crate) file_written_bytes: Cell<u64>,
    pub(crate) file_syncs: Cell<u64>,
    pub(crate) copied_bytes: Cell<u64>,
    pub(crate) blocking_calls: Cell<u64>,
}

impl Counters {
    const fn new() -> Self {
        Counters {
            receives: Cell::new(0),
            received_bytes: Cell::new(0),
            sends: Cell::new(0),
            sent_bytes: Cell::new(0),
            accepts: Cell::new(0),
            file_reads: Cell::new(0),
            file_read_bytes: Cell::new(0),
            file_writes: Cell::new(0),
            file_written_bytes: Cell::new(0),
            file_syncs: Cell::new(0),
            copied_bytes: Cell::new(0),
            blocking_calls: Cell::new(0),
        }
    }
}

/// Adds to one of them.
pub(crate) fn count(counter: fn(&Counters) -> &Cell<u64>, by: usize) {
    COUNTERS.with(|counters| {
        let cell = counter(counters);
        cell.set(cell.get() + by as u64);
    });
}
