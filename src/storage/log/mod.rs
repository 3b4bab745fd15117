//! One partition: append, group commit, read, truncate, retain.
