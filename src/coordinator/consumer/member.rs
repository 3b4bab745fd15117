//! One member of a consumer group.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use protocol::group_records::{
    ClassicMemberMetadata, ClassicProtocol, ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue, ConsumerGroupTargetAssignmentMemberValue, CurrentPartitions,
    TargetPartitions,
};
use protocol::{Str, Uuid};

/// Partitions by topic; no topic without partitions.
pub(crate) type Partitions = BTreeMap<Uuid, BTreeSet<i32>>;
/// Partitions by topic, and at which epoch each came to its member.
pub(crate) type Owned = BTreeMap<Uuid, BTreeMap<i32, i32>>;

/// How far a member is from what it is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberState {
    Stable,
    /// It has to give partitions up before it goes on to the next epoch.
    Unrevoked,
    /// It waits for partitions that others have not given up yet.
    Unreleased,
    /// Written by a release that knows more states.
    Unknown,
}

impl MemberState {
    fn from_wire(number: i8) -> MemberState {
        match number {
            0 => MemberState::Stable,
            1 => MemberState::Unrevoked,
            2 => MemberState::Unreleased,
            _ => MemberState::Unknown,
        }
    }

    fn number(self) -> i8 {
        match self {
            MemberState::Stable => 0,
            MemberState::Unrevoked => 1,
            MemberState::Unreleased => 2,
            MemberState::Unknown => 127,
        }
    }
}

/// What a member that speaks the classic protocol brings along.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClassicSide {
    pub session_timeout_ms: i32,
    /// What it supports, the preferred one first, with the subscription for each.
    pub protocols: Vec<(Str, Bytes)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub id: Str,
    pub instance_id: Option<Str>,
    pub rack_id: Option<Str>,
    pub client_id: Str,
    pub client_host: Str,
    pub rebalance_timeout_ms: i32,
    pub topics: BTreeSet<Str>,
    /// Empty for none.
    pub pattern: Str,
    pub assignor: Option<Str>,
    pub classic: Option<ClassicSide>,
    /// What heartbeats have to carry: −1 before the first assignment, −2 while a static member is
    /// away.
    pub epoch: i32,
    pub previous_epoch: i32,
    pub state: MemberState,
    pub assigned: Owned,
    /// To be given up, still held.
    pub revoking: Owned,
}

impl Member {
    pub fn new(id: Str) -> Member {
        Member {
            id,
            instance_id: None,
            rack_id: None,
            client_id: Str::EMPTY,
            client_host: Str::EMPTY,
            rebalance_timeout_ms: -1,
            topics: BTreeSet::new(),
            pattern: Str::EMPTY,
            assignor: None,
            classic: None,
            epoch: 0,
            previous_epoch: -1,
            state: MemberState::Stable,
            assigned: Owned::new(),
            revoking: Owned::new(),
        }
    }

    pub fn is_classic(&self) -> bool {
        self.classic.is_some()
    }

    /// Goes on to an epoch, remembering the last one: a member that missed the answer still
    /// sends that.
    pub fn advance(&mut self, epoch: i32) {
        self.previous_epoch = std::mem::replace(&mut self.epoch, epoch);
    }

    pub fn is_reconciled_to(&self, epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == epoch
    }

    /// At which epoch a partition that it holds came to it.
    pub fn partition_epoch(&self, topic: Uuid, partition: i32) -> Option<i32> {
        let held = [&self.assigned, &self.revoking];
        held.into_iter().find_map(|it| it.get(&topic)?.get(&partition).copied())
    }

    /// Of the protocol that it likes best.
    pub fn classic_protocol(&self) -> Option<&(Str, Bytes)> {
        self.classic.as_ref()?.protocols.first()
    }

    // ---- records

    pub fn describe_itself(&mut self, value: ConsumerGroupMemberMetadataValue) {
        let detached = |text: Option<Str>| text.map(|it| it.detach());
        self.instance_id = detached(value.instance_id);
        self.rack_id = detached(value.rack_id);
        self.client_id = value.client_id.detach();
        self.client_host = value.client_host.detach();
        self.topics = value.subscribed_topic_names.iter().map(Str::detach).collect();
        self.pattern = detached(value.subscribed_topic_regex).unwrap_or_default();
        self.rebalance_timeout_ms = value.rebalance_timeout_ms;
        self.assignor = detached(value.server_assignor);
        self.classic = value.classic_member_metadata.map(|classic| ClassicSide {
            session_timeout_ms: classic.session_timeout_ms,
            protocols: classic
                .supported_protocols
                .iter()
                .map(|it| (it.name.detach(), Bytes::copy_from_slice(&it.metadata)))
                .collect(),
        });
    }

