//! One value from one core to another.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The other end was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other end of the channel is gone")]
pub struct Closed;

/// Both ends may be on any core.
pub fn oneshot<T: Send>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let slot = Slot { value: None, waker: None, sender_gone: false, receiver_gone: false };
    let shared = Arc::new(Mutex::new(slot));
    (OneshotSender { shared: Arc::clone(&shared) }, OneshotReceiver { shared })
}

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
    sender_gone: bool,
    receiver_gone: bool,
}

fn locked<T>(shared: &Mutex<Slot<T>>) -> MutexGuard<'_, Slot<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

pub struct OneshotSender<T> {
    shared: Arc<Mutex<Slot<T>>>,
}

impl<T: Send> OneshotSender<T> {
    /// The value comes back when nobody waits for it any more.
    pub fn send(self, value: T) -> Result<(), T> {
        let mut slot = locked(&self.shared);
        if slot.receiver_gone {
            return Err(value);
        }
        slot.value = Some(value);
        Ok(())
    }

    /// Whether the receiver was dropped.
    pub fn is_closed(&self) -> bool {
        locked(&self.shared).receiver_gone
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut slot = locked(&self.shared);
            slot.sender_gone = true;
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Resolves to the value, or to `Closed` when the sender was dropped without sending.
#[must_use = "a receiver does nothing unless awaited"]
pub struct OneshotReceiver<T> {
    shared: Arc<Mutex<Slot<T>>>,
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, Closed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Closed>> {
        let mut slot = locked(&self.shared);
        if let Some(value) = slot.value.take() {
            return Poll::Ready(Ok(value));
        }
        if slot.sender_gone {
            return Poll::Ready(Err(Closed));
        }
        let old = slot.waker.replace(cx.waker().clone());
        drop(slot);
        drop(old);
        Poll::Pending
    }
}

impl<T> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        let left = {
            let mut slot = locked(&self.shared);
            slot.receiver_gone = true;
            (slot.value.take(), slot.waker.take())
        };
        drop(left);
    }
}
