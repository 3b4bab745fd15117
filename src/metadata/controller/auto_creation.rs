//! Topics that come into being because someone uses them.
//!
//! Behaviour: a name that exists is no error. New ones take the broker's defaults; the broker's
//! own topics have keys of their own, and where those ask for more hosts than there are, they get
//! what there is (a single host must be able to keep offsets).

use std::collections::BTreeSet;

use protocol::messages::create_topics::CreatableTopic;
use protocol::{ErrorCode, Str, Uuid};

use super::create_topics::{Decider, PARTITIONS_PER_REQUEST_MAX, check_new_name};
use super::{Context, Decision, Refusal};
use crate::image::Overrides;
use crate::topic_name::{METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC};

/// What became of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoCreated {
    pub name: Str,
    /// Of the topic that exists now, or will once the records are committed.
    pub outcome: Result<Uuid, Refusal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InternalTopic {
    Offsets,
    TransactionState,
}

impl InternalTopic {
    pub fn name(self) -> &'static str {
        match self {
            Self::Offsets => OFFSETS_TOPIC,
            Self::TransactionState => TRANSACTION_STATE_TOPIC,
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Offsets, Self::TransactionState].into_iter().find(|topic| topic.name() == name)
    }
}

/// Once a request has led to so many records no more topics come of it: they are committed as one
/// entry, and whoever names so many topics asks again.
pub const RECORDS_PER_REQUEST_MAX: usize = PARTITIONS_PER_REQUEST_MAX;

/// Whether the broker's settings and the request allow creation at all is asked before.
pub fn auto_create_topics(context: &Context<'_>, names: &[Str]) -> Decision<Vec<AutoCreated>> {
    let mut decider = Decider::new(context);
    let mut response: Vec<AutoCreated> = Vec::with_capacity(names.len());
    let mut done = BTreeSet::new();
    for name in names {
        if !done.insert(name) {
            continue;
        }
        let outcome = match decider.records.len() < RECORDS_PER_REQUEST_MAX {
            true => create_one(context, &mut decider, name),
            false => Err(Refusal::silent(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)),
        };
        response.push(AutoCreated { name: name.clone(), outcome });
    }
    Decision { records: decider.records, response, warnings: decider.warnings }
}

/// A topic of the broker's own, if it is not there yet.
pub fn create_internal_topic(
    context: &Context<'_>,
    topic: InternalTopic,
) -> Decision<Result<Uuid, Refusal>> {
    let mut decider = Decider::new(context);
    let response = create_one(context, &mut decider, &Str::from_static(topic.name()));
    Decision { records: decider.records, response, warnings: decider.warnings }
}

fn create_one(
    context: &Context<'_>,
    decider: &mut Decider<'_>,
    name: &Str,
) -> Result<Uuid, Refusal> {
    if let Some(topic) = context.image.topic(name) {
        return Ok(topic.id);
    }
    if *name == METADATA_TOPIC {
        let message = format!("{name} belongs to the cluster itself");
        return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message));
    }
    check_new_name(context.image, name)?;
    let (topic, overrides) = match InternalTopic::named(name) {
        Some(internal) => internal_topic(context, internal),
        None => {
            let (num_partitions, replication_factor) = (-1, -1);
            let name = name.clone();
            let topic =
                CreatableTopic { name, num_partitions, replication_factor, ..Default::default() };
            (topic, Overrides::new())
        }
    };
    // The overrides are ours: what they ask for takes effect as soon as it is served.
    decider.create(&topic, overrides, Vec::new()).map(|created| created.id)
}

fn internal_topic(context: &Context<'_>, topic: InternalTopic) -> (CreatableTopic, Overrides) {
    let settings = context.settings();
    let wanted = match topic {
        InternalTopic::Offsets => settings.offsets_topic,
        InternalTopic::TransactionState => settings.transaction_state_topic,
    };
    let hosts = i32::try_from(context.image.host_count()).unwrap_or(i32::MAX);
    let mut overrides = Overrides::new();
    let mut set = |key: &'static str, value: String| {
        overrides.insert(Str::from_static(key), Str::from(value));
    };
    set("cleanup.policy", "compact".to_owned());
    set("compression.type", "producer".to_owned());
    set("segment.bytes", wanted.segment_bytes.max(1 << 20).to_string());
    if let Some(in_sync) = wanted.min_insync_replicas {
        set("min.insync.replicas", in_sync.min(hosts).max(1).to_string());
    }
    let created = CreatableTopic {
        name: Str::from_static(topic.name()),
        num_partitions: wanted.partitions,
        replication_factor: wanted.replication_factor.min(hosts) as i16,
        ..CreatableTopic::default()
    };
    (created, overrides)
}
