//! The partitions that this slot leads.
//!
//! Follows the image: a partition placed on this slot is opened, one that left is closed or
//! deleted, a new leader epoch or topic configuration is handed on. What is found here is led
//! here; everything else is answered from the image (see `routing`).

mod cleaning;
mod housekeeping;
mod partition;
mod routing;
mod settings;
mod strays;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use ::metrics::Counter;
use metadata::Image;
use metadata::configs::TopicSettings;
use metadata::image::{Closed, ClosedPartition, OpenedPartition};
use protocol::{Str, Uuid};
use runtime::local::{Event, Queue};
use runtime::task;
use storage::TurnedAway;

pub use cleaning::{Cleaning, keep_clean};
pub use housekeeping::keep_house;
pub use partition::{Partition, Unavailable};
pub use routing::{LeaderHint, Misrouted, TopicRef};
pub use settings::{log_options, produce_rules};
pub use strays::clear_strays;

use crate::slot::Slot;

/// The topics of which this slot leads at least one partition.
#[derive(Default)]
pub struct Shard {
    by_name: RefCell<HashMap<Str, Rc<LocalTopic>, Hasher>>,
    by_id: RefCell<HashMap<Uuid, Rc<LocalTopic>, Hasher>>,
    partitions: Cell<usize>,
    /// Nothing is opened any more.
    closed: Cell<bool>,
    /// Of partitions that are about to come from other slots.
    turned_away: RefCell<BTreeMap<(Uuid, i32), TurnedAway>>,
}

/// Partitions that a slot let go, with whom the next one has to turn away as well.
pub type LetGo = Vec<((Uuid, i32), TurnedAway)>;

/// The part of a topic that this slot leads.
pub struct LocalTopic {
    pub name: Str,
    pub id: Uuid,
    pub traffic: Traffic,
    settings: RefCell<Rc<TopicSettings>>,
    partitions: RefCell<BTreeMap<i32, Rc<Partition>>>,
}

/// What clients wrote to and read from the part of a topic that this slot leads.
#[derive(Default)]
pub struct Traffic {
    pub produced_records: Counter,
    pub produced_bytes: Counter,
    /// Counted by offsets.
    pub fetched_records: Counter,
    pub fetched_bytes: Counter,
}

// The keys come from the image, not from clients, so a fixed hasher is safe.
type Hasher = BuildHasherDefault<std::hash::DefaultHasher>;

impl LocalTopic {
    pub fn settings(&self) -> Rc<TopicSettings> {
        self.settings.borrow().clone()
    }

    pub fn partition(&self, index: i32) -> Option<Rc<Partition>> {
        self.partitions.borrow().get(&index).cloned()
    }

    /// The partitions led here, by index.
    pub fn partitions(&self) -> Vec<Rc<Partition>> {
        self.partitions.borrow().values().cloned().collect()
    }
}

impl Shard {
    pub fn topic(&self, name: &str) -> Option<Rc<LocalTopic>> {
        self.by_name.borrow().get(name).cloned()
    }

    pub fn topic_by_id(&self, id: Uuid) -> Option<Rc<LocalTopic>> {
        self.by_id.borrow().get(&id).cloned()
    }

    /// Topics with a partition here, by name.
    pub fn topics(&self) -> Vec<Rc<LocalTopic>> {
        let mut topics: Vec<_> = self.by_id.borrow().values().cloned().collect();
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        topics
    }

    /// Partitions led here.
    pub fn count(&self) -> usize {
        self.partitions.get()
    }

    /// Acts on what changed between two images. Opening is concurrent, within a bound.
    pub async fn apply(&self, slot: &Rc<Slot>, before: &Image, after: &Arc<Image>) {
        if self.closed.get() {
            // The next start acts on it.
            return;
        }
        let delta = after.delta_since(before, slot.host.id, slot.index);
        for gone in &delta.closed {
            self.leave(slot, gone).await;
        }
        if delta.broker_configs {
            self.topics().iter().for_each(|topic| reconfigure(slot, after, topic));
        } else {
            let changed = delta.topic_configs.iter().filter_map(|name| self.topic(name));
            changed.for_each(|topic| reconfigure(slot, after, &topic));
        }
        for changed in &delta.changed {
            let found = self.topic_by_id(changed.id);
            if let Some(partition) = found.and_then(|topic| topic.partition(changed.index)) {
                partition.begin_epoch(changed.partition.leader_epoch);
            }
        }
        self.open_all(slot, after, delta.opened).await;
    }

    /// Closes every log in order, so that the next start reads no record data.
    pub async fn close(&self) {
        self.closed.set(true);
        let all: Vec<_> = self.topics().iter().flat_map(|topic| topic.partitions()).collect();
        for_each_concurrently(all, OPENING_MAX, |partition| async move {
            partition.close().await;
        })
        .await;
    }

