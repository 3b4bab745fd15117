//! The simulated back end: whole hosts in one thread, in virtual time, from one seed.
//!
//! `Simulation` is the hand that holds it. The same broker code runs here as on real machines; what
//! it believes to be time, chance, disks and wires is decided in here, and equal seeds decide
//! equally.

mod content;
mod disk;
mod network;
mod points;
mod scheduler;
mod simulation;
mod tree;
mod world;

pub(crate) mod file;
pub(crate) mod fs;
pub(crate) mod memory;
pub(crate) mod mesh;
pub(crate) mod net;
pub(crate) mod process;
pub(crate) mod task;
pub(crate) mod time;

pub use disk::DiskOp;
pub use process::Ending;
pub use simulation::{SimDisk, SimHost, Simulation};
pub use world::{Options, SKIP_DIRECTORY_SYNC};
