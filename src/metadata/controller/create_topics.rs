//! CreateTopics.
//!
//! Behaviour: each topic is decided by itself and in the order of the request; one that is refused
//! does not stop the others. A name given twice is refused, once. −1 partitions or replicas mean
//! the broker's default; a manual assignment wants both −1. A replication factor counts hosts.
//! Answers list the effective configs of the new topic with their sources (KIP-525). With
//! validate_only everything is decided, an id made up, and nothing committed.
//!
//! Names are compared with those of existing topics only: "a.b" and "a_b" in one request both
//! succeed, as in Kafka.

use std::collections::BTreeMap;

use protocol::messages::create_topics::{
    CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreateTopicsRequest,
    CreateTopicsResponse,
};
use protocol::{ErrorCode, Str, Uuid};

use super::placement::Placer;
use super::{Context, Decision, RandomIds, Refusal};
use crate::configs::{
    Described, DescribedConfig, Family, VALUE_BYTES_MAX, Warning, check_topic, describe_topic,
};
use crate::image::{Image, Overrides};
use crate::record::{
    ConfigChanged, ConfigResource, MetadataRecord, Partition, PartitionCreated, TopicCreated,
};
use crate::topic_name::{METADATA_TOPIC, check_topic_name};

/// More partitions than this are refused in one request: they are committed as one entry.
pub const PARTITIONS_PER_REQUEST_MAX: usize = 10_000;

pub fn create_topics(
    context: &Context<'_>,
    request: &CreateTopicsRequest,
) -> Decision<CreateTopicsResponse> {
    let mut decider = Decider::new(context);
    let mut times_named: BTreeMap<&str, usize> = BTreeMap::new();
    for topic in &request.topics {
        *times_named.entry(&*topic.name).or_default() += 1;
    }
    let too_many = decider.partitions_asked(request) > PARTITIONS_PER_REQUEST_MAX;
    let mut topics = Vec::with_capacity(times_named.len());
    for topic in &request.topics {
        let outcome = match times_named.insert(&*topic.name, 0) {
            Some(1) if topic.name == METADATA_TOPIC => Err(reserved(&topic.name)),
            Some(1) if too_many => Err(too_many_partitions()),
            Some(1) => decider.decide(topic),
            Some(0) | None => continue,
            Some(_) => Err(named_twice(&topic.name)),
        };
        topics.push(match outcome {
            Ok(created) => created_result(topic, created),
            Err(refusal) => refused_result(topic, &refusal),
        });
    }
    let records = if request.validate_only { Vec::new() } else { decider.records };
    let warnings = decider.warnings;
    let response = CreateTopicsResponse { topics, ..CreateTopicsResponse::default() };
    Decision { records, response, warnings }
}

/// A topic as it will be.
pub(super) struct Created {
    pub(super) id: Uuid,
    partitions: Vec<Partition>,
    configs: Vec<DescribedConfig>,
}

pub(super) struct Decider<'a> {
    context: &'a Context<'a>,
    placer: Placer<'a>,
    ids: RandomIds,
    pub(super) records: Vec<MetadataRecord>,
    pub(super) warnings: Vec<String>,
}

