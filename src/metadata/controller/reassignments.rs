//! AlterPartitionReassignments and ListPartitionReassignments.
//!
//! Behaviour: among the slots of the hosts that a partition is on already, a reassignment is one
//! record and done: files belong to hosts, so nothing is copied and nothing stays pending. That is
//! how partitions move between cores. Other hosts would have to copy; until they can, that is
//! refused. Cancelling finds nothing to cancel.

use std::collections::BTreeSet;

use protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ReassignablePartition,
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use protocol::messages::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};
use protocol::{ErrorCode, HostId, Str};

use super::placement::chosen_by_hand;
use super::{Context, Decision, Refusal};
use crate::image::Image;
use crate::record::{MetadataRecord, PartitionChanged, Replica};

pub fn alter_partition_reassignments(
    context: &Context<'_>,
    request: &AlterPartitionReassignmentsRequest,
) -> Decision<AlterPartitionReassignmentsResponse> {
    let mut decision = Decision::answer(AlterPartitionReassignmentsResponse {
        allow_replication_factor_change: request.allow_replication_factor_change,
        error_message: request.topics.is_empty().then_some(Str::EMPTY),
        ..AlterPartitionReassignmentsResponse::default()
    });
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let may_resize = FactorChange::of(request.allow_replication_factor_change);
            let (error_code, error_message) =
                match reassign(context.image, &topic.name, asked, may_resize) {
                    Ok(record) => {
                        decision.records.extend(record);
                        (ErrorCode::NONE, None)
                    }
                    Err(refusal) => (refusal.code, refusal.text()),
                };
            let partition_index = asked.partition_index;
            partitions.push(ReassignablePartitionResponse {
                partition_index,
                error_code,
                error_message,
            });
        }
        let name = topic.name.clone();
        decision.response.responses.push(ReassignableTopicResponse { name, partitions });
    }
    decision
}

/// Whether a reassignment may change how many replicas there are (KIP-860).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FactorChange {
    Allowed,
    Forbidden,
}

impl FactorChange {
    fn of(allowed: bool) -> Self {
        if allowed { Self::Allowed } else { Self::Forbidden }
    }
}

fn reassign(
    image: &Image,
    name: &str,
    asked: &ReassignablePartition,
    factor_change: FactorChange,
) -> Result<Option<MetadataRecord>, Refusal> {
    let index = asked.partition_index;
    let unknown = |message: String| Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message);
    let topic = image.topic(name).ok_or_else(|| unknown(format!("there is no topic {name}")))?;
    let partition = topic
        .partition(index)
        .ok_or_else(|| unknown(format!("topic {name} has no partition {index}")))?;
    let Some(nodes) = &asked.replicas else {
        return Err(Refusal::silent(ErrorCode::NO_REASSIGNMENT_IN_PROGRESS));
    };
    let replicas = chosen_by_hand(image, nodes)?;
    let (wanted, present) = (replicas.len(), partition.replicas.len());
    if wanted != present && factor_change == FactorChange::Forbidden {
        let message = format!("the partition has {present} replicas and may not get {wanted}");
        return Err(Refusal::new(ErrorCode::INVALID_REPLICATION_FACTOR, message));
    }
    if hosts_of(&replicas) != hosts_of(&partition.replicas) {
        let message = "partitions cannot be copied to other hosts yet, only moved between the \
                       slots of those they are on";
        return Err(Refusal::new(ErrorCode::INVALID_REPLICA_ASSIGNMENT, message));
    }
    let changed = PartitionChanged {
        topic: topic.id,
        index,
        replicas: Some(replicas),
        in_sync: None,
        leader: None,
    };
    let same = changed.replicas.as_deref() == Some(&partition.replicas[..]);
    Ok((!same).then_some(MetadataRecord::PartitionChanged(changed)))
}

fn hosts_of(replicas: &[Replica]) -> BTreeSet<HostId> {
    replicas.iter().map(|replica| replica.host).collect()
}

/// Nothing is ever pending: see above.
pub fn list_partition_reassignments(
    _request: &ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse {
    let error_message = None;
    ListPartitionReassignmentsResponse { error_message, ..Default::default() }
}
