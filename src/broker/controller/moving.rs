//! Moving partitions from one slot of this host to another.
//!
//! Law: no decision that gives a partition to another slot is committed before the slot that has
//! it has let go: what was appended is acknowledged, everything is in the segments, the log is
//! closed in order, and its journal says that it counts no more. So a crash at any point leaves
//! one owner, the one that the metadata names, and a log that this one finds at rest. The new
//! owner acts first on what was committed and the old one after it, so that whoever waits at the
//! old one is sent on when there is somebody to serve it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use metadata::Image;
use metadata::image::HandOver;
use protocol::{SlotIndex, Uuid};
use runtime::mesh::oneshot;

use super::{answered, to_slot};
use crate::shard::LetGo;
use crate::slot::Slot;
use crate::slot::links::Message;

/// Returns when the slots that have these partitions have let go of them.
pub async fn let_go(slot: &Rc<Slot>, leaving: &[HandOver]) -> LetGo {
    let mut by_slot: BTreeMap<SlotIndex, Vec<(Uuid, i32)>> = BTreeMap::new();
    for each in leaving {
        by_slot.entry(each.from).or_default().push((each.topic, each.index));
    }
    let mut answers = Vec::new();
    let ours = by_slot.remove(&slot.index);
    for (other, partitions) in by_slot {
        let (gone, answer) = oneshot();
        to_slot(slot, other, Message::LetGo(partitions, gone)).await;
        answers.push(answer);
    }
    let mut let_go = match ours {
        Some(partitions) => slot.let_go(&partitions).await,
        None => LetGo::new(),
    };
    for answer in answers {
        // A slot that has stopped has closed its logs.
        let_go.extend(answered(slot, answer).await.unwrap_or_default());
    }
    let_go
}

/// Tells the new owners what the old ones knew, before they act on what was committed.
pub async fn announce(slot: &Rc<Slot>, leaving: &[HandOver], let_go: LetGo) {
    for (key, turned_away) in let_go {
        let of_it = |each: &&HandOver| (each.topic, each.index) == key;
        let Some(to) = leaving.iter().find(of_it).map(|each| each.to) else { continue };
        let coming = vec![(key, turned_away)];
        if to == slot.index {
            slot.shard.expect(coming);
        } else {
            to_slot(slot, to, Message::Expect(coming)).await;
        }
    }
}

/// Says what moved, and how long all of it took together.
pub fn say(image: &Image, moved: &[HandOver], took: Duration) {
    let milliseconds = took.as_millis() as u64;
    for HandOver { topic, index, from, to } in moved {
        let topic = image.topic_by_id(*topic).map_or("", |topic| &*topic.name);
        let (partition, from, to) = (format!("{topic}-{index}"), from.0, to.0);
        tracing::info!(partition, from, to, milliseconds, "moved to another core");
    }
}

/// The slots that are to act first on what was committed.
pub fn receivers(leaving: &[HandOver]) -> BTreeSet<SlotIndex> {
    leaving.iter().map(|each| each.to).collect()
}
