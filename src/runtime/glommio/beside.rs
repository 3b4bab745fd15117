//! Work on the threads beside an executor.
//!
//! Law: an executor ends only after all of it has ended. Its threads take it for a fault when
//! nobody takes an answer any more, and whoever has seen a host end counts on nothing of it going
//! on. Work that is asked for after the main future has ended is never begun.

use std::cell::Cell;
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::patient::Patient;
use super::process::end_on_panic;

#[derive(Default)]
struct Beside {
    in_flight: Cell<usize>,
    ending: Cell<bool>,
    /// Who waits for the last of it to end.
    waiter: Cell<Option<Waker>>,
}

thread_local! {
    static BESIDE: Beside = Beside::default();
}

/// One piece of work, from before it is begun until its answer was taken.
struct InFlight;

impl InFlight {
    async fn begin() -> Self {
        if BESIDE.with(|beside| beside.ending.get()) {
            return pending().await;
        }
        BESIDE.with(|beside| beside.in_flight.set(beside.in_flight.get() + 1));
        InFlight
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        BESIDE.with(|beside| {
            beside.in_flight.set(beside.in_flight.get() - 1);
            if let Some(waiter) = beside.waiter.take() {
                waiter.wake();
            }
        });
    }
}

/// Runs `function` on one of the threads.
pub(crate) async fn run<R, F>(function: F) -> R
where
    R: Send + 'static,
    F: FnOnce() -> R + Send + 'static,
{
    let in_flight = InFlight::begin().await;
    let work = async move {
        let output = glommio::executor().spawn_blocking(move || end_on_panic(function)).await;
        drop(in_flight);
        output
    };
    Call { work: Some(Patient::new(work)) }.await
}

/// Takes the answer even when nobody waits for it any more.
struct Call<W: Future + 'static> {
    work: Option<Patient<W>>,
}

impl<W: Future + 'static> Future for Call<W> {
    type Output = W::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<W::Output> {
        let Some(work) = self.work.as_mut() else { panic!("polled after its end") };
        let polled = Pin::new(work).poll(cx);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<W: Future + 'static> Drop for Call<W> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            super::task::spawn(async move { drop(work.await) });
        }
    }
}

/// Returns when nothing is in flight any more. Nothing is begun from now on.
pub(crate) async fn end() {
    BESIDE.with(|beside| beside.ending.set(true));
    poll_fn(|cx| {
        BESIDE.with(|beside| {
            if beside.in_flight.get() == 0 {
                return Poll::Ready(());
            }
            beside.waiter.set(Some(cx.waker().clone()));
            Poll::Pending
        })
    })
    .await;
}
