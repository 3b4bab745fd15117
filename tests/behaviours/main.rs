//! Coretide as its clients see it: the real program, asked over TCP, one scenario per behaviour.
//!
//! A test's doc comment names the behaviour it shows by the number it has in the project's
//! protocol reference ("Kafka protocol behaviour 38"). Most tests share one broker with two slots
//! and keep to topics of their own; those that stop, kill or configure a broker start one for
//! themselves. Nothing sleeps: a test waits for an answer, a line or an end, each with a deadline.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod admin;
mod api_versions;
mod broker;
mod compaction;
mod configs;
mod connection;
mod consumer_groups;
mod fetch;
mod group_commands;
mod groups;
mod idempotence;
mod long_requests;
mod metadata;
mod monitoring;
mod moves;
mod offsets;
mod produce;
mod program;
mod restart;
mod scenario;
mod sessions;
mod slots;
mod topics;
mod tuning;
mod wire;
