//! Who may change the log next.
//!
//! Law: first come, first served, so the order of calls is the order of offsets; whoever goes
//! away while waiting is passed over. Nothing waits, and nothing is allocated, when the turn is
//! free.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use runtime::local::Event;

#[derive(Default)]
pub struct Turn {
    next_ticket: Cell<u64>,
    serving: Cell<u64>,
    gone: RefCell<BTreeSet<u64>>,
    /// Made by the first who has to wait.
    changed: RefCell<Option<Event>>,
}

/// The turn itself. It passes on when dropped.
#[must_use = "the turn passes on when it is dropped"]
pub struct TurnGuard<'a> {
    turn: &'a Turn,
    ticket: u64,
}

impl Turn {
    pub async fn take(&self) -> TurnGuard<'_> {
        let ticket = self.next_ticket.get();
        self.next_ticket.set(ticket + 1);
        let guard = TurnGuard { turn: self, ticket };
        while self.serving.get() != ticket {
            let listen = self.changed.borrow_mut().get_or_insert_default().listen();
            listen.await;
        }
        guard
    }

    /// The turn, if nobody has it or waits for it.
    pub fn try_take(&self) -> Option<TurnGuard<'_>> {
        let ticket = self.next_ticket.get();
        if self.serving.get() != ticket {
            return None;
        }
        self.next_ticket.set(ticket + 1);
        Some(TurnGuard { turn: self, ticket })
    }

    fn pass_on(&self) {
        let mut gone = self.gone.borrow_mut();
        let mut serving = self.serving.get() + 1;
        while gone.remove(&serving) {
            serving += 1;
        }
        self.serving.set(serving);
        assert!(serving <= self.next_ticket.get());
        if let Some(changed) = self.changed.borrow().as_ref() {
            changed.notify_all();
        }
    }
}

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        if self.turn.serving.get() == self.ticket {
            self.turn.pass_on();
        } else {
            self.turn.gone.borrow_mut().insert(self.ticket);
        }
    }
}
