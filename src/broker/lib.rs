//! The broker: everything between the command line and the parts that decide, store and wait.
//!
//! What belongs here is glue that must know several crates at once: connections, dispatch, one
//! handler per API, the shard of partitions a slot leads, the controller task, the admin port and
//! the command line. What can be decided without waiting belongs into a pure crate instead.

#![forbid(unsafe_code)]

pub mod admin;
pub mod cli;
pub mod client;
pub mod config;
pub mod connection;
pub mod controller;
pub mod dispatch;
pub mod fetch;
pub mod groups;
pub mod handlers;
pub mod host;
pub mod logs;
pub mod monitor;
pub mod producer_ids;
pub mod rebalance;
pub mod shard;
pub mod slot;
pub mod startup;
pub mod top;

/// What the program makes its global allocator.
#[cfg(not(sim))]
pub use runtime::Allocator;
