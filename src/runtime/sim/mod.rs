//! The simulated back end.
