//! CreatePartitions.
//!
//! Behaviour: `count` is the number of partitions afterwards and has to be larger than now.
//! Assignments, if any, are for the new partitions only, one each, and have as many replicas as
//! the topic has. A topic given twice is refused, once. Existing partitions never change, so keys
//! map to other partitions afterwards: warning of that is up to tools.

use std::collections::BTreeMap;

use protocol::ErrorCode;
use protocol::messages::create_partitions::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreatePartitionsTopic,
    CreatePartitionsTopicResult,
};

use super::create_topics::PARTITIONS_PER_REQUEST_MAX;
use super::placement::Placer;
use super::{Context, Decision, Refusal};
use crate::record::{MetadataRecord, PartitionCreated};

pub fn create_partitions(
    context: &Context<'_>,
    request: &CreatePartitionsRequest,
) -> Decision<CreatePartitionsResponse> {
    let mut placer = Placer::new(context.image);
    let mut times_named: BTreeMap<&str, usize> = BTreeMap::new();
    for topic in &request.topics {
        *times_named.entry(&*topic.name).or_default() += 1;
    }
    let mut decision = Decision::answer(CreatePartitionsResponse::default());
    for topic in &request.topics {
        let outcome = match times_named.insert(&*topic.name, 0) {
            Some(1) => add_to(context, &mut placer, topic),
            Some(0) | None => continue,
            Some(_) => Err(Refusal::new(
                ErrorCode::INVALID_REQUEST,
                format!("topic {} is in the request twice", topic.name),
            )),
        };
        let (error_code, error_message) = match outcome {
            Ok(records) => {
                decision.records.extend(records);
                (ErrorCode::NONE, None)
            }
            Err(refusal) => (refusal.code, refusal.text()),
        };
        let name = topic.name.clone();
        let result = CreatePartitionsTopicResult { name, error_code, error_message };
        decision.response.results.push(result);
    }
    if request.validate_only {
        decision.records.clear();
    }
    decision
}

fn add_to(
    context: &Context<'_>,
    placer: &mut Placer<'_>,
    asked: &CreatePartitionsTopic,
) -> Result<Vec<MetadataRecord>, Refusal> {
    let Some(topic) = context.image.topic(&asked.name) else {
        return Err(Refusal::silent(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    };
    let have = topic.partitions.len();
    let wanted = usize::try_from(asked.count).unwrap_or(0);
    if wanted <= have {
        let message = format!(
            "topic {} has {have} partitions: {} would be no increase",
            topic.name, asked.count
        );
        return Err(Refusal::new(ErrorCode::INVALID_PARTITIONS, message));
    }
    let additional = wanted - have;
    if additional > PARTITIONS_PER_REQUEST_MAX {
        let message =
            format!("a request can add {PARTITIONS_PER_REQUEST_MAX} partitions, not {additional}");
        return Err(Refusal::new(ErrorCode::POLICY_VIOLATION, message));
    }
    let factor = topic.partitions.front().map_or(1, |first| first.replicas.len());
    placer.begin_topic(topic.partitions.iter().map(AsRef::as_ref));
    let partitions: Vec<_> = match &asked.assignments {
        None => (0..additional).map(|_| placer.place(factor)).collect::<Result<_, _>>()?,
        Some(assignments) if assignments.len() == additional => assignments
            .iter()
            .map(|assigned| placer.place_by_hand(&assigned.broker_ids, Some(factor)))
            .collect::<Result<_, _>>()?,
        Some(assignments) => {
            let assigned = assignments.len();
            let message = format!("{additional} partitions are added, and {assigned} are assigned");
            return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
        }
    };
    let indexes = i32::try_from(have).unwrap_or(i32::MAX)..;
    let created = indexes.zip(partitions).map(|(index, partition)| {
        let topic = topic.id;
        MetadataRecord::PartitionCreated(PartitionCreated { topic, index, partition })
    });
    Ok(created.collect())
}
