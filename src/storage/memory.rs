//! A slot's buffers and who has to give them up.
//!
//! Law: every append buffer, tail chunk and read window is leased from the one budget. What is
//! only kept because someone might read it leaves when room is needed, the longest unused first;
//! what is not yet written never leaves.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

use runtime::local::{Budget, Lease};

use crate::log::LogInner;
use crate::windows::Windows;

pub struct Memory {
    budget: Budget,
    cache_bytes_max: usize,
    pub windows: Windows,
    /// Written chunks in the order in which they were written, by the logs that hold them.
    tails: RefCell<VecDeque<(u64, Weak<LogInner>)>>,
    tail_bytes: Cell<usize>,
    index_bytes_max: usize,
    indexes: RefCell<VecDeque<(Weak<LogInner>, i64, usize)>>,
    index_bytes: Cell<usize>,
}

impl Memory {
    pub fn new(budget: Budget, cache_bytes_max: usize, index_bytes_max: usize) -> Memory {
        Memory {
            budget,
            cache_bytes_max,
            windows: Windows::default(),
            tails: RefCell::default(),
            tail_bytes: Cell::new(0),
            index_bytes_max,
            indexes: RefCell::default(),
            index_bytes: Cell::new(0),
        }
    }

    /// Bytes now if any way, without waiting.
    pub fn try_lease(&self, bytes: usize) -> Option<Lease> {
        self.make_room(bytes);
        self.budget.try_lease(bytes)
    }

    /// Bytes, as soon as there are any.
    pub async fn lease(&self, bytes: usize) -> Lease {
        match self.try_lease(bytes) {
            Some(lease) => lease,
            None => self.budget.lease(bytes).await,
        }
    }

    /// A chunk of `log` has been written and is kept for readers.
    pub fn on_chunk_written(&self, log: &Rc<LogInner>, bytes: usize) {
        self.tails.borrow_mut().push_back((self.windows.tick(), Rc::downgrade(log)));
        self.tail_bytes.set(self.tail_bytes.get() + bytes);
        self.trim();
    }

    /// A log has let go of all its chunks by itself.
    pub fn on_tail_cleared(&self, bytes: usize) {
        self.tail_bytes.set(self.tail_bytes.get() - bytes);
    }

    /// The index of a sealed segment is in memory; the one loaded longest ago makes room for it.
    pub fn on_index_loaded(&self, log: &Rc<LogInner>, base: i64, bytes: usize) {
        self.indexes.borrow_mut().push_back((Rc::downgrade(log), base, bytes));
        self.index_bytes.set(self.index_bytes.get() + bytes);
        while self.index_bytes.get() > self.index_bytes_max {
            let oldest = self.indexes.borrow_mut().pop_front();
            let Some((log, base, bytes)) = oldest else { return };
            self.index_bytes.set(self.index_bytes.get() - bytes);
            if let Some(log) = log.upgrade() {
                log.forget_index(base);
            }
        }
    }

    /// Keeps the caches within their share, and gives room to those who wait for it.
    pub fn trim(&self) {
        let over = |memory: &Memory| {
            memory.cached_bytes() > memory.cache_bytes_max || memory.budget.waiting() > 0
        };
        while over(self) && self.evict_one() {}
    }

    /// Bytes kept for readers.
    pub fn cached_bytes(&self) -> usize {
        self.tail_bytes.get() + self.windows.bytes()
    }

    /// Evicts until `bytes` could be leased or nothing is left to evict.
    pub fn make_room(&self, bytes: usize) {
        let short = |budget: &Budget| budget.used().saturating_add(bytes) > budget.limit();
        while short(&self.budget) && self.evict_one() {}
    }

    fn evict_one(&self) -> bool {
        let oldest_chunk = self.tails.borrow().front().map(|(written_at, _)| *written_at);
        match (self.windows.oldest(), oldest_chunk) {
            (None, None) => false,
            (Some(window), Some(chunk)) if window < chunk => self.windows.evict_oldest().is_some(),
            (Some(_), None) => self.windows.evict_oldest().is_some(),
            (_, Some(_)) => {
                self.evict_chunk();
                true
            }
        }
    }

    fn evict_chunk(&self) {
        let Some((_, log)) = self.tails.borrow_mut().pop_front() else { return };
        let Some(log) = log.upgrade() else { return };
        if let Some(bytes) = log.evict_oldest_chunk() {
            self.tail_bytes.set(self.tail_bytes.get() - bytes);
        }
    }
}
