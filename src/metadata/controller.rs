//! Decisions: an image and a request in, records and an answer out.
//!
//! One file per kind of request. Nothing here changes anything: the caller commits the records,
//! replays them into the next image, and only then lets the answer go. The same inputs always give
//! the same decision; randomness is a parameter.
//!
//! Answers carry every field of their newest version; encoding leaves out what an older one lacks.

mod alter_configs;
mod auto_creation;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod describe_configs;
mod elections;
mod features;
mod hosts;
mod list_config_resources;
mod placement;
mod producer_ids;
mod random_ids;
mod reassignments;
mod resource;

use protocol::{ErrorCode, Str};

use crate::configs::{BrokerLayers, BrokerSettings, StaticSettings};
use crate::image::Image;
use crate::record::MetadataRecord;

pub use alter_configs::{LevelChange, Levels, alter_configs, incremental_alter_configs};
pub use auto_creation::{AutoCreated, InternalTopic, auto_create_topics, create_internal_topic};
pub use create_partitions::create_partitions;
pub use create_topics::{PARTITIONS_PER_REQUEST_MAX, create_topics};
pub use delete_topics::delete_topics;
pub use describe_configs::{Asked, describe_configs};
pub use elections::elect_leaders;
pub use features::{FEATURES, Feature, update_features};
pub use hosts::{CLUSTER_FORMAT, HostFacts, HostStart, StartError, start_host, unregister_broker};
pub use list_config_resources::list_config_resources;
pub use producer_ids::{PRODUCER_ID_BLOCK, ProducerIdBlock, allocate_producer_ids};
pub use random_ids::RandomIds;
pub use reassignments::{alter_partition_reassignments, list_partition_reassignments};

/// What every decision may look at.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub image: &'a Image,
    /// Of the host that runs the controller.
    pub statics: &'a StaticSettings,
    /// Fresh for each decision, from the runtime's source.
    pub random: u128,
}

impl<'a> Context<'a> {
    fn layers(&self) -> BrokerLayers<'a> {
        BrokerLayers::of_cluster(self.image, self.statics)
    }

    fn settings(&self) -> BrokerSettings {
        BrokerSettings::resolve(&self.layers())
    }
}

/// What to commit, and what to answer once it is committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<R> {
    /// Empty if nothing changes.
    pub records: Vec<MetadataRecord>,
    pub response: R,
    /// For the log of the broker: what was accepted but changes nothing, and why.
    pub warnings: Vec<String>,
}

impl<R> Decision<R> {
    fn answer(response: R) -> Self {
        Self { records: Vec::new(), response, warnings: Vec::new() }
    }
}

/// A refusal in the terms of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub message: Option<String>,
}

impl Refusal {
    fn new(code: ErrorCode, message: impl ToString) -> Self {
        Self { code, message: Some(message.to_string()) }
    }

    fn silent(code: ErrorCode) -> Self {
        Self { code, message: None }
    }

    fn text(&self) -> Option<Str> {
        self.message.clone().map(Str::from)
    }
}
