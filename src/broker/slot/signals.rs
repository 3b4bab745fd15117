//! Two small things that tasks of one slot wait for.

use std::cell::Cell;
use std::future::Future;

use runtime::local::Event;
use runtime::task::{Either, race};

/// A switch that is turned once.
#[derive(Default)]
pub struct Stop {
    set: Cell<bool>,
    event: Event,
}

impl Stop {
    pub fn set(&self) {
        self.set.set(true);
        self.event.notify_all();
    }

    pub fn is_set(&self) -> bool {
        self.set.get()
    }

    /// Waits until the switch is turned.
    pub async fn wait(&self) {
        while !self.set.get() {
            self.event.listen().await;
        }
    }

    /// The output of `work`, or `None` if the switch is turned first.
    pub async fn or<F: Future>(&self, work: F) -> Option<F::Output> {
        match race(work, self.wait()).await {
            Either::Left(output) => Some(output),
            Either::Right(()) => None,
        }
    }
}

/// A count that only grows.
#[derive(Default)]
pub struct Tally {
    count: Cell<usize>,
    event: Event,
}

impl Tally {
    pub fn add(&self) {
        self.count.set(self.count.get() + 1);
        self.event.notify_all();
    }

    pub async fn wait_for(&self, count: usize) {
        while self.count.get() < count {
            self.event.listen().await;
        }
    }
}
