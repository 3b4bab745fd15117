//! A moment that tasks of one core wait for.
//!
//! A listener is armed when it is made: make it, look at the condition, then await it, and no
//! notification in between is missed. Wakes go out in the order in which the listeners first
//! waited. A dropped listener leaves nothing behind.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Clones are the same event.
#[derive(Clone, Default)]
pub struct Event {
    state: Rc<RefCell<State>>,
}

#[derive(Default)]
struct State {
    notifications: u64,
    next_key: u64,
    waiting: BTreeMap<u64, Waker>,
}

impl Event {
    pub fn new() -> Self {
        Event::default()
    }

    /// Wakes every listener made before this call.
    pub fn notify_all(&self) {
        let waiting = {
            let mut state = self.state.borrow_mut();
            state.notifications += 1;
            std::mem::take(&mut state.waiting)
        };
        for waker in waiting.into_values() {
            waker.wake();
        }
    }

    pub fn listen(&self) -> Listen {
        let armed_at = self.state.borrow().notifications;
        Listen { state: Rc::clone(&self.state), armed_at, key: None }
    }

    /// Listeners that are being awaited now.
    pub fn waiting(&self) -> usize {
        self.state.borrow().waiting.len()
    }
}

/// Resolves at the first notification after it was made.
#[must_use = "a listener does nothing unless awaited"]
pub struct Listen {
    state: Rc<RefCell<State>>,
    armed_at: u64,
    key: Option<u64>,
}

impl Future for Listen {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let listen = self.get_mut();
        let mut state = listen.state.borrow_mut();
        if state.notifications != listen.armed_at {
            return Poll::Ready(());
        }
        let key = *listen.key.get_or_insert_with(|| {
            state.next_key += 1;
            state.next_key
        });
        match state.waiting.get_mut(&key) {
            Some(waker) => waker.clone_from(cx.waker()),
            None => {
                state.waiting.insert(key, cx.waker().clone());
            }
        }
        Poll::Pending
    }
}

impl Drop for Listen {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            // The waker is dropped after the borrow: dropping one may drop a task, which may hold
            // another listener of this event.
            let waker = self.state.borrow_mut().waiting.remove(&key);
            drop(waker);
        }
    }
}
