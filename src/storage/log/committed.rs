//! Waiting until an offset is committed.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::waiters::Place;
use super::{Log, LogInner};
use crate::errors::CommitError;

/// Resolves when the flush policy vouches for everything before an offset.
#[must_use = "a commit is waited for by awaiting this"]
pub struct Committed {
    log: Rc<LogInner>,
    offset: i64,
    place: Option<Place>,
}

impl Log {
    /// Waits until everything before `offset_exclusive` is committed. Ready at once when it is;
    /// otherwise an entry in the log's list of waiters is all it costs.
    pub fn committed(&self, offset_exclusive: i64) -> Committed {
        Committed { log: Rc::clone(&self.inner), offset: offset_exclusive, place: None }
    }
}

impl Future for Committed {
    type Output = Result<(), CommitError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = {
            let state = self.log.state.borrow();
            let early = runtime::sabotaged("acknowledge before durable");
            if state.committed >= self.offset || early {
                Some(Ok(()))
            } else if let Err(unavailable) = state.service {
                Some(Err(unavailable.into()))
            } else if state.end < self.offset {
                Some(Err(CommitError::Truncated { log_end: state.end }))
            } else {
                None
            }
        };
        if let Some(outcome) = outcome {
            return Poll::Ready(outcome);
        }
        let place = self.log.waiters.wait(self.offset, context.waker(), self.place);
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for Committed {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.log.waiters.leave(place);
        }
    }
}
