//! Segment files: names, space allocated ahead, batch scanning.
