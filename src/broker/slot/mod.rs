//! One core's worth of broker: what the tasks of one executor share.
//!
//! Everything here is single-threaded; nothing is shared with another slot but what arrived by a
//! cross-core message. No record ever does.

mod connections;
pub mod links;
mod listener;
mod metrics;
mod run;
mod signals;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use metadata::Image;
use metadata::configs::{BrokerLayers, BrokerSettings, TopicSettings};
use metadata::record::ConfigResource;
use metadata::topic_name::is_internal;
use protocol::{NodeId, SlotIndex, Str, Uuid};
use runtime::local::Budget;
use storage::{JournalConfig, JournalError, Storage, StorageConfig};

pub use connections::Connections;
pub use metrics::{RequestTimes, SlotMetrics, snapshot};
pub use run::run;
pub use signals::{Stop, Tally};

use crate::config::ByteSize;
use crate::connection::{Connection, ReceiveMemory};
use crate::fetch::SessionCache;
use crate::groups::Groups;
use crate::host::{Host, Identity};
use crate::producer_ids::ProducerIds;
use crate::shard::{Cleaning, LetGo, Shard};
use crate::startup::StartError;
use links::Links;

/// The state of one slot.
pub struct Slot {
    pub host: Arc<Host>,
    pub identity: Arc<Identity>,
    pub index: SlotIndex,
    pub node: NodeId,
    pub storage: Storage,
    /// What storage draws on.
    pub budget: Budget,
    /// What frames on their way in may hold, beyond a small buffer for each connection.
    pub receive_memory: ReceiveMemory,
    /// What fetched records on their way out may hold.
    pub answer_budget: Budget,
    pub shard: Shard,
    pub cleaning: Cleaning,
    pub groups: Groups,
    pub links: Links,
    pub connections: Connections,
    pub sessions: RefCell<SessionCache>,
    pub producer_ids: ProducerIds,
    pub metrics: SlotMetrics,
    /// Set when no new requests are begun any more.
    pub stopping: Stop,
    /// On slot 0: how many other slots serve, and how many have stopped.
    pub others_ready: Tally,
    pub others_stopped: Tally,
    image: RefCell<Arc<Image>>,
    settings: RefCell<Rc<BrokerSettings>>,
    closes: RefCell<RateLimit>,
}

/// Lets a bounded number of lines through per second and counts the rest.
#[derive(Default)]
struct RateLimit {
    second: i64,
    said: u32,
    withheld: u64,
}

impl Slot {
    /// Opens the slot's partitions as `image` has them.
    pub async fn open(
        index: SlotIndex,
        host: Arc<Host>,
        identity: Arc<Identity>,
        links: Links,
        image: Arc<Image>,
    ) -> Result<Rc<Slot>, StartError> {
        let node = host.node(index);
        let layers = BrokerLayers::of_node(&image, node, &host.statics);
        let settings = Rc::new(BrokerSettings::resolve(&layers));
        let tuning = host.tuning(index);
        let share = tuning.memory as usize / MEMORY_SHARES;
        let budget = Budget::new(tuning.memory as usize - 2 * share);
        let mut storage = StorageConfig::new(host.data_dir.clone(), budget.clone());
        storage.direct_io = identity.direct_io;
        storage.incarnation = identity.incarnation;
        storage.open_files_max = host.open_files_per_slot();
        storage.commit_bytes_max = tuning.commit_bytes_max;
        storage.commit_linger = tuning.commit_linger;
        storage.journal = tuning.journal_bytes.map(|bytes| JournalConfig {
            bytes,
            commit_bytes_max: tuning.journal_commit_bytes_max,
            memory_bytes_max: budget.limit() / JOURNAL_MEMORY_SHARES,
            prewrite_after: JOURNAL_PREWRITE_AFTER,
        });
        storage.read_ahead_bytes_max = tuning.read_ahead_bytes;
        storage.producer_expiration_ms = i64::from(settings.producer_id_expiration_ms);
        let slot = Rc::new(Slot {
            storage: Storage::new(storage),
            host,
            identity,
            index,
            node,
            budget,
            receive_memory: ReceiveMemory::new(share),
            answer_budget: Budget::new(share),
            shard: Shard::default(),
            cleaning: Cleaning::default(),
            groups: Groups::default(),
            links,
            connections: Connections::default(),
            sessions: RefCell::new(SessionCache::new(settings.fetch_session_cache_slots as usize)),
            producer_ids: ProducerIds::default(),
            metrics: SlotMetrics::default(),
            stopping: Stop::default(),
            others_ready: Tally::default(),
            others_stopped: Tally::default(),
            image: RefCell::new(Arc::new(Image::default())),
            settings: RefCell::new(settings),
            closes: RefCell::default(),
        });
        slot.open_journal().await?;
        slot.apply(image).await;
        Ok(slot)
    }

