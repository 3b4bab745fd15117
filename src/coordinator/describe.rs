//! How groups are shown: DescribeGroups and ListGroups.

use protocol::messages::describe_groups::{DescribedGroup, DescribedGroupMember};
use protocol::messages::list_groups::ListedGroup;
use protocol::{ErrorCode, Str};

use crate::classic::{ClassicGroup, State};
use crate::coordinator::Coordinator;

impl Coordinator {
    pub fn describe(&self, id: &Str, version: i16) -> DescribedGroup {
        let group_id = id.clone();
        if let Some(group) = self.groups.get(id) {
            return describe(group);
        }
        let mut dead =
            DescribedGroup { group_id, group_state: "Dead".into(), ..DescribedGroup::default() };
        if version >= FIRST_VERSION_THAT_SAYS_MISSING {
            dead.error_code = ErrorCode::GROUP_ID_NOT_FOUND;
            dead.error_message = Some(Str::from(format!("there is no classic group {id}")));
        }
        dead
    }

    /// The groups in one of these states and of one of these types; empty lists ask for all.
    pub fn list(&self, states: &[Str], types: &[Str]) -> Vec<ListedGroup> {
        let wanted = |filter: &[Str], word: &str| {
            filter.is_empty() || filter.iter().any(|it| it.trim().eq_ignore_ascii_case(word))
        };
        let of_consumers = self.consumers.values().filter(|_| wanted(types, CONSUMER));
        let of_consumers = of_consumers.map(|group| (&group.id, group.state_name()));
        let of_consumers = of_consumers.filter(|(_, state)| wanted(states, state));
        let of_consumers = of_consumers.map(|(id, state)| ListedGroup {
            group_id: id.clone(),
            protocol_type: CONSUMER.into(),
            group_state: state.into(),
            group_type: CONSUMER.into(),
        });
        if !wanted(types, CLASSIC) {
            return of_consumers.collect();
        }
        let grouped = self
            .groups
            .values()
            .map(|group| (&group.id, group.state, group.protocol_type.clone().unwrap_or_default()));
        let all = grouped.filter(|(_, state, _)| wanted(states, state.name()));
        all.map(|(id, state, protocol_type)| ListedGroup {
            group_id: id.clone(),
            protocol_type,
            group_state: state.name().into(),
            group_type: CLASSIC.into(),
        })
        .chain(of_consumers)
        .collect()
    }
}

fn describe(group: &ClassicGroup) -> DescribedGroup {
    let stable = group.state == State::Stable;
    let protocol = group.protocol.clone().filter(|_| stable);
    let members = group.members.values().map(|member| DescribedGroupMember {
        member_id: member.id.clone(),
        group_instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        member_metadata: protocol.as_deref().map(|it| member.metadata(it)).unwrap_or_default(),
        member_assignment: if stable { member.assignment.clone() } else { Default::default() },
    });
    DescribedGroup {
        group_id: group.id.clone(),
        group_state: group.state.name().into(),
        protocol_type: group.protocol_type.clone().unwrap_or_default(),
        members: members.collect(),
        protocol_data: protocol.unwrap_or_default(),
        ..DescribedGroup::default()
    }
}

const FIRST_VERSION_THAT_SAYS_MISSING: i16 = 6;
const CONSUMER: &str = "consumer";
const CLASSIC: &str = "classic";
