//! Producer state: sequence rules, the five remembered batches, snapshots.
