//! Messages between the executors of one host.
//!
//! One bounded lane per ordered pair of cores keeps the order of what one core sends to another
//! and lets no core fill another's inbox for the rest. A receiver takes from the lanes in turn.
//! Messages are rare (they never carry records), so a lock that is held for a push is enough; a
//! core that sleeps is woken through its ring.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Messages that one core may have waiting at another.
const LANE_MESSAGES_MAX: usize = 1024;

/// One core's end: sends to every core, receives from every core, itself included.
pub struct Mesh<M> {
    index: usize,
    inboxes: Arc<[Inbox<M>]>,
    sent: Cell<u64>,
}

struct Inbox<M> {
    lanes: Mutex<Lanes<M>>,
}

struct Lanes<M> {
    /// By sender.
    waiting: Vec<VecDeque<M>>,
    /// The lane to look at first.
    next: usize,
    receiver: Option<Waker>,
    /// Senders that found their lane full.
    senders: Vec<Waker>,
}

impl<M> Inbox<M> {
    fn locked(&self) -> MutexGuard<'_, Lanes<M>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end for each of `count` cores.
pub(crate) fn connect<M: Send + 'static>(count: usize) -> Vec<Mesh<M>> {
    let inboxes: Arc<[Inbox<M>]> = (0..count)
        .map(|_| {
            let waiting = (0..count).map(|_| VecDeque::new()).collect();
            let lanes = Lanes { waiting, next: 0, receiver: None, senders: Vec::new() };
            Inbox { lanes: Mutex::new(lanes) }
        })
        .collect();
    (0..count)
        .map(|index| Mesh { index, inboxes: Arc::clone(&inboxes), sent: Cell::new(0) })
        .collect()
}

impl<M: Send + 'static> Mesh<M> {
    /// Waits while `core` has too many of ours to look at.
    pub async fn send(&self, core: usize, message: M) {
        let mut message = Some(message);
        poll_fn(|cx| {
            let Some(unsent) = message.take() else { return Poll::Ready(()) };
            match self.push(core, unsent, Some(cx)) {
                Ok(()) => Poll::Ready(()),
                Err(back) => {
                    message = Some(back);
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// The message comes back when `core` has too many of ours to look at.
    pub fn try_send(&self, core: usize, message: M) -> Result<(), M> {
        self.push(core, message, None)
    }

    fn push(&self, core: usize, message: M, cx: Option<&mut Context<'_>>) -> Result<(), M> {
        let mut lanes = self.inboxes[core].locked();
        if lanes.waiting[self.index].len() >= LANE_MESSAGES_MAX {
            if let Some(cx) = cx
                && !lanes.senders.iter().any(|waker| waker.will_wake(cx.waker()))
            {
                lanes.senders.push(cx.waker().clone());
            }
            return Err(message);
        }
        lanes.waiting[self.index].push_back(message);
        let receiver = lanes.receiver.take();
        drop(lanes);
        self.sent.set(self.sent.get() + 1);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        Ok(())
    }

    /// The next message and the core it is from. Order holds per sender; senders take turns. Only
    /// one task of a core may wait here.
    pub async fn recv(&self) -> (usize, M) {
        poll_fn(|cx| {
            let mut lanes = self.inboxes[self.index].locked();
            let Some(found) = lanes.take_next() else {
                let old = lanes.receiver.replace(cx.waker().clone());
                drop(lanes);
                drop(old);
                return Poll::Pending;
            };
            let senders = std::mem::take(&mut lanes.senders);
            drop(lanes);
            for sender in senders {
                sender.wake();
            }
            Poll::Ready(found)
        })
        .await
    }

    /// Messages that this core has sent.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }
}

impl<M> Lanes<M> {
    fn take_next(&mut self) -> Option<(usize, M)> {
        let count = self.waiting.len();
        for step in 0..count {
            let from = (self.next + step) % count;
            if let Some(message) = self.waiting[from].pop_front() {
                self.next = (from + 1) % count;
                return Some((from, message));
            }
        }
        None
    }
}
