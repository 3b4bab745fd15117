//! ElectLeaders.
//!
//! Behaviour: a preferred election gives leadership to the first replica if it is in sync; where
//! that leads already, or for an unclean election where anyone leads, the answer is
//! ELECTION_NOT_NEEDED. Asked for all partitions, only those are listed that need an election.

use std::sync::Arc;

use protocol::messages::elect_leaders::{
    ElectLeadersRequest, ElectLeadersResponse, PartitionResult, ReplicaElectionResult,
};
use protocol::{ErrorCode, Str};

use super::{Context, Decision, Refusal};
use crate::image::{Image, Topic};
use crate::record::{MetadataRecord, NextLeader, Partition, PartitionChanged};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Election {
    Preferred,
    Unclean,
}

pub fn elect_leaders(
    context: &Context<'_>,
    request: &ElectLeadersRequest,
) -> Decision<ElectLeadersResponse> {
    let election = match request.election_type {
        0 => Election::Preferred,
        1 => Election::Unclean,
        other => return Decision::answer(unknown_type(other, request)),
    };
    let mut decision = Decision::answer(ElectLeadersResponse::default());
    let asked: Vec<(Str, Vec<i32>)> = match &request.topic_partitions {
        Some(topics) => {
            topics.iter().map(|topic| (topic.topic.clone(), topic.partitions.clone())).collect()
        }
        None => context.image.topics().map(|topic| needing(election, topic)).collect(),
    };
    for (topic, partitions) in asked {
        let results = partitions.into_iter().map(|index| {
            let outcome = elect(context.image, election, &topic, index);
            let (error_code, error_message) = match outcome {
                Ok(record) => {
                    decision.records.push(record);
                    (ErrorCode::NONE, None)
                }
                Err(refusal) => (refusal.code, refusal.text()),
            };
            PartitionResult { partition_id: index, error_code, error_message }
        });
        let partition_result = results.collect();
        let result = ReplicaElectionResult { topic, partition_result };
        decision.response.replica_election_results.push(result);
    }
    decision
}

fn needing(election: Election, topic: &Arc<Topic>) -> (Str, Vec<i32>) {
    let needing = topic.indexed().filter(|(_, it)| election_needed(election, it));
    (topic.name.clone(), needing.map(|(index, _)| index).collect())
}

fn election_needed(election: Election, partition: &Partition) -> bool {
    match election {
        Election::Preferred => {
            partition.leader != partition.replicas.first().map(|first| first.host)
        }
        Election::Unclean => partition.leader.is_none(),
    }
}

fn elect(
    image: &Image,
    election: Election,
    topic: &str,
    index: i32,
) -> Result<MetadataRecord, Refusal> {
    let Some((id, partition)) =
        image.topic(topic).and_then(|topic| Some((topic.id, topic.partition(index)?)))
    else {
        let message = format!("there is no partition {index} of a topic {topic}");
        return Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message));
    };
    if !election_needed(election, partition) {
        let message = "the partition is led by the replica that should";
        return Err(Refusal::new(ErrorCode::ELECTION_NOT_NEEDED, message));
    }
    let preferred = partition.replicas.first().map(|first| first.host);
    let eligible = preferred.filter(|host| partition.in_sync.contains(host));
    let Some(leader) = eligible else {
        return Err(match election {
            Election::Preferred => Refusal::new(
                ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE,
                "the preferred replica is not in sync",
            ),
            Election::Unclean => Refusal::new(
                ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE,
                "no replica is available to lead",
            ),
        });
    };
    Ok(MetadataRecord::PartitionChanged(PartitionChanged {
        topic: id,
        index,
        replicas: None,
        in_sync: None,
        leader: Some(NextLeader::Host(leader)),
    }))
}

fn unknown_type(kind: i8, request: &ElectLeadersRequest) -> ElectLeadersResponse {
    let error_code = ErrorCode::INVALID_REQUEST;
    let message = Str::from(format!("{kind} is no type of election"));
    let asked = request.topic_partitions.iter().flatten();
    let results = asked.map(|topic| ReplicaElectionResult {
        topic: topic.topic.clone(),
        partition_result: topic
            .partitions
            .iter()
            .map(|&partition_id| {
                let error_message = Some(message.clone());
                PartitionResult { partition_id, error_code, error_message }
            })
            .collect(),
    });
    ElectLeadersResponse {
        error_code,
        replica_election_results: results.collect(),
        ..ElectLeadersResponse::default()
    }
}
