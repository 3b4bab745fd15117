//! Compaction: what stays, what goes, what is worth it, and that readers never notice.

#![expect(clippy::unwrap_used, reason = "a scenario ends where its world does not work")]

#[path = "../harness/mod.rs"]
#[expect(dead_code, reason = "each folder of scenarios uses a part of it")]
mod harness;

mod filtering;
mod keys;
mod models;
mod planning;
mod rounds;
