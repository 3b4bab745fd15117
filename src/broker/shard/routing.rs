//! From what a client names to the partition that this slot leads, or to the reason why not.
//!
//! A partition of another slot is never served or forwarded: the answer is
//! NOT_LEADER_OR_FOLLOWER and who leads instead (KIP-951).

use std::rc::Rc;

use protocol::{ErrorCode, NodeId, Uuid};

use crate::shard::{LocalTopic, Partition};
use crate::slot::Slot;

/// How a request names a topic.
#[derive(Clone, Copy, Debug)]
pub enum TopicRef<'a> {
    Name(&'a str),
    Id(Uuid),
}

/// Who leads a partition, for answers that have room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderHint {
    pub node: NodeId,
    pub epoch: i32,
}

/// Why this slot does not serve a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misrouted {
    pub error: ErrorCode,
    pub leader: Option<LeaderHint>,
}

impl Misrouted {
    fn because(error: ErrorCode) -> Misrouted {
        Misrouted { error, leader: None }
    }
}

impl Slot {
    /// The partition, if this slot leads it.
    pub fn find(
        &self,
        topic: TopicRef<'_>,
        index: i32,
    ) -> Result<(Rc<LocalTopic>, Rc<Partition>), Misrouted> {
        let local = match topic {
            TopicRef::Name(name) => self.shard.topic(name),
            TopicRef::Id(id) => self.shard.topic_by_id(id),
        };
        if let Some(local) = local
            && let Some(partition) = local.partition(index)
        {
            return Ok((local, partition));
        }
        Err(self.misrouted(topic, index))
    }

    /// Whether the epoch that a client believes in is the partition's (KIP-320).
    pub fn check_epoch(partition: &Partition, epoch: i32) -> Result<(), ErrorCode> {
        let current = partition.leader_epoch();
        match epoch {
            ..=NO_EPOCH => Ok(()),
            older if older < current => Err(ErrorCode::FENCED_LEADER_EPOCH),
            newer if newer > current => Err(ErrorCode::UNKNOWN_LEADER_EPOCH),
            _ => Ok(()),
        }
    }

    /// Who leads this partition now.
    pub fn leader_of(&self, topic: TopicRef<'_>, index: i32) -> Option<LeaderHint> {
        let image = self.image();
        let topic = match topic {
            TopicRef::Name(name) => image.topic(name),
            TopicRef::Id(id) => image.topic_by_id(id),
        };
        let partition = topic?.partition(index)?;
        let node = partition.leader_node()?;
        Some(LeaderHint { node, epoch: partition.leader_epoch })
    }

    fn misrouted(&self, topic: TopicRef<'_>, index: i32) -> Misrouted {
        let image = self.image();
        let found = match topic {
            TopicRef::Name(name) => image.topic(name),
            TopicRef::Id(id) => image.topic_by_id(id),
        };
        let Some(found) = found else {
            return Misrouted::because(match topic {
                TopicRef::Name(_) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                TopicRef::Id(_) => ErrorCode::UNKNOWN_TOPIC_ID,
            });
        };
        if found.partition(index).is_none() {
            return Misrouted::because(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
        let leader = self.leader_of(topic, index);
        Misrouted { error: ErrorCode::NOT_LEADER_OR_FOLLOWER, leader }
    }
}

const NO_EPOCH: i32 = -1;
