//! One round of cleaning at a time, and none when someone needs the log for himself.
//!
//! Law: whoever is about to close, delete or cut a log first makes a round end that is under way;
//! a round looks for that between two chunks and wherever it pauses. What the round had exchanged
//! stays, the rest is done by a later one.

use std::cell::Cell;

use runtime::local::Event;
use runtime::task::{Either, race};
use runtime::time::{Instant, now, sleep_until};

use crate::log::{Turn, TurnGuard};

/// The right to clean a log.
#[derive(Default)]
pub struct CleanTurn {
    turn: Turn,
    wanted: Cell<usize>,
    asked: Event,
}

/// Nothing is cleaned as long as this is held.
pub struct KeptOff<'a> {
    _held: TurnGuard<'a>,
    _wanting: Wanting<'a>,
}

/// Someone needs the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl CleanTurn {
    /// The right to begin a round; none when someone wants the log or a round is under way.
    pub fn begin(&self) -> Option<TurnGuard<'_>> {
        if self.wanted.get() > 0 { None } else { self.turn.try_take() }
    }

    /// Ends a round that is under way.
    pub async fn keep_off(&self) -> KeptOff<'_> {
        self.wanted.set(self.wanted.get() + 1);
        self.asked.notify_all();
        let wanting = Wanting(self);
        KeptOff { _held: self.turn.take().await, _wanting: wanting }
    }

    /// For who has begun a round: whether it may go on.
    pub fn check(&self) -> Result<(), Stopped> {
        if self.wanted.get() > 0 { Err(Stopped) } else { Ok(()) }
    }

    /// A pause of a round.
    pub async fn pause_until(&self, moment: Instant) -> Result<(), Stopped> {
        let asked = self.asked.listen();
        self.check()?;
        if moment <= now() {
            return Ok(());
        }
        match race(asked, sleep_until(moment)).await {
            Either::Left(_) => Err(Stopped),
            Either::Right(()) => Ok(()),
        }
    }
}

/// Whoever goes away while he waits wants it no more.
struct Wanting<'a>(&'a CleanTurn);

impl Drop for Wanting<'_> {
    fn drop(&mut self) {
        self.0.wanted.set(self.0.wanted.get() - 1);
    }
}
