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
        let late = time::now().since(due);
        slot.metrics.delay.record_nanos(late.as_nanos() as u64);
        if late >= STALL {
            let ms = late.as_millis() as u64;
            tracing::warn!(core = slot.index.0, ms, "the core made no progress for a while");
        }
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

/// As long as what `coretide_core_stalls` counts.
const STALL: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(100);
const UTILISATION_OVER: Duration = Duration::from_secs(1);
