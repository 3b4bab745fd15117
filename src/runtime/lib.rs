//! The world below the broker: executors, cross-core channels, files, sockets, clock, chance and
//! signals, behind one surface with two back ends.
//!
//! * `glommio/` runs one pinned io_uring executor per core. It is the only code that names glommio.
//! * `sim/` (built with `--cfg sim`) runs whole hosts in one thread, in virtual time, by one seed.
//!
//! Laws that hold for both: every future is `!Send` and stays on the core that made it; state of a
//! core is reached through values, never through statics of the callers; whatever waits can be
//! dropped at any time without leaking; a panic ends the whole host. Nothing here knows Kafka.

mod budget;
mod buffer;
mod deadline;
mod disk;
mod event;
mod host;
#[cfg(not(sim))]
mod hugepages;
mod instant;
mod once;
mod queue;
mod race;
mod statistics;
mod unhurried;

#[cfg(not(sim))]
mod glommio;
#[cfg(sim)]
pub mod sim;

#[cfg(not(sim))]
use crate::glommio as back;
#[cfg(sim)]
use crate::sim as back;

pub use crate::back::process::{
    abort, copied, raise_limits, reached, run, sabotaged, shutdown_requested, stats,
};
pub use crate::host::{Config, Core, CoreConfig, Exit, Limits};
#[cfg(not(sim))]
pub use crate::hugepages::Allocator;
pub use crate::statistics::Stats;

/// Tasks of one core.
pub mod task {
    pub use crate::back::task::{blocking, should_yield, spawn, yield_now};
    pub use crate::race::{Either, race};
    pub use crate::unhurried::Unhurried;
}

/// The clock, deadlines and chance.
pub mod time {
    pub use crate::back::time::{now, random_u64, sleep, sleep_until, wall_ms};
    pub use crate::deadline::{Elapsed, within};
    pub use crate::instant::Instant;
}

/// Primitives for the tasks of one core: no atomics, no locks.
pub mod local {
    pub use crate::budget::{Budget, Lease};
    pub use crate::event::{Event, Listen};
    pub use crate::queue::Queue;
}

/// Messages between cores.
pub mod mesh {
    pub use crate::back::mesh::Mesh;
    pub use crate::once::{Closed, OneshotReceiver, OneshotSender, oneshot};
}

/// TCP.
pub mod net {
    pub use crate::back::net::{Closer, Conn, Listener, Reader, Writer};
}

/// Files and the buffers they are read and written through.
pub mod file {
    pub use crate::back::file::File;
    pub use crate::buffer::{ALIGNMENT, AlignedBuf, Block};
    pub use crate::disk::{FsError, Mode};
}

/// Names on disk: directories, renames, locks.
pub mod fs {
    pub use crate::back::fs::{
        LockGuard, create_dir_all, exists, info, list, lock, modified_ms, read, remove_dir_all,
        remove_file, rename, sync_dir, write_atomic,
    };
    pub use crate::disk::{Entry, FsError, FsInfo};
}
