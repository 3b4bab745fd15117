//! The real back end: one pinned io_uring executor per core.
//!
//! What the rest of this folder avoids, because it was measured to leak or to lie: glommio's own
//! timers beside the one of the driver, buffered streams, polling a pending operation again
//! without a wake, `TcpListener::bind`, unaligned reads near the end of a file, and cancelling
//! spawned tasks.

pub(crate) mod file;
pub(crate) mod fs;
pub(crate) mod memory;
pub(crate) mod mesh;
pub(crate) mod net;
pub(crate) mod process;
pub(crate) mod task;
pub(crate) mod time;

mod beside;
mod counters;
mod lock;
mod patient;
mod signals;
mod socket;
mod warden;
