//! Bytes of memory that the tasks of one core may hold, and the line of those who wait for some.
//!
//! Leases are granted strictly in the order in which they were asked for, so a large one is never
//! starved by small ones. `used` is the sum of all leases in being. It exceeds `limit` only while
//! a single request larger than the whole limit is served, alone, and by what was overdrawn.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Clones are the same budget.
#[derive(Clone)]
pub struct Budget {
    shared: Rc<Shared>,
}

struct Shared {
    limit: usize,
    used: Cell<usize>,
    line: RefCell<VecDeque<Rc<Waiter>>>,
}

struct Waiter {
    bytes: usize,
    granted: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Budget {
    pub fn new(limit_bytes: usize) -> Self {
        let shared =
            Shared { limit: limit_bytes, used: Cell::new(0), line: RefCell::new(VecDeque::new()) };
        Budget { shared: Rc::new(shared) }
    }

    pub fn limit(&self) -> usize {
        self.shared.limit
    }

    pub fn used(&self) -> usize {
        self.shared.used.get()
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.shared.line.borrow().len()
    }

    /// A lease now, or none when there is no room or others wait.
    pub fn try_lease(&self, bytes: usize) -> Option<Lease> {
        if !self.shared.line.borrow().is_empty() || !self.shared.fits(bytes) {
            return None;
        }
        self.shared.used.set(self.shared.used.get() + bytes);
        Some(Lease { shared: Rc::clone(&self.shared), bytes })
    }

    /// A lease at once, whether it fits or not. Who overdraws sees to it that few do at a time.
    pub fn overdraw(&self, bytes: usize) -> Lease {
        self.shared.used.set(self.shared.used.get() + bytes);
        Lease { shared: Rc::clone(&self.shared), bytes }
    }

    /// A lease as soon as it fits and everybody who asked before has theirs. A request for more
    /// than the limit waits until nothing else is leased.
    pub async fn lease(&self, bytes: usize) -> Lease {
        if let Some(lease) = self.try_lease(bytes) {
            return lease;
        }
        let waiter =
            Rc::new(Waiter { bytes, granted: Cell::new(false), waker: RefCell::new(None) });
        self.shared.line.borrow_mut().push_back(Rc::clone(&waiter));
        Waiting { shared: Rc::clone(&self.shared), waiter, taken: false }.await
    }
}

impl Shared {
    fn fits(&self, bytes: usize) -> bool {
        let used = self.used.get();
        used == 0 || used.saturating_add(bytes) <= self.limit
    }

    fn give_back(&self, bytes: usize) {
        let used = self.used.get();
        assert!(bytes <= used, "more given back than was leased");
        self.used.set(used - bytes);
        self.grant();
    }

    fn grant(&self) {
        loop {
            let waiter = {
                let mut line = self.line.borrow_mut();
                match line.front() {
                    Some(front) if self.fits(front.bytes) => line.pop_front(),
                    _ => None,
                }
            };
            let Some(waiter) = waiter else { return };
            self.used.set(self.used.get() + waiter.bytes);
            waiter.granted.set(true);
            let waker = waiter.waker.borrow_mut().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

struct Waiting {
    shared: Rc<Shared>,
    waiter: Rc<Waiter>,
    taken: bool,
}

impl Future for Waiting {
    type Output = Lease;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Lease> {
        if self.waiter.granted.get() {
            assert!(!self.taken, "polled after it was granted");
            self.taken = true;
            let lease = Lease { shared: Rc::clone(&self.shared), bytes: self.waiter.bytes };
            return Poll::Ready(lease);
        }
        *self.waiter.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        if self.waiter.granted.get() {
            self.shared.give_back(self.waiter.bytes);
            return;
        }
        self.shared.line.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.waiter));
        self.shared.grant();
    }
}

/// Bytes held. They go back when it is dropped.
#[must_use = "a lease that is dropped is given back"]
pub struct Lease {
    shared: Rc<Shared>,
    bytes: usize,
}

impl Lease {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps `to_bytes` and gives the rest back.
    pub fn shrink(&mut self, to_bytes: usize) {
        assert!(to_bytes <= self.bytes, "a lease cannot grow by shrinking");
        let surplus = self.bytes - to_bytes;
        self.bytes = to_bytes;
        if surplus > 0 {
            self.shared.give_back(surplus);
        }
    }

    /// Holds what `other` held too.
    pub fn merge(&mut self, mut other: Lease) {
        assert!(Rc::ptr_eq(&self.shared, &other.shared), "leases of two budgets");
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.shared.give_back(self.bytes);
        }
    }
}
