//! Partition logs on direct-I/O segment files.
//!
//! One [`Storage`] per slot owns the open files, the buffers and the background work of the
//! [`Log`]s that its core leads. Everything here waits through `runtime`; what can be decided
//! without waiting (index formats, sequence rules, epoch cache, batch chains) sits in modules of
//! its own that never await. The crate knows nothing of requests, replicas or topics' meaning.

mod log;
mod recovery;
mod segment;

pub mod entry_log;
pub mod envelope;
pub mod epochs;
pub mod index;
pub mod offline;
pub mod producer;