    pub fn description(&self) -> ConsumerGroupMemberMetadataValue {
        ConsumerGroupMemberMetadataValue {
            instance_id: self.instance_id.clone(),
            rack_id: self.rack_id.clone(),
            client_id: self.client_id.clone(),
            client_host: self.client_host.clone(),
            subscribed_topic_names: self.topics.iter().cloned().collect(),
            subscribed_topic_regex: Some(self.pattern.clone()),
            rebalance_timeout_ms: self.rebalance_timeout_ms,
            server_assignor: self.assignor.clone(),
            classic_member_metadata: self.classic.as_ref().map(|classic| ClassicMemberMetadata {
                session_timeout_ms: classic.session_timeout_ms,
                supported_protocols: classic
                    .protocols
                    .iter()
                    .map(|(name, metadata)| ClassicProtocol {
                        name: name.clone(),
                        metadata: metadata.clone(),
                    })
                    .collect(),
            }),
        }
    }

    pub fn hold(&mut self, value: ConsumerGroupCurrentMemberAssignmentValue) {
        self.epoch = value.member_epoch;
        self.previous_epoch = value.previous_member_epoch;
        self.state = MemberState::from_wire(value.state);
        self.assigned = owned_of(value.assigned_partitions, value.member_epoch);
        self.revoking = owned_of(value.partitions_pending_revocation, value.member_epoch);
    }

    pub fn holding(&self) -> ConsumerGroupCurrentMemberAssignmentValue {
        ConsumerGroupCurrentMemberAssignmentValue {
            member_epoch: self.epoch,
            previous_member_epoch: self.previous_epoch,
            state: self.state.number(),
            assigned_partitions: owned_record(&self.assigned),
            partitions_pending_revocation: owned_record(&self.revoking),
        }
    }
}

fn owned_of(topics: Vec<CurrentPartitions>, epoch: i32) -> Owned {
    let usual = epoch.max(0);
    let each = topics.into_iter().map(|topic| {
        let epochs = topic.assignment_epochs.filter(|it| it.len() == topic.partitions.len());
        let epochs = epochs.unwrap_or_else(|| vec![usual; topic.partitions.len()]);
        (topic.topic_id, topic.partitions.into_iter().zip(epochs).collect::<BTreeMap<_, _>>())
    });
    each.filter(|(_, partitions)| !partitions.is_empty()).collect()
}

fn owned_record(owned: &Owned) -> Vec<CurrentPartitions> {
    let each = owned.iter().map(|(&topic_id, partitions)| CurrentPartitions {
        topic_id,
        partitions: partitions.keys().copied().collect(),
        assignment_epochs: Some(partitions.values().copied().collect()),
    });
    each.collect()
}

pub(crate) fn target_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Partitions {
    let topics = value.topic_partitions.into_iter().filter(|it| !it.partitions.is_empty());
    topics.map(|it| (it.topic_id, it.partitions.into_iter().collect())).collect()
}

pub(crate) fn target_record(target: &Partitions) -> ConsumerGroupTargetAssignmentMemberValue {
    let each = target.iter().map(|(&topic_id, partitions)| TargetPartitions {
        topic_id,
        partitions: partitions.iter().copied().collect(),
    });
    ConsumerGroupTargetAssignmentMemberValue { topic_partitions: each.collect() }
}

pub(crate) fn without_epochs(owned: &Owned) -> Partitions {
    owned.iter().map(|(&topic, it)| (topic, it.keys().copied().collect())).collect()
}

pub(crate) fn with_epoch(partitions: &Partitions, epoch: i32) -> Owned {
    let each = partitions.iter();
    each.map(|(&topic, it)| (topic, it.iter().map(|&index| (index, epoch)).collect())).collect()
}
