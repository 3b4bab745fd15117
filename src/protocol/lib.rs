//! Kafka's wire protocol as values: pure, without I/O, clock or randomness.

pub mod batch;
