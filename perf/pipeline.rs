//! The requests of one connection that wait for their answers.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use runtime::local::{Event, Listen};
use runtime::time::Instant;

use crate::requests::Size;

/// A request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flight {
    pub correlation_id: i32,
    pub size: Size,
    pub due: Instant,
}

/// Shared by the task that sends and the task that receives.
pub struct Pipeline {
    limit: usize,
    next_correlation_id: Cell<i32>,
    flights: RefCell<VecDeque<Flight>>,
    failure: RefCell<Option<String>>,
    changed: Event,
}

impl Pipeline {
    pub fn new(limit: usize) -> Pipeline {
        Pipeline {
            limit: limit.max(1),
            next_correlation_id: Cell::new(FIRST_CORRELATION_ID),
            flights: RefCell::new(VecDeque::new()),
            failure: RefCell::new(None),
            changed: Event::new(),
        }
    }

    pub fn next_correlation_id(&self) -> i32 {
        let id = self.next_correlation_id.get();
        self.next_correlation_id.set(id.checked_add(1).unwrap_or(FIRST_CORRELATION_ID));
        id
    }

    pub fn is_full(&self) -> bool {
        self.flights.borrow().len() >= self.limit
    }

    pub fn is_empty(&self) -> bool {
        self.flights.borrow().is_empty()
    }

    pub fn depart(&self, flight: Flight) {
        debug_assert!(!self.is_full(), "more in flight than agreed");
        self.flights.borrow_mut().push_back(flight);
    }

    /// The request that an answer belongs to; `None` for an answer that nobody waits for.
    pub fn arrive(&self, correlation_id: i32) -> Option<Flight> {
        let mut flights = self.flights.borrow_mut();
        // Answers leave in the order of their requests, so it is the first.
        let place = flights.iter().position(|f| f.correlation_id == correlation_id)?;
        let flight = flights.remove(place);
        drop(flights);
        self.changed.notify_all();
        flight
    }

    /// Takes back everything that will never be answered.
    pub fn abandon(&self) -> Vec<Flight> {
        self.flights.borrow_mut().drain(..).collect()
    }

    /// Only the first reason is kept.
    pub fn fail(&self, reason: String) {
        self.failure.borrow_mut().get_or_insert(reason);
        self.changed.notify_all();
    }

    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    pub fn is_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// Resolves at the next answer or failure.
    pub fn changed(&self) -> Listen {
        self.changed.listen()
    }
}

/// Behind those of the requests that open a connection.
const FIRST_CORRELATION_ID: i32 = 1 << 16;
