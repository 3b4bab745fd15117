//! Which topics a member of protocol type "consumer" subscribes to, read from the metadata that
//! its assignor sent. What cannot be read says nothing.

use std::collections::BTreeSet;

use bytes::{Buf, Bytes};
use protocol::Str;

/// `version: i16, topics: [string]`, whatever follows.
pub(crate) fn topics_of(metadata: &Bytes) -> Option<BTreeSet<Str>> {
    let mut rest = metadata.clone();
    let _version = rest.try_get_i16().ok()?;
    let count = usize::try_from(rest.try_get_i32().ok()?).ok()?;
    if count > rest.len() / 2 {
        return None;
    }
    let mut topics = BTreeSet::new();
    for _ in 0..count {
        let length = usize::try_from(rest.try_get_i16().ok()?).ok()?;
        if length > rest.len() {
            return None;
        }
        topics.insert(Str::from_wire(rest.split_to(length)).detach());
    }
    Some(topics)
}
