//! How a core does: how late it is where it wanted to be on time, and how much of it is in use.

use std::rc::Rc;
use std::time::Duration;

use runtime::task::{Either, race};
use runtime::time;

use crate::slot::Slot;

/// Wakes a few times a second, until the process is asked to stop, and counts how late that was:
/// so long a request waits for its core.
pub async fn keep_pulse(slot: Rc<Slot>) {
    let mut before = runtime::stats();
    loop {
        let due = time::now() + INTERVAL;
        if let Either::Right(()) = race(time::sleep_until(due), runtime::shutdown_requested()).await
        {
            return;
        }
        slot.metrics.delay.record_nanos(time::now().since(due).as_nanos() as u64);
        let now = runtime::stats();
        let alive = now.alive.saturating_sub(before.alive);
        if alive >= UTILISATION_OVER {
            let busy = match slot.host.tuning(slot.index).spin.is_zero() {
                true => now.processor.saturating_sub(before.processor),
                // Polling for work takes the processor without being of use.
                false => now.busy.saturating_sub(before.busy),
            };
            slot.metrics.utilisation.set((busy.as_secs_f64() / alive.as_secs_f64()).min(1.0));
            before = now;
        }
    }
}

const INTERVAL: Duration = Duration::from_millis(100);
const UTILISATION_OVER: Duration = Duration::from_secs(1);
