//! Waiting until one of several logs moves.
//!
//! The listeners are armed when the waiter is made, before the logs are read, so nothing that
//! happens between reading and waiting is missed. They leave nothing behind when dropped.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use runtime::local::Listen;

/// Listens to everything that a fetch reads.
#[derive(Default)]
pub struct FetchWaiter {
    listening: Vec<Listen>,
}

impl FetchWaiter {
    pub fn listen(&mut self, listener: Listen) {
        self.listening.push(listener);
    }

    /// Resolves when anything listened to has moved since; never, if nothing is listened to.
    pub async fn moved(mut self) {
        poll_fn(|cx| {
            let moved = |each: &mut Listen| Future::poll(Pin::new(each), cx).is_ready();
            if self.listening.iter_mut().any(moved) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}
