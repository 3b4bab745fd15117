//! The groups that this slot coordinates: one pump for each partition of the topic of committed
//! offsets that it leads.
//!
//! Law: a group belongs to one partition, and that to one slot; whoever asks another slot is told
//! NOT_COORDINATOR, and COORDINATOR_LOAD_IN_PROGRESS while the log is being replayed.

mod load;
mod pump;
mod settings;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use coordinator::GroupSettings;
use metadata::topic_name::OFFSETS_TOPIC;
use metadata::{Image, Topic};
use protocol::{ErrorCode, Str, Uuid};

pub use pump::{Mark, Pump};

use crate::slot::Slot;
use settings::Settings;

#[derive(Default)]
pub struct Groups {
    pumps: RefCell<BTreeMap<i32, Rc<Pump>>>,
    settings: Settings,
}

impl Groups {
    /// Begins to coordinate for partitions that have come and ends it for those that have left.
    pub fn follow(&self, slot: &Rc<Slot>, before: &Image, after: &Image) {
        let topic = slot.shard.topic(OFFSETS_TOPIC);
        let led = topic.map(|topic| topic.partitions()).unwrap_or_default();
        let mut pumps = self.pumps.borrow_mut();
        pumps.retain(|index, pump| {
            let stays = led.iter().any(|it| it.index == *index && pump.serves(it));
            if !stays {
                pump.close();
            }
            stays
        });
        for partition in led {
            pumps.entry(partition.index).or_insert_with(|| Pump::start(slot, partition));
        }
        if pumps.is_empty() {
            return;
        }
        let gone = before.topics().filter(|topic| after.topic_by_id(topic.id).is_none());
        let gone: BTreeSet<Str> = gone.map(|topic| topic.name.clone()).collect();
        let changed = grown_topics(before, after).chain(&gone);
        let changed: BTreeSet<Str> = changed.cloned().collect();
        for pump in pumps.values() {
            if !gone.is_empty() {
                pump.on_topics_deleted(slot, &gone);
            }
            if !changed.is_empty() {
                pump.on_topics_changed(slot, &changed);
            }
        }
    }

    /// The broker keys of groups as they are now.
    pub fn settings(&self, slot: &Slot) -> Rc<GroupSettings> {
        self.settings.of(slot)
    }

    /// Ends the coordination for partitions that other slots will have: whoever waits is told so.
    pub fn let_go(&self, image: &Image, leaving: &[(Uuid, i32)]) {
        let Some(topic) = image.topic(OFFSETS_TOPIC) else { return };
        for (_, index) in leaving.iter().filter(|(id, _)| *id == topic.id) {
            if let Some(pump) = self.pumps.borrow_mut().remove(index) {
                pump.close();
            }
        }
    }

    /// No group is coordinated any more: whoever waits is told so.
    pub fn close(&self) {
        self.pumps.borrow().values().for_each(|pump| pump.close());
    }

    /// The pump that coordinates this group.
    pub fn find(&self, slot: &Slot, group: &str) -> Result<Rc<Pump>, ErrorCode> {
        let index = partition_of(&slot.image(), group).ok_or(ErrorCode::NOT_COORDINATOR)?;
        let pump = self.pumps.borrow().get(&index).cloned().ok_or(ErrorCode::NOT_COORDINATOR)?;
        pump.check_serving()?;
        Ok(pump)
    }

    /// The pumps of this slot that are loaded.
    pub fn serving(&self) -> Vec<Rc<Pump>> {
        let pumps = self.pumps.borrow();
        pumps.values().filter(|pump| pump.check_serving().is_ok()).cloned().collect()
    }

    /// Every pump of this slot; an error while one of them is still being loaded.
    pub fn all(&self) -> Result<Vec<Rc<Pump>>, ErrorCode> {
        let pumps: Vec<_> = self.pumps.borrow().values().cloned().collect();
        pumps.iter().try_for_each(|pump| pump.check_serving())?;
        Ok(pumps)
    }
}

/// Topics that came, or have other partitions than before.
fn grown_topics<'a>(before: &Image, after: &'a Image) -> impl Iterator<Item = &'a Str> {
    let differs = |topic: &Arc<Topic>, old: &Arc<Topic>| {
        !Arc::ptr_eq(topic, old) && topic.partitions.len() != old.partitions.len()
    };
    let grown = after
        .topics()
        .filter(move |topic| before.topic_by_id(topic.id).is_none_or(|old| differs(topic, old)));
    grown.map(|topic| &topic.name)
}

/// Which partition of the topic of committed offsets a group belongs to; none while there is no
/// such topic.
pub fn partition_of(image: &Image, group: &str) -> Option<i32> {
    let count = image.topic(OFFSETS_TOPIC)?.partitions.len() as i32;
    (count > 0).then(|| java_hash(group).checked_abs().unwrap_or(0) % count)
}

/// As Java hashes strings: clients and tools count on the same partition.
fn java_hash(text: &str) -> i32 {
    let letters = text.encode_utf16();
    letters.fold(0i32, |hash, letter| hash.wrapping_mul(31).wrapping_add(i32::from(letter)))
}
