//! Long work beside what clients wait for.

use std::time::Duration;

use crate::back::task::{should_yield, yield_now};
use crate::back::time::{now, sleep};
use crate::instant::Instant;

/// Paces work that may take longer and on which no client's latency depends: after each fraction
/// of a millisecond the core sees to everything else, sockets and disks included, for as long as
/// the work itself has run. A loop that only yields lets other tasks run, but what has come from
/// sockets and disks is looked at only when all tasks wait or have run for very long.
#[derive(Debug)]
pub struct Unhurried {
    since: Instant,
    turns: u32,
}

impl Default for Unhurried {
    fn default() -> Self {
        Unhurried { since: now(), turns: 0 }
    }
}

impl Unhurried {
    /// To be called after each piece of work of a few microseconds or less.
    pub async fn turn(&mut self) {
        self.turns += 1;
        if self.turns < TURNS_PER_LOOK {
            return;
        }
        self.turns = 0;
        let worked = now().since(self.since);
        if worked >= WORK {
            sleep(worked.min(REST_MAX)).await;
        } else if should_yield() {
            yield_now().await;
        } else {
            return;
        }
        self.since = now();
    }
}

const TURNS_PER_LOOK: u32 = 16;
const WORK: Duration = Duration::from_micros(100);
const REST_MAX: Duration = Duration::from_millis(1);
