//! Groups of the consumer protocol as the log of group coordinators has them (KIP-848): the group,
//! its members, what each is to have (target) and what each has (current), and the topics that
//! its patterns stand for.

use bytes::Bytes;

use super::{Key, decode, encode};
use crate::wire::declare::structure;
use crate::{DecodeError, Str, Uuid};

structure! {
    /// Names something of which each group has one.
    GroupKey {
        group: Str [0..],
    }
}

structure! {
    /// Names something of which each member has one.
    MemberKey {
        group: Str [0..],
        member: Str [0..],
    }
}

structure! {
    /// Names a pattern that members of a group subscribe to.
    PatternKey {
        group: Str [0..],
        pattern: Str [0..],
    }
}

structure! {
    ConsumerGroupMetadataValue {
        epoch: i32 [0..],
        /// Of the topics that the group subscribes to (KIP-1101).
        metadata_hash: i64 [0.., tag 0],
    }
}

structure! {
    ConsumerGroupMemberMetadataValue {
        instance_id: Option<Str> [0.., null 0..],
        rack_id: Option<Str> [0.., null 0..],
        client_id: Str [0..],
        client_host: Str [0..],
        subscribed_topic_names: Vec<Str> [0..],
        subscribed_topic_regex: Option<Str> [0.., null 0..],
        rebalance_timeout_ms: i32 [0..] = -1,
        server_assignor: Option<Str> [0.., null 0..],
        /// Of a member that speaks the classic protocol.
        classic_member_metadata: Option<ClassicMemberMetadata> [0.., tag 0, null 0..],
    }
}

structure! {
    ClassicMemberMetadata {
        session_timeout_ms: i32 [0..],
        supported_protocols: Vec<ClassicProtocol> [0..],
    }
}

structure! {
    ClassicProtocol {
        name: Str [0..],
        metadata: Bytes [0..],
    }
}

structure! {
    ConsumerGroupTargetAssignmentMetadataValue {
        assignment_epoch: i32 [0..],
        /// When it was computed, in milliseconds since 1970 (KIP-1263).
        assignment_timestamp: i64 [0.., tag 0],
    }
}

structure! {
    ConsumerGroupTargetAssignmentMemberValue {
        topic_partitions: Vec<TargetPartitions> [0..],
    }
}

structure! {
    TargetPartitions {
        topic_id: Uuid [0..],
        partitions: Vec<i32> [0..],
    }
}

structure! {
    ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch: i32 [0..],
        previous_member_epoch: i32 [0..],
        /// 0 stable, 1 has to give partitions up, 2 waits for partitions of others.
        state: i8 [0..],
        assigned_partitions: Vec<CurrentPartitions> [0..],
        partitions_pending_revocation: Vec<CurrentPartitions> [0..],
    }
}

structure! {
    CurrentPartitions {
        topic_id: Uuid [0..],
        partitions: Vec<i32> [0..],
        /// When each came to the member: as long as `partitions`, or null in old logs.
        assignment_epochs: Option<Vec<i32>> [0.., tag 0, null 0..],
    }
}

structure! {
    ConsumerGroupRegularExpressionValue {
        topics: Vec<Str> [0..],
        /// Of the metadata it was resolved against.
        version: i64 [0..],
        /// When, in milliseconds since 1970.
        timestamp: i64 [0..],
    }
}

macro_rules! values {
    ($($value:ident)*) => { $(
        impl $value {
            pub fn decode(bytes: Bytes) -> Result<Self, DecodeError> {
                decode(bytes, VALUE_VERSION, VALUE_VERSION)
            }

            #[must_use]
            pub fn encode(&self) -> Bytes {
                encode(VALUE_VERSION, self, VALUE_VERSION, true)
            }
        }
    )* };
}

values! {
    ConsumerGroupMetadataValue
    ConsumerGroupMemberMetadataValue
    ConsumerGroupTargetAssignmentMetadataValue
    ConsumerGroupTargetAssignmentMemberValue
    ConsumerGroupCurrentMemberAssignmentValue
    ConsumerGroupRegularExpressionValue
}

impl Key {
    /// Whether it is about a group of the consumer protocol, and about which.
    #[must_use]
    pub fn consumer_group(&self) -> Option<&Str> {
        match self {
            Key::ConsumerGroup(key) | Key::PartitionMetadata(key) | Key::TargetEpoch(key) => {
                Some(&key.group)
            }
            Key::Member(key) | Key::Target(key) | Key::Current(key) => Some(&key.group),
            Key::Pattern(key) => Some(&key.group),
            Key::Offset(_) | Key::Group(_) | Key::Other(_) => None,
        }
    }
}

/// All values have one version, a flexible one.
const VALUE_VERSION: i16 = 0;
