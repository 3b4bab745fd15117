//! Tasks of this executor.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::beside;
use super::counters::count;

/// Runs beside the caller until it ends by itself: a spawned task is never cancelled.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    glommio::spawn_local(future).detach();
}

/// Whether I/O waits for this core: a loop that runs long should call `yield_now` then.
pub fn should_yield() -> bool {
    glommio::executor().need_preempt()
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
