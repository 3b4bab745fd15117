//! Who waits for which offset to be committed.
//!
//! Law: a waiter is woken once, when the committed end reaches its offset or the log ends its
//! service; the places of waiters are reused, so waiting allocates only while their number grows.

use std::cell::RefCell;
use std::task::Waker;

#[derive(Default)]
pub struct Waiters {
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    places: Vec<Option<Waiter>>,
    free: Vec<usize>,
    next_id: u64,
}

struct Waiter {
    id: u64,
    /// Woken when the committed end is this or more.
    offset: i64,
    waker: Waker,
}

/// A waiter's place; stale once it was woken.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    index: usize,
    id: u64,
}

impl Waiters {
    /// Remembers `waker`, in `place` when the waiter still has it.
    pub fn wait(&self, offset: i64, waker: &Waker, place: Option<Place>) -> Place {
        let state = &mut *self.state.borrow_mut();
        if let Some(place) = place
            && let Some(Some(waiter)) = state.places.get_mut(place.index)
            && waiter.id == place.id
        {
            waiter.waker.clone_from(waker);
            return place;
        }
        state.next_id += 1;
        let waiter = Waiter { id: state.next_id, offset, waker: waker.clone() };
        let place = |index| Place { index, id: state.next_id };
        if let Some(index) = state.free.pop() {
            state.places[index] = Some(waiter);
            return place(index);
        }
        state.places.push(Some(waiter));
        place(state.places.len() - 1)
    }

    /// The waiter has gone.
    pub fn leave(&self, place: Place) {
        let state = &mut *self.state.borrow_mut();
        if let Some(found) = state.places.get_mut(place.index)
            && found.as_ref().is_some_and(|waiter| waiter.id == place.id)
        {
            *found = None;
            state.free.push(place.index);
        }
    }

    /// Wakes those whose offset is at or before `committed_end`.
    pub fn wake_up_to(&self, committed_end: i64) {
        let state = &mut *self.state.borrow_mut();
        for (index, place) in state.places.iter_mut().enumerate() {
            if place.as_ref().is_some_and(|waiter| waiter.offset <= committed_end)
                && let Some(waiter) = place.take()
            {
                state.free.push(index);
                waiter.waker.wake();
            }
        }
        if state.free.len() == state.places.len() && state.places.len() > PLACES_KEPT {
            *state = State { next_id: state.next_id, ..State::default() };
        }
    }

    /// Wakes everybody: the log closes, or was truncated.
    pub fn wake_all(&self) {
        self.wake_up_to(i64::MAX);
    }
}

/// An idle log keeps no more places than this.
const PLACES_KEPT: usize = 64;
