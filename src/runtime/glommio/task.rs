//! Tasks of this executor.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::beside;
use super::counters::count;

/// Runs beside the caller until it ends by itself: a spawned task is never cancelled.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    glommio::spawn_local(future).detach();
}

/// Whether a loop should call `yield_now`, asked once for each thing it does: it has run for long,
/// or has done so many things that others of this core may wait.
pub fn should_yield() -> bool {
    let asked = ASKED.get() + 1;
    let due = asked >= ASKED_MAX || glommio::executor().need_preempt();
    ASKED.set(if due { 0 } else { asked });
    due
}

thread_local! {
    /// How often `should_yield` was asked since it said yes, by all loops together: each keeps the
    /// core from the others.
    static ASKED: Cell<u32> = const { Cell::new(0) };
}

/// Lets every other runnable task of this core run first.
pub async fn yield_now() {
    Yield { yielded: false }.await;
    glommio::executor().yield_if_needed().await;
}

struct Yield {
    yielded: bool,
}

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Runs `function` on a thread beside the executor. It runs to its end even when nobody waits for
/// it any more, and an executor ends only after it has. What is asked for later than that never
/// runs.
pub async fn blocking<R, F>(function: F) -> R
where
    R: Send + 'static,
    F: FnOnce() -> R + Send + 'static,
{
    count(|counters| &counters.blocking_calls, 1);
    beside::run(function).await
}

/// A fraction of a millisecond, when what is asked about takes a microsecond.
const ASKED_MAX: u32 = 250;
