//! Waiting until one of several logs moves.
//!
//! The listeners are armed when the waiter is made, before the logs are read, so nothing that
//! happens between reading and waiting is missed. They leave nothing behind when dropped.
//!
//! However many they are, each is asked once, a few in one go; from then on whichever moves says
//! so itself, and nobody walks over them.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use runtime::local::Listen;
use runtime::task;

/// Listens to everything that a fetch reads.
#[derive(Default)]
pub struct FetchWaiter {
    listening: Vec<Listen>,
    /// So many of them have been asked.
    asked: usize,
    moved: Arc<Moved>,
}

/// Whether anything has moved, and who waits for that.
#[derive(Default)]
struct Moved {
    has: AtomicBool,
    waiting: Mutex<Option<Waker>>,
}

impl Wake for Moved {
    fn wake(self: Arc<Self>) {
        self.has.store(true, Ordering::Release);
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }
}

impl Moved {
    fn tell(&self, waker: &Waker) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }
}

impl FetchWaiter {
    pub fn listen(&mut self, listener: Listen) {
        self.listening.push(listener);
    }

    /// Resolves when anything listened to has moved since; never, if nothing is listened to.
    pub async fn moved(&mut self) {
        poll_fn(|cx| self.poll_moved(cx)).await;
    }

    fn poll_moved(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.moved.tell(cx.waker());
        let waker = Waker::from(self.moved.clone());
        let mut each = Context::from_waker(&waker);
        let rest = &mut self.listening[self.asked..];
        for listener in rest.iter_mut().take(LISTENERS_AT_A_TIME) {
            if Future::poll(Pin::new(listener), &mut each).is_ready() {
                return Poll::Ready(());
            }
            self.asked += 1;
        }
        if self.moved.has.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        if self.asked < self.listening.len() {
            // Others first, then the next ones.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Listens no longer.
    pub async fn end(mut self) {
        while self.listening.len() > LISTENERS_AT_A_TIME {
            self.listening.truncate(self.listening.len() - LISTENERS_AT_A_TIME);
            task::yield_now().await;
        }
    }
}

/// Listeners that are asked, or dropped, in one go.
const LISTENERS_AT_A_TIME: usize = 500;
