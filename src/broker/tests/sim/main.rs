//! Whole hosts in simulated worlds: real handlers, real storage, real Raft, one seed each.
//!
//! A seed decides the load, the faults and every interleaving. `CORETIDE_SIM_SEEDS` says how many
//! seeds are run, `CORETIDE_SIM_SEED` runs a single one, `CORETIDE_SIM_LOG` shows what the broker
//! logs meanwhile, and `CORETIDE_SIM_TRACE` every step of the world.
#![cfg(sim)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod administering;
mod client;
mod committing;
mod compacting;
mod consuming;
mod coordinating;
mod group_rules;
mod history;
mod moving;
mod nemesis;
mod producing;
mod reading;
mod rules;
mod rules_tested;
mod run;
mod scenario;
mod seeds;
mod stage;
