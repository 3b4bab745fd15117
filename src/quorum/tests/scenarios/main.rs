//! Scenarios of the metadata quorum, in virtual time.

#![expect(clippy::expect_used, reason = "a test ends where something is not as expected")]

mod cluster;
mod encodings;
mod hostile;
mod one_voter;
mod several_voters;
