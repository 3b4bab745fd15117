//! What goes in pieces, however much there is of it: groups that are deleted with their offsets,
//! and the offsets of topics that are no more.
//!
//! Law: a piece is a decision like any other, and between two of them anything else is decided.
//! So until the last piece nobody joins, reads or commits to a group that goes, nobody commits to a
//! topic that goes, and what is left of one is not shown: whatever may come under the same name
//! comes after the end of what was there before.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Bound;

use protocol::group_records::OffsetWriter;
use protocol::{ErrorCode, Str};

use crate::classic::State;
use crate::coordinator::Coordinator;
use crate::offsets::{self, ByTopic};
use crate::world::{Output, Record, Reply, Ticket, World};

/// What goes, the one whose turn it is first.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    queue: VecDeque<Going>,
    /// How many deletions of groups have begun, and which were the latest.
    begun: u64,
    latest: VecDeque<Str>,
}

#[derive(Debug)]
enum Going {
    Group { id: Str, ticket: Ticket },
    Topics { names: BTreeSet<Str>, next: Option<Next> },
}

/// The group that is looked at next, and from which topic on.
#[derive(Debug)]
struct Next {
    group: Str,
    topic: Str,
}

impl Leaving {
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn has_group(&self, id: &str) -> bool {
        self.queue.iter().any(|it| matches!(it, Going::Group { id: going, .. } if **going == *id))
    }

    fn begin_group(&mut self, id: Str) {
        self.begun += 1;
        if self.latest.len() == LATEST_MAX {
            self.latest.pop_front();
        }
        self.latest.push_back(id);
    }

    pub fn has_topic(&self, name: &str) -> bool {
        self.queue
            .iter()
            .any(|it| matches!(it, Going::Topics { names, .. } if names.contains(name)))
    }
}

impl Coordinator {
    /// Deletes a group without members; answered when all of it is gone.
    pub fn delete_group(&mut self, world: &World<'_>, group: &Str, ticket: Ticket) -> Output {
        let mut output = Output::default();
        match self.check_deletion(group) {
            Err(error) => output.replies.push((ticket, Reply::Deleted(error))),
            Ok(()) => {
                self.leaving.begin_group(group.detach());
                if !self.delete_some(world, group, ticket, &mut output) {
                    let id = group.detach();
                    self.leaving.queue.push_back(Going::Group { id, ticket });
                }
            }
        }
        output
    }

    /// How many deletions of groups have begun.
    pub fn deletions_begun(&self) -> u64 {
        self.leaving.begun
    }

    /// Whether a deletion of this group may have begun after so many had: then what was read of it
    /// since, piece by piece, is perhaps a half.
    pub fn check_read(&self, group: &str, begun_before: u64) -> Result<(), ErrorCode> {
        let latest = &self.leaving.latest;
        let since = (self.leaving.begun - begun_before) as usize;
        let deleted = || latest.iter().rev().take(since).any(|id| **id == *group);
        match since > latest.len() || deleted() {
            true => Err(STILL_LEAVING),
            false => Ok(()),
        }
    }

    fn check_deletion(&self, group: &Str) -> Result<(), ErrorCode> {
        match self.groups.get(group) {
            _ if group.is_empty() => Err(ErrorCode::INVALID_GROUP_ID),
            _ if self.leaving.has_group(group) => Err(STILL_LEAVING),
            None if self.consumers.contains_key(group) => match self.has_members(group) {
                true => Err(ErrorCode::NON_EMPTY_GROUP),
                false => Ok(()),
            },
            Some(found) if found.state != State::Empty => Err(ErrorCode::NON_EMPTY_GROUP),
            Some(_) => Ok(()),
            None => Err(ErrorCode::GROUP_ID_NOT_FOUND),
        }
    }

    /// One piece of a group, with the last one the group itself; whether that was it.
    fn delete_some(
        &mut self,
        world: &World<'_>,
        group: &Str,
        ticket: Ticket,
        output: &mut Output,
    ) -> bool {
        let gone = self.offsets.tombstones(group, LEAVING_AT_A_TIME);
        self.take_effect(gone, output);
        if self.offsets.of_group(group).is_some() {
            return false;
        }
        let mut end = Output::default();
        self.bury(world, group, &mut end);
        output.replies.append(&mut end.replies);
        self.take_effect(end.records, output);
        output.replies.push((ticket, Reply::Deleted(ErrorCode::NONE)));
        true
    }

