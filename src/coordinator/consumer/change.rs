//! One fact about a group of the consumer protocol, as its log has it: what a verb decides, and
//! the only thing that changes a group, live and after a restart alike.

use bytes::Bytes;
use protocol::group_records::{
    ConsumerGroupCurrentMemberAssignmentValue, ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue, ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue, ConsumerGroupTargetAssignmentMetadataValue, GroupKey,
    Key, MemberKey, PatternKey,
};
use protocol::{DecodeError, Str};

use crate::world::Record;

/// Without a value, what it names is gone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Group(Option<ConsumerGroupMetadataValue>),
    Member(Str, Option<ConsumerGroupMemberMetadataValue>),
    TargetEpoch(Option<ConsumerGroupTargetAssignmentMetadataValue>),
    Target(Str, Option<ConsumerGroupTargetAssignmentMemberValue>),
    Current(Str, Option<ConsumerGroupCurrentMemberAssignmentValue>),
    Pattern(Str, Option<ConsumerGroupRegularExpressionValue>),
}

impl Change {
    /// As it is written down.
    pub fn record(&self, group: &Str) -> Record {
        let of_group = || GroupKey { group: group.clone() };
        let of_member = |member: &Str| MemberKey { group: group.clone(), member: member.clone() };
        let (key, value) = match self {
            Change::Group(value) => {
                (Key::ConsumerGroup(of_group()), value.as_ref().map(|it| it.encode()))
            }
            Change::Member(member, value) => {
                (Key::Member(of_member(member)), value.as_ref().map(|it| it.encode()))
            }
            Change::TargetEpoch(value) => {
                (Key::TargetEpoch(of_group()), value.as_ref().map(|it| it.encode()))
            }
            Change::Target(member, value) => {
                (Key::Target(of_member(member)), value.as_ref().map(|it| it.encode()))
            }
            Change::Current(member, value) => {
                (Key::Current(of_member(member)), value.as_ref().map(|it| it.encode()))
            }
            Change::Pattern(pattern, value) => {
                let key = PatternKey { group: group.clone(), pattern: pattern.clone() };
                (Key::Pattern(key), value.as_ref().map(|it| it.encode()))
            }
        };
        Record { key: key.encode(), value }
    }

    /// What a record of the log says; none where it says nothing that counts today.
    pub fn read(key: &Key, value: Option<Bytes>) -> Result<Option<Change>, DecodeError> {
        macro_rules! decoded {
            ($of:ident) => {
                value.map($of::decode).transpose()?
            };
        }
        Ok(Some(match key {
            Key::ConsumerGroup(_) => Change::Group(decoded!(ConsumerGroupMetadataValue)),
            Key::Member(key) => {
                Change::Member(key.member.clone(), decoded!(ConsumerGroupMemberMetadataValue))
            }
            Key::TargetEpoch(_) => {
                Change::TargetEpoch(decoded!(ConsumerGroupTargetAssignmentMetadataValue))
            }
            Key::Target(key) => Change::Target(
                key.member.clone(),
                decoded!(ConsumerGroupTargetAssignmentMemberValue),
            ),
            Key::Current(key) => Change::Current(
                key.member.clone(),
                decoded!(ConsumerGroupCurrentMemberAssignmentValue),
            ),
            Key::Pattern(key) => {
                Change::Pattern(key.pattern.clone(), decoded!(ConsumerGroupRegularExpressionValue))
            }
            Key::PartitionMetadata(_) | Key::Offset(_) | Key::Group(_) | Key::Other(_) => {
                return Ok(None);
            }
        }))
    }

    /// It says that something exists, so that a group which is not known has to.
    pub fn creates(&self) -> bool {
        match self {
            Change::Group(value) => value.is_some(),
            Change::Member(_, value) => value.is_some(),
            Change::TargetEpoch(value) => value.is_some(),
            Change::Target(_, value) => value.is_some(),
            Change::Current(_, value) => value.is_some(),
            Change::Pattern(_, value) => value.is_some(),
        }
    }
}
