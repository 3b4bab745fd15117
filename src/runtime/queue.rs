//! A bounded queue between tasks of one core.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::event::Event;

/// Clones are the same queue. First in, first out; after `close` what is inside can still be
/// taken, and nothing more comes in.
pub struct Queue<T> {
    shared: Rc<Shared<T>>,
}

struct Shared<T> {
    limit: usize,
    items: RefCell<VecDeque<T>>,
    closed: Cell<bool>,
    /// An item came, or the end.
    filled: Event,
    /// An item left, or the end.
    drained: Event,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Queue { shared: Rc::clone(&self.shared) }
    }
}

impl<T> Queue<T> {
    /// Room for `limit` items, at least one.
    pub fn bounded(limit: usize) -> Self {
        assert!(limit > 0, "a queue without room never passes anything");
        let shared = Shared {
            limit,
            items: RefCell::new(VecDeque::new()),
            closed: Cell::new(false),
            filled: Event::new(),
            drained: Event::new(),
        };
        Queue { shared: Rc::new(shared) }
    }

    /// Waits for room. The item comes back when the queue is closed.
    pub async fn push(&self, mut item: T) -> Result<(), T> {
        loop {
            let drained = self.shared.drained.listen();
            match self.try_push(item) {
                Ok(()) => return Ok(()),
                Err(back) if self.is_closed() => return Err(back),
                Err(back) => item = back,
            }
            drained.await;
        }
    }

    /// The item comes back when the queue is full or closed.
    pub fn try_push(&self, item: T) -> Result<(), T> {
        {
            let mut items = self.shared.items.borrow_mut();
            if self.shared.closed.get() || items.len() >= self.shared.limit {
                return Err(item);
            }
            items.push_back(item);
        }
        self.shared.filled.notify_all();
        Ok(())
    }

    /// Waits for an item. `None` once the queue is closed and empty.
    pub async fn pop(&self) -> Option<T> {
        loop {
            let filled = self.shared.filled.listen();
            if let Some(item) = self.try_pop() {
                return Some(item);
            }
            if self.is_closed() {
                return None;
            }
            filled.await;
        }
    }

    pub fn try_pop(&self) -> Option<T> {
        let item = self.shared.items.borrow_mut().pop_front()?;
        self.shared.drained.notify_all();
        Some(item)
    }

    pub fn close(&self) {
        self.shared.closed.set(true);
        self.shared.filled.notify_all();
        self.shared.drained.notify_all();
    }

    pub fn is_closed(&self) -> bool {
        self.shared.closed.get()
    }

    pub fn len(&self) -> usize {
        self.shared.items.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
