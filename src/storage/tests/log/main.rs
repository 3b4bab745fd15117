//! One partition's log, scenario by scenario.

#![expect(clippy::unwrap_used, reason = "a scenario ends where its world does not work")]

mod append;
mod damage;
mod deletion;
#[path = "../harness/mod.rs"]
mod harness;
mod lookup;
mod producers;
mod reads;
mod resources;
mod restart;
mod retention;
mod rolling;
mod truncation;
