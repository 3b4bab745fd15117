//! Virtual time: the clock stands still while anything is runnable.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::instant::Instant;

use super::world::{Action, TimerKey, World, current};

/// The moment, counted from the beginning of the simulation.
pub fn now() -> Instant {
    Instant::from_nanos(current().world.now_ns())
}

/// The wall clock of this host in milliseconds since 1970; it can be made to jump.
pub fn wall_ms() -> i64 {
    let context = current();
    let elapsed = (context.world.now_ns() / 1_000_000) as i64;
    context.world.options.wall_start_ms + elapsed + context.process.host.wall_offset_ms.get()
}

/// A number drawn from the seed. A dead process draws nothing, so its destructors change nothing.
pub fn random_u64() -> u64 {
    let context = current();
    if context.process.alive() { context.world.random_u64() } else { 0 }
}

/// Waits until `deadline`.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep { world: current().world, deadline_ns: deadline.as_nanos(), timer: None }
}

/// Waits for `duration`.
pub fn sleep(duration: Duration) -> Sleep {
    let world = current().world;
    let deadline_ns = after(world.now_ns(), duration);
    Sleep { world, deadline_ns, timer: None }
}

/// The moment `duration` after `now_ns`.
pub(crate) fn after(now_ns: u64, duration: Duration) -> u64 {
    now_ns.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// A wait for a moment; dropping it forgets the timer.
pub struct Sleep {
    world: Rc<World>,
    deadline_ns: u64,
    timer: Option<TimerKey>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        if self.world.now_ns() >= self.deadline_ns {
            return Poll::Ready(());
        }
        match self.timer {
            Some(timer) => self.world.rewake(timer, task.waker()),
            None => {
                let wake = Action::Wake(task.waker().clone());
                self.timer = Some(self.world.schedule(self.deadline_ns, None, wake));
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.world.cancel(timer);
        }
    }
}
