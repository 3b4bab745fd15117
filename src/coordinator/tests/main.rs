//! Groups and offsets without a broker: scenarios in virtual time, and random runs that print the
//! seed which replays them.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod bench;
mod census;
mod consumer_bench;
mod consumer_groups;
mod consumer_runs;
mod leaving;
mod membership;
mod migration;
mod offsets;
mod random_runs;
mod world;