    /// Without room for the journal every commit goes straight to its segment.
    async fn open_journal(&self) -> Result<(), StartError> {
        match self.storage.open_journal(u32::from(self.index.0)).await {
            Err(JournalError::NoRoom { dir, needed, free }) => {
                let (core, dir) = (self.index.0, dir.display());
                let (needed, free) = (ByteSize::new(needed), ByteSize::new(free));
                tracing::warn!(
                    core,
                    "no room for the journal in {dir}, which takes {needed} of which {free} are \
                     free: going on without one, every commit goes straight to its segment. Make \
                     room, or choose a smaller --journal-size, and start again"
                );
                Ok(())
            }
            opened => Ok(opened?),
        }
    }

    /// The metadata that this slot acts on now.
    pub fn image(&self) -> Arc<Image> {
        self.image.borrow().clone()
    }

    /// The broker settings in force now: static, dynamic default and dynamic of this node.
    pub fn settings(&self) -> Rc<BrokerSettings> {
        self.settings.borrow().clone()
    }

    pub fn socket_request_bytes_max(&self) -> usize {
        self.settings.borrow().socket_request_max_bytes as usize
    }

    /// The settings of a topic on this node: its overrides over the broker's.
    pub fn topic_settings(&self, image: &Image, topic: &Str) -> TopicSettings {
        let layers = BrokerLayers::of_node(image, self.node, &self.host.statics);
        let overrides = image.overrides(&ConfigResource::Topic(topic.clone()));
        let mut settings = TopicSettings::resolve(&layers, overrides);
        if is_internal(topic) {
            // What the broker itself acknowledges is durable, whatever topics do by default.
            settings.flush_messages = 1;
        }
        settings
    }

    /// Acts on newer metadata: opens, closes and reconfigures this slot's partitions.
    pub async fn apply(self: &Rc<Self>, image: Arc<Image>) {
        let layers = BrokerLayers::of_node(&image, self.node, &self.host.statics);
        let settings = Rc::new(BrokerSettings::resolve(&layers));
        let sessions_max = settings.fetch_session_cache_slots as usize;
        self.sessions.borrow_mut().set_capacity(sessions_max);
        *self.settings.borrow_mut() = settings;
        let before = self.image.replace(image.clone());
        self.shard.apply(self, &before, &image).await;
        self.groups.follow(self, &before, &image);
    }

    /// Ends the service of partitions that other slots will have. What is asked of them meanwhile
    /// waits until this slot acts on the metadata that says who has them.
    pub async fn let_go(&self, leaving: &[(Uuid, i32)]) -> LetGo {
        self.groups.let_go(&self.image(), leaving);
        self.shard.let_go(leaving).await
    }

    /// Says why a connection ends, a bounded number of times a second.
    pub fn log_close(&self, connection: &Connection, why: &str) {
        self.metrics.connections_refused.increment();
        let second = runtime::time::wall_ms() / 1000;
        let mut limit = self.closes.borrow_mut();
        if limit.second != second {
            if limit.withheld > 0 {
                tracing::warn!(withheld = limit.withheld, "more connections were closed");
            }
            *limit = RateLimit { second, ..RateLimit::default() };
        }
        if limit.said < CLOSE_LINES_PER_SECOND {
            limit.said += 1;
            let core = self.index.0;
            tracing::warn!(peer = %connection.peer, core, "connection closed: {why}");
        } else {
            limit.withheld += 1;
        }
    }
}

/// Of a slot's memory one share each is for frames coming in and for answers going out; storage
/// has the rest. They are kept apart so that neither waits for one that waits for it.
const MEMORY_SHARES: usize = 8;
/// Of storage's memory one share is for batches that only the journal has.
const JOURNAL_MEMORY_SHARES: usize = 3;
/// Small commits before the journal's files are written in full for them.
const JOURNAL_PREWRITE_AFTER: u64 = 64;
const CLOSE_LINES_PER_SECOND: u32 = 5;