    /// Lets go of partitions that are about to be served by other slots.
    pub async fn let_go(&self, leaving: &[(Uuid, i32)]) -> LetGo {
        let find = |&(id, index): &(Uuid, i32)| self.topic_by_id(id)?.partition(index);
        let leaving: Vec<_> = leaving.iter().filter_map(find).collect();
        let let_go: Rc<RefCell<LetGo>> = Rc::default();
        let gone = let_go.clone();
        for_each_concurrently(leaving, OPENING_MAX, move |partition| {
            let gone = gone.clone();
            async move {
                let turned_away = partition.let_go().await;
                gone.borrow_mut().push(((partition.topic_id, partition.index), turned_away));
            }
        })
        .await;
        let_go.take()
    }

    /// Partitions will come that another slot let go.
    pub fn expect(&self, coming: LetGo) {
        let coming = coming.into_iter().filter(|(_, turned_away)| !turned_away.is_empty());
        self.turned_away.borrow_mut().extend(coming);
    }

    async fn open_all(&self, slot: &Rc<Slot>, image: &Arc<Image>, opened: Vec<OpenedPartition>) {
        let mut partitions = Vec::with_capacity(opened.len());
        for each in opened {
            let topic = self.topic_for(slot, image, &each);
            let turned_away = self.turned_away.borrow_mut().remove(&(each.id, each.index));
            let turned_away = turned_away.unwrap_or_default();
            let partition = Rc::new(Partition::new(&topic, &each, turned_away));
            topic.partitions.borrow_mut().insert(each.index, partition.clone());
            self.partitions.set(self.partitions.get() + 1);
            partitions.push(partition);
        }
        let slot = slot.clone();
        for_each_concurrently(partitions, OPENING_MAX, move |partition| {
            let slot = slot.clone();
            async move { partition.open(&slot).await }
        })
        .await;
    }

    fn topic_for(&self, slot: &Slot, image: &Image, opened: &OpenedPartition) -> Rc<LocalTopic> {
        if let Some(topic) = self.topic_by_id(opened.id) {
            return topic;
        }
        let settings = slot.topic_settings(image, &opened.topic);
        let topic = Rc::new(LocalTopic {
            name: opened.topic.clone(),
            id: opened.id,
            traffic: Traffic::default(),
            settings: RefCell::new(Rc::new(settings)),
            partitions: RefCell::default(),
        });
        self.by_name.borrow_mut().insert(topic.name.clone(), topic.clone());
        self.by_id.borrow_mut().insert(topic.id, topic.clone());
        topic
    }

    async fn leave(&self, slot: &Rc<Slot>, gone: &ClosedPartition) {
        let Some(topic) = self.topic_by_id(gone.id) else { return };
        let Some(partition) = topic.partitions.borrow_mut().remove(&gone.index) else { return };
        self.partitions.set(self.partitions.get() - 1);
        if topic.partitions.borrow().is_empty() {
            self.by_id.borrow_mut().remove(&topic.id);
            let mut by_name = self.by_name.borrow_mut();
            // A topic created again under the same name may already stand here.
            if by_name.get(&topic.name).is_some_and(|named| named.id == topic.id) {
                by_name.remove(&topic.name);
            }
        }
        match gone.why {
            Closed::HandedOver(_) => partition.close().await,
            Closed::Deleted | Closed::Removed => partition.delete(slot).await,
        }
    }
}

fn reconfigure(slot: &Slot, image: &Image, topic: &Rc<LocalTopic>) {
    let settings = Rc::new(slot.topic_settings(image, &topic.name));
    *topic.settings.borrow_mut() = settings.clone();
    for partition in topic.partitions() {
        partition.set_options(Rc::new(log_options(&settings)));
    }
}

/// Runs `act` on every item, at most `width` at a time, and waits for all.
async fn for_each_concurrently<T, F, Fut>(items: Vec<T>, width: usize, act: F)
where
    T: 'static,
    F: Fn(T) -> Fut + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let workers = width.min(items.len());
    let todo = Rc::new(Queue::bounded(items.len().max(1)));
    for item in items {
        let queued = todo.try_push(item);
        debug_assert!(queued.is_ok(), "the queue has room for all items");
    }
    let act = Rc::new(act);
    let running = Rc::new(Cell::new(workers));
    let ended = Rc::new(Event::new());
    for _ in 0..workers {
        let (todo, act) = (todo.clone(), act.clone());
        let (running, ended) = (running.clone(), ended.clone());
        task::spawn(async move {
            while let Some(item) = todo.try_pop() {
                act(item).await;
            }
            running.set(running.get() - 1);
            ended.notify_all();
        });
    }
    while running.get() > 0 {
        ended.listen().await;
    }
}

/// Logs opened or closed at the same time: enough to keep a disk busy, few enough to bound memory.
const OPENING_MAX: usize = 64;