impl<'a> Decider<'a> {
    pub(super) fn new(context: &'a Context<'a>) -> Self {
        Self {
            context,
            placer: Placer::new(context.image),
            ids: RandomIds::new(context.random),
            records: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn partitions_asked(&self, request: &CreateTopicsRequest) -> usize {
        let default = self.context.settings().num_partitions;
        let asked = request.topics.iter().map(|topic| match topic.num_partitions {
            -1 if topic.assignments.is_empty() => default.max(0) as usize,
            -1 => topic.assignments.len(),
            count => count.max(0) as usize,
        });
        asked.fold(0, usize::saturating_add)
    }

    fn decide(&mut self, topic: &CreatableTopic) -> Result<Created, Refusal> {
        check_new_name(self.context.image, &topic.name)?;
        let overrides = overrides_of(topic)?;
        let layers = self.context.layers();
        let warnings = check_topic(&layers, &overrides)
            .map_err(|why| Refusal::new(ErrorCode::INVALID_CONFIG, why))?;
        self.create(topic, overrides, warnings)
    }

    /// Past the checks of name and configs.
    pub(super) fn create(
        &mut self,
        topic: &CreatableTopic,
        overrides: Overrides,
        warnings: Vec<Warning>,
    ) -> Result<Created, Refusal> {
        let partitions = self.partitions_of(topic)?;
        let layers = self.context.layers();
        let configs = describe_topic(&layers, Some(&overrides), &Described::all());
        let (id, name) = (self.fresh_id(), topic.name.detach());
        self.warnings.extend(warnings.iter().map(|warning| format!("topic {name}: {warning}")));
        for (key, value) in overrides {
            let resource = ConfigResource::Topic(name.clone());
            let value = Some(value);
            let change = ConfigChanged { resource, key, value };
            self.records.push(MetadataRecord::ConfigChanged(change));
        }
        self.records.push(MetadataRecord::TopicCreated(TopicCreated { name, id }));
        for (index, partition) in (0..).zip(&partitions) {
            let partition = partition.clone();
            let created = PartitionCreated { topic: id, index, partition };
            self.records.push(MetadataRecord::PartitionCreated(created));
        }
        Ok(Created { id, partitions, configs })
    }

    fn fresh_id(&mut self) -> Uuid {
        loop {
            let id = self.ids.next_id();
            if self.context.image.topic_by_id(id).is_none() {
                return id;
            }
        }
    }

    fn partitions_of(&mut self, topic: &CreatableTopic) -> Result<Vec<Partition>, Refusal> {
        if !topic.assignments.is_empty() {
            return self.assigned_partitions(topic);
        }
        let settings = self.context.settings();
        let factor = match i32::from(topic.replication_factor) {
            -1 => settings.default_replication_factor,
            factor if factor > 0 => factor,
            factor => {
                let message = format!("a replication factor of {factor} is impossible");
                return Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, message));
            }
        };
        let count = match topic.num_partitions {
            -1 => settings.num_partitions,
            count if count > 0 => count,
            count => {
                let message = format!("a topic cannot have {count} partitions");
                return Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, message));
            }
        };
        self.placer.begin_topic(std::iter::empty());
        let factor = usize::try_from(factor).unwrap_or(0);
        (0..count).map(|_| self.placer.place(factor)).collect()
    }

    fn assigned_partitions(&mut self, topic: &CreatableTopic) -> Result<Vec<Partition>, Refusal> {
        let both = |what: &str| {
            let message = format!("with an assignment by hand, {what} has to be -1");
            Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
        };
        if topic.replication_factor != -1 {
            return both("the replication factor");
        }
        if topic.num_partitions != -1 {
            return both("the number of partitions");
        }
        let mut assignments: Vec<_> = topic.assignments.iter().collect();
        assignments.sort_by_key(|assignment| assignment.partition_index);
        let dense =
            (0..).zip(&assignments).all(|(index, assigned)| assigned.partition_index == index);
        if !dense {
            let message = "assigned partitions have to be numbered 0, 1, 2, … without a gap";
            return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
        }
        let factor = assignments.first().map(|first| first.broker_ids.len());
        let mut place = |nodes| self.placer.place_by_hand(nodes, factor);
        assignments.iter().map(|assigned| place(&assigned.broker_ids)).collect()
    }
}

pub(super) fn check_new_name(image: &Image, name: &str) -> Result<(), Refusal> {
    check_topic_name(name).map_err(|why| Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why))?;
    if image.topic(name).is_some() {
        let message = format!("topic {name} exists already");
        return Err(Refusal::new(ErrorCode::TOPIC_ALREADY_EXISTS, message));
    }
    if let Some(other) = image.colliding_topic(name) {
        let message = format!(
            "topic {name} would collide with {other}: '.' and '_' are the same in metric names"
        );
        return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, message));
    }
    Ok(())
}

/// As given, in canonical form; of a key given twice the last value counts.
fn overrides_of(topic: &CreatableTopic) -> Result<Overrides, Refusal> {
    let mut overrides = Overrides::new();
    for config in &topic.configs {
        let Some(value) = &config.value else {
            let message = format!("{} cannot be null", config.name);
            return Err(Refusal::new(ErrorCode::INVALID_CONFIG, message));
        };
        overrides.insert(config.name.detach(), canonical(Family::Topic, &config.name, value));
    }
    Ok(overrides)
}

/// The text under which a value is kept. What does not parse stays for the check to name it.
pub(super) fn canonical(family: Family, name: &str, text: &str) -> Str {
    let value = family.find(name).and_then(|key| key.parse(text).ok());
    // What is longer is refused by the check; a byte more is enough for it to see that.
    let kept = text.char_indices().take_while(|(at, _)| *at <= VALUE_BYTES_MAX);
    value.map_or_else(
        || Str::from(kept.map(|(_, letter)| letter).collect::<String>()),
        |value| Str::from(value.to_string()),
    )
}

fn named_twice(name: &str) -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, format!("topic {name} is in the request twice"))
}

fn reserved(name: &str) -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, format!("{name} belongs to the cluster itself"))
}

fn too_many_partitions() -> Refusal {
    let message = format!(
        "a request can create {PARTITIONS_PER_REQUEST_MAX} partitions; ask in several requests"
    );
    Refusal::new(ErrorCode::POLICY_VIOLATION, message)
}

fn created_result(topic: &CreatableTopic, created: Created) -> CreatableTopicResult {
    let factor = created.partitions.first().map_or(0, |partition| partition.replicas.len());
    let configs = created.configs.into_iter().map(|config| CreatableTopicConfigs {
        name: config.name,
        value: config.value.map(Str::from),
        read_only: config.read_only,
        config_source: config.source.wire_code(),
        is_sensitive: config.sensitive,
    });
    CreatableTopicResult {
        name: topic.name.clone(),
        topic_id: created.id,
        error_code: ErrorCode::NONE,
        error_message: None,
        topic_config_error_code: ErrorCode::NONE,
        num_partitions: created.partitions.len() as i32,
        replication_factor: factor as i16,
        configs: Some(configs.collect()),
    }
}

fn refused_result(topic: &CreatableTopic, refusal: &Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name: topic.name.clone(),
        error_code: refusal.code,
        error_message: refusal.text(),
        ..CreatableTopicResult::default()
    }
}
