//! Leader epochs and the offsets they began at.
