//! Polls a future only when it asked for it.
//!
//! A pending operation of glommio remembers every waker it is polled with until it completes, so
//! a task that is woken by something else, again and again, makes it grow without bound. Behind
//! this wrapper the operation sees one waker and is polled once per wake of that waker.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) struct Patient<F> {
    future: Pin<Box<F>>,
    turnstile: Turnstile,
}

struct Gate {
    woken: AtomicBool,
    task: Mutex<Waker>,
}

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        task.wake();
    }
}

/// Something that is polled only when it asked for it, and outlives the futures that wait for it.
pub(crate) struct Turnstile {
    gate: Arc<Gate>,
    waker: Waker,
    started: bool,
}

impl Turnstile {
    pub(crate) fn new() -> Self {
        let gate = Arc::new(Gate {
            woken: AtomicBool::new(false),
            task: Mutex::new(Waker::noop().clone()),
        });
        Turnstile { waker: Waker::from(Arc::clone(&gate)), gate, started: false }
    }

    /// Calls `poll` if this is the first time, or if it has been woken since the last.
    pub(crate) fn pass<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        {
            let mut task = self.gate.task.lock().unwrap_or_else(PoisonError::into_inner);
            if !task.will_wake(cx.waker()) {
                task.clone_from(cx.waker());
            }
        }
        if self.started && !self.gate.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = poll(&mut Context::from_waker(&self.waker));
        self.started = polled.is_pending();
        polled
    }
}

impl<F: Future> Patient<F> {
    pub(crate) fn new(future: F) -> Self {
        Patient { future: Box::pin(future), turnstile: Turnstile::new() }
    }
}

impl<F: Future> Future for Patient<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Patient { future, turnstile } = &mut *self;
        turnstile.pass(cx, |cx| future.as_mut().poll(cx))
    }
}
