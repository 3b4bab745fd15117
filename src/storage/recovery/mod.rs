//! What a restart accepts of a log, and what it refuses.