    /// Topics are gone: what was committed for them means nothing any more.
    pub fn on_topics_deleted(&mut self, names: BTreeSet<Str>) {
        match self.leaving.queue.back_mut() {
            _ if names.is_empty() => {}
            // Whoever asks for one of them does not walk along all deletions.
            Some(Going::Topics { names: waiting, next: None }) => waiting.extend(names),
            _ => self.leaving.queue.push_back(Going::Topics { names, next: None }),
        }
    }

    /// Whether offsets of this topic are those of one that is no more.
    pub(crate) fn is_leaving(&self, topic: &str) -> bool {
        !self.leaving.is_empty() && self.leaving.has_topic(topic)
    }

    pub(crate) fn is_group_leaving(&self, group: &str) -> bool {
        self.leaving.has_group(group)
    }

    /// One piece of what goes.
    pub(crate) fn let_some_go(&mut self, world: &World<'_>, output: &mut Output) {
        let Some(mut going) = self.leaving.queue.pop_front() else { return };
        let done = match &mut going {
            Going::Group { id, ticket } => self.delete_some(world, id, *ticket, output),
            Going::Topics { names, next } => {
                let (gone, more) = self.of_topics(names, next.as_ref());
                self.take_effect(gone, output);
                *next = more;
                next.is_none()
            }
        };
        if !done {
            self.leaving.queue.push_front(going);
        }
    }

    /// The next tombstones of topics, and where to go on.
    fn of_topics(&self, names: &BTreeSet<Str>, next: Option<&Next>) -> (Vec<Record>, Option<Next>) {
        let (mut records, mut writer) = (Vec::new(), OffsetWriter::new(TOMBSTONES_EXPECTED));
        let mut room = LEAVING_AT_A_TIME;
        for (group, topics) in self.offsets.from(next.map(|it| &it.group)) {
            let go_on = |topic: &Str| Some(Next { group: group.clone(), topic: topic.clone() });
            if room == 0 {
                return (records, go_on(&Str::EMPTY));
            }
            room -= 1;
            let first = next.filter(|it| it.group == *group).map(|it| &it.topic);
            for topic in either(topics, names, first) {
                if room == 0 {
                    return (records, go_on(topic));
                }
                room -= 1;
                let Some(partitions) = topics.get(topic).filter(|_| names.contains(topic)) else {
                    continue;
                };
                let each = partitions.keys().take(room);
                let gone = each.map(|&it| offsets::tombstone(&mut writer, group, topic, it));
                records.extend(gone);
                if partitions.len() > room {
                    return (records, go_on(topic));
                }
                room -= partitions.len();
            }
        }
        (records, None)
    }

    fn take_effect(&mut self, records: Vec<Record>, output: &mut Output) {
        self.replay_own(&records);
        match output.records.is_empty() {
            true => output.records = records,
            false => output.records.extend(records),
        }
    }
}

/// From `first` on those of one of the two, whichever are fewer: all that are in both are there.
fn either<'a>(
    topics: &'a ByTopic,
    names: &'a BTreeSet<Str>,
    first: Option<&Str>,
) -> impl Iterator<Item = &'a Str> {
    let range = (first.map_or(Bound::Unbounded, Bound::Included), Bound::Unbounded);
    let fewer_names = names.len() <= topics.len();
    let names = fewer_names.then(|| names.range::<Str, _>(range));
    let topics = (!fewer_names).then(|| topics.range::<Str, _>(range));
    let topics = topics.into_iter().flatten().map(|(name, _)| name);
    names.into_iter().flatten().chain(topics)
}

/// What a group or a topic that is being deleted is asked for: a client asks again.
pub(crate) const STILL_LEAVING: ErrorCode = ErrorCode::COORDINATOR_LOAD_IN_PROGRESS;
/// Deletions of groups that whoever reads another one meanwhile can tell from one of his own.
const LATEST_MAX: usize = 100;
/// Offsets, groups and topics that are looked at in one go.
const LEAVING_AT_A_TIME: usize = 2000;
/// Room for as many is made at first where it is not known how many there are.
const TOMBSTONES_EXPECTED: usize = 16;
