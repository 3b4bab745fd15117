//! The memory of frames on their way in, shared by all connections of a slot.
//!
//! A frame leases what it needs as its bytes arrive, so a length that is merely claimed takes
//! nothing. Frames that each hold a part and wait for the rest could wait for each other for ever:
//! when there is no room, one of them at a time is *favoured* and gets what it needs beyond the
//! limit. So the frames of a slot hold at most the limit and one whole frame more, and whoever
//! sends its bytes gets through. A favoured frame has less time to arrive than others, since they
//! wait for it.

use std::time::Duration;

use runtime::local::{Budget, Lease};
use runtime::task::{Either, race};
use runtime::time::{self, Instant};

use crate::connection::limits;

/// What the frames of one slot may hold.
pub struct ReceiveMemory {
    budget: Budget,
    /// One place, taken in the order of asking.
    favour: Budget,
}

/// What one frame holds. It goes back when dropped.
#[derive(Default)]
pub struct Held {
    lease: Option<Lease>,
    favoured: Option<(Lease, Instant)>,
}

impl ReceiveMemory {
    pub fn new(limit_bytes: usize) -> ReceiveMemory {
        ReceiveMemory { budget: Budget::new(limit_bytes), favour: Budget::new(1) }
    }

    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Sees to it that `held` has `total` bytes if that takes no waiting.
    pub fn try_grow(&self, held: &mut Held, total: usize) -> bool {
        let missing = total.saturating_sub(held.bytes());
        let more = match (missing, &held.favoured) {
            (0, _) => return true,
            (_, Some(_)) => Some(self.budget.overdraw(missing)),
            (_, None) => self.budget.try_lease(missing),
        };
        more.map(|more| held.add(more)).is_some()
    }

    /// Waits until there is room for `total` bytes or until `held` is favoured.
    pub async fn grow(&self, held: &mut Held, total: usize) {
        if self.try_grow(held, total) {
            return;
        }
        let missing = total - held.bytes();
        match race(self.budget.lease(missing), self.favour.lease(1)).await {
            Either::Left(lease) => held.add(lease),
            Either::Right(favour) => {
                held.favoured = Some((favour, time::now()));
                held.add(self.budget.overdraw(missing));
            }
        }
    }
}

impl Held {
    fn bytes(&self) -> usize {
        self.lease.as_ref().map_or(0, Lease::bytes)
    }

    fn add(&mut self, more: Lease) {
        match &mut self.lease {
            Some(lease) => lease.merge(more),
            None => self.lease = Some(more),
        }
    }

    /// When a favoured frame of `frame_bytes` has to be complete.
    pub fn deadline(&self, frame_bytes: usize) -> Option<Instant> {
        let (_, since) = self.favoured.as_ref()?;
        let seconds = frame_bytes as f64 / limits::FAVOURED_BYTES_PER_SECOND_MIN as f64;
        Some(*since + limits::FAVOURED_DEADLINE + Duration::from_secs_f64(seconds))
    }
}
