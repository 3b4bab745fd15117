//! Groups and offsets without a broker.
