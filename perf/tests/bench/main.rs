//! The load generator against a broker whose latency is known, and its pure parts.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall fail there")]

mod parts;
mod runs;
mod stub;
mod tune;
