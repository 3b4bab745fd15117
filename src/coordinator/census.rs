//! How the groups of a partition are counted for monitoring: who they are, how many members they
//! have and need, and how far they have come. Read in pages, so that nobody waits long for it.

use std::ops::Bound;

use bytes::{Buf, Bytes};
use protocol::Str;

use crate::classic::{ClassicGroup, State};
use crate::consumer::ConsumerGroup;
use crate::coordinator::Coordinator;

/// One group as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupCount {
    pub id: Str,
    /// `classic`, or the protocol's own word.
    pub kind: &'static str,
    pub state: &'static str,
    pub members: usize,
    /// Members that were assigned nothing; known between rebalances, of consumers only.
    pub idle: usize,
    /// As far as it can be read from what members said.
    pub topics: Vec<Str>,
    /// Topic, partition, committed offset.
    pub committed: Vec<(Str, i32, i64)>,
}

impl Coordinator {
    /// At most `limit` groups in the order of their ids, from the first behind `after` on.
    pub fn census(&self, after: Option<&Str>, limit: usize) -> Vec<GroupCount> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let range = (from, Bound::Unbounded);
        let classic = self.groups.range::<Str, _>(range).take(limit);
        let consumers = self.consumers.range::<Str, _>(range).take(limit);
        let mut page: Vec<GroupCount> = classic
            .map(|(id, group)| self.count(id, group))
            .chain(consumers.map(|(id, group)| self.count_consumers(id, group)))
            .collect();
        page.sort_by(|one, other| one.id.cmp(&other.id));
        page.truncate(limit);
        page
    }

    fn count_consumers(&self, id: &Str, group: &ConsumerGroup) -> GroupCount {
        let state = group.state_name();
        let members = group.members.values();
        let idle = members.filter(|it| state == "Stable" && it.assigned.is_empty()).count();
        GroupCount {
            id: id.clone(),
            kind: "consumer",
            state,
            members: group.members.len(),
            idle,
            topics: group.subscribed_topics().cloned().collect(),
            committed: self.positions(id),
        }
    }

    fn count(&self, id: &Str, group: &ClassicGroup) -> GroupCount {
        let consumers = group.is_of_consumers() && group.state == State::Stable;
        let members = group.members.values();
        let idle = members.filter(|it| consumers && is_without_partitions(&it.assignment)).count();
        GroupCount {
            id: id.clone(),
            kind: "classic",
            state: group.state.name(),
            members: group.members.len(),
            idle,
            topics: group.subscription().into_iter().flatten().cloned().collect(),
            committed: self.positions(id),
        }
    }

    /// As far as it is shown: nothing of a group that goes, nor of topics that do.
    fn positions(&self, group: &Str) -> Vec<(Str, i32, i64)> {
        let mut positions = Vec::new();
        if self.is_group_leaving(group) {
            return positions;
        }
        for (topic, partitions) in self.offsets.of_group(group).into_iter().flatten() {
            if !self.is_leaving(topic) {
                let each = partitions.iter().map(|(&index, it)| (topic.clone(), index, it.offset));
                positions.extend(each);
            }
        }
        positions
    }
}

/// `version: i16, topics: [(name: string, partitions: [i32])]`, whatever follows. An assignment
/// that cannot be read is not called empty, but one without a byte is.
fn is_without_partitions(assignment: &Bytes) -> bool {
    let mut rest = assignment.clone();
    if rest.is_empty() {
        return true;
    }
    let (Ok(_version), Ok(topics)) = (rest.try_get_i16(), rest.try_get_i32()) else {
        return false;
    };
    for _ in 0..topics.max(0) {
        let Ok(name_bytes) = rest.try_get_i16() else { return false };
        let name_bytes = usize::try_from(name_bytes).unwrap_or(0);
        if name_bytes > rest.len() {
            return false;
        }
        rest.advance(name_bytes);
        match rest.try_get_i32() {
            Ok(0) => {}
            _ => return false,
        }
    }
    true
}
