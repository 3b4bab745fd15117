//! How a consumer group is shown: ConsumerGroupDescribe, and its row in ListGroups.

use metadata::Image;
use protocol::messages::consumer_group_describe::{
    Assignment, DescribedGroup, Member as DescribedMember, TopicPartitions,
};

use super::member::without_epochs;
use super::{Assignor, ConsumerGroup, Member, Partitions};

impl ConsumerGroup {
    pub fn state_name(&self) -> &'static str {
        if self.members.is_empty() {
            "Empty"
        } else if self.epoch > self.target_epoch {
            "Assigning"
        } else if self.members.values().any(|it| !it.is_reconciled_to(self.target_epoch)) {
            "Reconciling"
        } else {
            "Stable"
        }
    }

    pub fn describe(&self, served: &[Assignor], image: &Image) -> DescribedGroup {
        DescribedGroup {
            group_id: self.id.clone(),
            group_state: self.state_name().into(),
            group_epoch: self.epoch,
            assignment_epoch: self.target_epoch,
            assignor_name: self.preferred_assignor(served).name().into(),
            members: self.members.values().map(|it| self.describe_member(it, image)).collect(),
            ..DescribedGroup::default()
        }
    }

    fn describe_member(&self, member: &Member, image: &Image) -> DescribedMember {
        let mut held = without_epochs(&member.assigned);
        for (topic, partitions) in without_epochs(&member.revoking) {
            held.entry(topic).or_default().extend(partitions);
        }
        DescribedMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            rack_id: member.rack_id.clone(),
            member_epoch: member.epoch,
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            subscribed_topic_names: member.topics.iter().cloned().collect(),
            subscribed_topic_regex: Some(member.pattern.clone()),
            assignment: shown(&held, image),
            target_assignment: shown(&self.target_for(&member.id), image),
            member_type: if member.is_classic() { CLASSIC } else { CONSUMER },
        }
    }
}

/// Of topics that still exist.
fn shown(partitions: &Partitions, image: &Image) -> Assignment {
    let named = partitions.iter().filter_map(|(&topic_id, indexes)| {
        let topic = image.topic_by_id(topic_id)?;
        Some(TopicPartitions {
            topic_id,
            topic_name: topic.name.clone(),
            partitions: indexes.iter().copied().collect(),
        })
    });
    Assignment { topic_partitions: named.collect() }
}

const CLASSIC: i8 = 0;
const CONSUMER: i8 = 1;
