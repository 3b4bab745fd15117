//! Tasks of the simulated executors.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::time::sleep;
use super::world::current;

/// One in how many calls of `should_yield` says yes.
const YIELD_ONE_IN: u64 = 16;

/// How long work off the loop takes at most.
const BLOCKING_MAX: Duration = Duration::from_micros(500);

/// Starts a task on this core. It runs until it is done or the process ends.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    let context = current();
    if context.process.alive() {
        context.world.scheduler.spawn(&context.process, context.core, Box::pin(future));
    }
}

/// Lets the other runnable tasks of this core go first.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|task| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Whether this task has run for long enough. The seed decides.
pub fn should_yield() -> bool {
    current().world.below(YIELD_ONE_IN) == 0
}

/// Runs `f` off the loop: here at a moment of the seed's choice, with its result known later.
pub async fn blocking<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let world = current().world;
    let range = Duration::ZERO..=BLOCKING_MAX;
    sleep(world.duration(&range)).await;
    let result = f();
    sleep(world.duration(&range)).await;
    result
}
