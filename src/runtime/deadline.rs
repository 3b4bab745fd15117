//! Giving up at a deadline.

use std::future::Future;

use crate::back::time::sleep_until;
use crate::instant::Instant;
use crate::race::{Either, race};

/// The deadline passed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the deadline has passed")]
pub struct Elapsed;

/// The output of `future`, or `Elapsed` once `deadline` has passed. A future that is ready in the
/// same turn wins over its deadline.
pub async fn within<F: Future>(deadline: Instant, future: F) -> Result<F::Output, Elapsed> {
    match race(future, sleep_until(deadline)).await {
        Either::Left(output) => Ok(output),
        Either::Right(()) => Err(Elapsed),
    }
}
