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
    gate: Option<(Arc<Gate>, Waker)>,
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

impl<F: Future> Patient<F> {
    pub(crate) fn new(future: F) -> Self {
        Patient { future: Box::pin(future), gate: None }
    }
}

impl<F: Future> Future for Patient<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let waker = match &this.gate {
            None => {
                let task = Mutex::new(cx.waker().clone());
                let gate = Arc::new(Gate { woken: AtomicBool::new(false), task });
                let waker = Waker::from(Arc::clone(&gate));
                &this.gate.insert((gate, waker)).1
            }
            Some((gate, waker)) => {
                {
                    let mut task = gate.task.lock().unwrap_or_else(PoisonError::into_inner);
                    if !task.will_wake(cx.waker()) {
                        task.clone_from(cx.waker());
                    }
                }
                if !gate.woken.swap(false, Ordering::AcqRel) {
                    return Poll::Pending;
                }
                waker
            }
        };
        this.future.as_mut().poll(&mut Context::from_waker(waker))
    }
}
