//! The open connections of one slot: counted, limited, closed when idle or when the slot stops.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use runtime::local::Event;
use runtime::time::Instant;

use crate::connection::Connection;

/// Who is connected.
#[derive(Default)]
pub struct Connections {
    /// Admitted and not gone; those that are to be served in a moment are counted already.
    admitted: Cell<usize>,
    open: RefCell<BTreeMap<u64, Rc<Connection>>>,
    next: Cell<u64>,
    changed: Event,
}

impl Connections {
    /// An id for a connection that was just accepted.
    pub fn next_id(&self) -> u64 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    /// Counts a connection in unless there are `most`.
    pub fn admit(&self, most: usize) -> bool {
        let admitted = self.admitted.get();
        self.admitted.set(admitted + usize::from(admitted < most));
        admitted < most
    }

    /// One that was admitted is gone.
    pub fn leave(&self) {
        self.admitted.set(self.admitted.get() - 1);
    }

    pub fn add(&self, connection: &Rc<Connection>) {
        self.open.borrow_mut().insert(connection.id, connection.clone());
    }

    pub fn remove(&self, connection: &Connection) {
        self.open.borrow_mut().remove(&connection.id);
        self.changed.notify_all();
    }

    pub fn count(&self) -> usize {
        self.open.borrow().len()
    }

    /// Closes what has been silent for longer than `idle` (connections.max.idle.ms).
    pub fn close_idle(&self, now: Instant, idle: Duration) -> usize {
        let open = self.open.borrow();
        let silent = open.values().filter(|each| now >= each.last_active.get() + idle);
        silent.map(|each| each.closer.close()).count()
    }

    pub fn close_all(&self) {
        for connection in self.open.borrow().values() {
            connection.closer.close();
        }
    }

    /// Waits until nobody is connected any more.
    pub async fn all_gone(&self) {
        while self.count() > 0 {
            self.changed.listen().await;
        }
    }
}
