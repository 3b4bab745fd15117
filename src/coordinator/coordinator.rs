//! One partition of the topic of committed offsets: its groups, their offsets, their alarms.
//!
//! Verbs that answer at once return the answer; JoinGroup and SyncGroup answer by ticket. Group
//! errors come back as codes, for the handlers to place where the version wants them.

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::group_records::{
    GroupMetadataValue, Key, OffsetCommitKey, OffsetCommitValue, OffsetKey, OffsetValue,
    OffsetWriter,
};
use protocol::messages::heartbeat::HeartbeatRequest;
use protocol::messages::join_group::JoinGroupRequest;
use protocol::messages::leave_group::MemberIdentity;
use protocol::messages::offset_commit::OffsetCommitRequest;
use protocol::messages::sync_group::{SyncGroupRequest, SyncGroupResponse};
use protocol::{DecodeError, ErrorCode, Str};

use crate::classic::{ClassicGroup, Desk, Joining, State, record_key};
use crate::consumer::ConsumerGroup;
use crate::leaving::{Leaving, STILL_LEAVING};
use crate::offsets::{self, ByTopic, CommittedOffset, Offsets};
use crate::timers::{Alarm, Timers};
use crate::world::{Caller, Output, Record, Reply, Ticket, World};

/// The state of one partition.
#[derive(Debug, Default)]
pub struct Coordinator {
    /// An id is in one of these two.
    pub(crate) groups: BTreeMap<Str, ClassicGroup>,
    pub(crate) consumers: BTreeMap<Str, ConsumerGroup>,
    pub(crate) offsets: Offsets,
    pub(crate) timers: Timers,
    pub(crate) leaving: Leaving,
    /// Of the metadata that last brought new topics.
    pub(crate) newest_topics: i64,
}

/// What the log has to say, in one piece: to be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct DurableState {
    pub offsets: BTreeMap<Str, ByTopic>,
    pub groups: BTreeMap<Str, GroupMetadataValue>,
    pub consumers: Vec<Record>,
}

/// A record that says nothing that could be understood; it is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayError {
    Key(DecodeError),
    Value(DecodeError),
    /// Of a kind that is not known here.
    Unknown(i16),
}

impl std::fmt::Display for ReplayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReplayError::Key(why) => write!(f, "its key is damaged: {why}"),
            ReplayError::Value(why) => write!(f, "its value is damaged: {why}"),
            ReplayError::Unknown(kind) => write!(f, "records of kind {kind} are not known here"),
        }
    }
}

impl Coordinator {
    // ---- replay

    /// Takes one record of the log, in order.
    pub fn replay(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), ReplayError> {
        // Nearly all of them are committed offsets, and nearly all of those as they are written
        // today.
        if let Some(key) = OffsetKey::parse(key) {
            match value.map(OffsetValue::parse) {
                None => return self.replay_offset(key, None),
                Some(Some(value)) => return self.replay_offset(key, Some(value)),
                Some(None) => {}
            }
        }
        let value = value.map(Bytes::copy_from_slice);
        let key = Key::decode(Bytes::copy_from_slice(key)).map_err(ReplayError::Key)?;
        if let Some(id) = key.consumer_group() {
            return self.replay_consumer(&key, id, value);
        }
        match key {
            Key::Offset(key) => {
                let value = value.map(OffsetCommitValue::decode).transpose();
                let value = value.map_err(ReplayError::Value)?;
                return self.replay_offset((&key).into(), value.as_ref().map(OffsetValue::from));
            }
            Key::Group(key) => match value {
                Some(value) => {
                    let value = GroupMetadataValue::decode(value).map_err(ReplayError::Value)?;
                    let id = key.group.detach();
                    self.consumers.remove(&id);
                    self.groups.insert(id.clone(), ClassicGroup::from_record(id, value));
                }
                None => drop(self.groups.remove(&key.group)),
            },
            Key::Other(kind) => return Err(ReplayError::Unknown(kind)),
            key => debug_assert!(key.consumer_group().is_some(), "{key:?} was seen to"),
        }
        Ok(())
    }

    fn replay_offset(
        &mut self,
        key: OffsetKey<'_>,
        value: Option<OffsetValue<'_>>,
    ) -> Result<(), ReplayError> {
        if value.is_some() && !self.is_known(key.group) {
            // A group that only ever commits has no record of its own.
            let id = Str::from(key.group.to_owned());
            self.groups.insert(id.clone(), ClassicGroup::new(id));
        }
        self.offsets.replay(key, value);
        Ok(())
    }

    /// Whether somebody could be a member already.
    fn may_have_members(&self, id: &Str) -> bool {
        self.groups.contains_key(id) || self.has_members(id)
    }

    fn is_known(&self, id: &str) -> bool {
        self.groups.contains_key(id) || self.consumers.contains_key(id)
    }

    /// The log has been replayed to its end.
    pub fn on_loaded(&mut self, world: &World<'_>) -> Output {
        let mut output = Output::default();
        for group in self.groups.values_mut() {
            group.on_loaded(&mut Desk { world, timers: &mut self.timers, output: &mut output });
        }
        // Topics may have come while nobody looked.
        self.newest_topics = world.image.offset() as i64;
        for group in self.consumers.values_mut() {
            group.on_loaded(world, &mut self.timers);
        }
        output
    }

    // ---- time

    /// When `on_time` wants to be called next, by the clock of `World::now_ms`.
    pub fn poll_wake(&self) -> Option<i64> {
        match self.leaving.is_empty() {
            true => self.timers.next_due(),
            // The next piece is due now.
            false => Some(i64::MIN),
        }
    }

    pub fn on_time(&mut self, world: &World<'_>) -> Output {
        let mut output = Output::default();
        while let Some(alarm) = self.timers.pop_due(world.now_ms) {
            if self.on_consumer_alarm(world, &alarm, &mut output) {
                continue;
            }
            let Some(group) = self.groups.get_mut(alarm.group()) else { continue };
            let desk = &mut Desk { world, timers: &mut self.timers, output: &mut output };
            match &alarm {
                Alarm::Session(_, member) => group.on_session_alarm(member, desk),
                Alarm::Join(_) => group.on_join_alarm(desk),
                Alarm::Sync(_) => group.on_sync_alarm(desk),
                // Of a consumer group that is no more.
                Alarm::Revoke(..) | Alarm::Rejoin(..) | Alarm::Fetch(..) | Alarm::Resolve(_) => {}
            }
        }
        self.let_some_go(world, &mut output);
        output
    }

    // ---- members

    pub fn join_group(
        &mut self,
        world: &World<'_>,
        caller: &Caller,
        request: &JoinGroupRequest,
        version: i16,
        ticket: Ticket,
    ) -> Output {
        let mut output = Output::default();
        let joining = Joining { caller, request, version, ticket };
        let settings = world.settings;
        let sessions = settings.session_timeout_min_ms..=settings.session_timeout_max_ms;
        let refused = if request.group_id.is_empty() {
            Some(ErrorCode::INVALID_GROUP_ID)
        } else if !sessions.contains(&request.session_timeout_ms) {
            Some(ErrorCode::INVALID_SESSION_TIMEOUT)
        } else if self.leaving.has_group(&request.group_id) {
            Some(STILL_LEAVING)
        } else if !request.member_id.is_empty() && !self.may_have_members(&request.group_id) {
            Some(ErrorCode::UNKNOWN_MEMBER_ID)
        } else {
            None
        };
        let desk = &mut Desk { world, timers: &mut self.timers, output: &mut output };
        if let Some(error) = refused {
            joining.refuse(&request.member_id, error, desk);
            return output;
        }
        if self.classic_join(world, &joining, &mut output) {
            return output;
        }
        let desk = &mut Desk { world, timers: &mut self.timers, output: &mut output };
        if let Some(group) = self.groups.get_mut(&request.group_id) {
            group.join(&joining, desk);
            return output;
        }
        let mut group = ClassicGroup::new(request.group_id.detach());
        group.join(&joining, desk);
        // A join that came to nothing leaves no group behind.
        if group.is_in_use() {
            self.groups.insert(group.id.clone(), group);
        }
        output
    }

    pub fn sync_group(
        &mut self,
        world: &World<'_>,
        request: &SyncGroupRequest,
        ticket: Ticket,
    ) -> Output {
        let mut output = Output::default();
        if self.classic_sync(world, request, ticket, &mut output) {
            return output;
        }
        let desk = &mut Desk { world, timers: &mut self.timers, output: &mut output };
        let error_code = match self.groups.get_mut(&request.group_id) {
            _ if request.group_id.is_empty() => ErrorCode::INVALID_GROUP_ID,
            None => ErrorCode::UNKNOWN_MEMBER_ID,
            Some(group) => {
                group.sync(request, ticket, desk);
                return output;
            }
        };
        let answer = SyncGroupResponse { error_code, ..SyncGroupResponse::default() };
        output.replies.push((ticket, Reply::Sync(answer)));
        output
    }

    pub fn heartbeat(
        &mut self,
        world: &World<'_>,
        request: &HeartbeatRequest,
    ) -> (Output, ErrorCode) {
        let mut output = Output::default();
        if let Some(beat) = self.classic_heartbeat(world, request, &mut output) {
            return (output, beat.err().unwrap_or_default());
        }
        let desk = &mut Desk { world, timers: &mut self.timers, output: &mut output };
        let beat = match self.groups.get_mut(&request.group_id) {
            _ if request.group_id.is_empty() => Err(ErrorCode::INVALID_GROUP_ID),
            None => Err(ErrorCode::UNKNOWN_MEMBER_ID),
            Some(group) => group.heartbeat(request, desk),
        };
        (output, beat.err().unwrap_or_default())
    }

    /// One outcome for each member, or one for all of them.
    pub fn leave_group(
        &mut self,
        world: &World<'_>,
        group: &Str,
        members: &[MemberIdentity],
    ) -> (Output, Result<Vec<ErrorCode>, ErrorCode>) {
        let mut output = Output::default();
        if group.is_empty() {
            return (output, Err(ErrorCode::INVALID_GROUP_ID));
        }
        if let Some(outcomes) = self.classic_leave(world, group, members, &mut output) {
            return (output, Ok(outcomes));
        }
        let Some(found) = self.groups.get_mut(group) else {
            return (output, Ok(vec![ErrorCode::UNKNOWN_MEMBER_ID; members.len()]));
        };
        let desk = &mut Desk { world, timers: &mut self.timers, output: &mut output };
        let outcomes = found.leave(members, desk);
        (output, Ok(outcomes))
    }

    // ---- offsets

    /// One outcome for each partition in the order of the request, or one for all of them.
    pub fn commit_offsets(
        &mut self,
        world: &World<'_>,
        request: &OffsetCommitRequest,
        version: i16,
    ) -> (Output, Result<Vec<ErrorCode>, ErrorCode>) {
        let mut output = Output::default();
        if let Err(error) = self.check_commit(world, request, version, &mut output) {
            return (output, Err(error));
        }
        let group = request.group_id.clone();
        let count = request.topics.iter().map(|topic| topic.partitions.len()).sum();
        let mut outcomes = Vec::with_capacity(count);
        output.records.reserve(count);
        let mut writer = OffsetWriter::new(count);
        for topic in &request.topics {
            let (group, topic_name) = (group.clone(), topic.name.clone());
            let mut key = OffsetCommitKey { group, topic: topic_name, partition: 0 };
            if self.is_leaving(&topic.name) {
                outcomes.extend(topic.partitions.iter().map(|_| STILL_LEAVING));
                continue;
            }
            for partition in &topic.partitions {
                let metadata = partition.committed_metadata.clone().unwrap_or_default();
                let chars = metadata.encode_utf16().count();
                if chars > world.settings.offset_metadata_chars_max {
                    outcomes.push(ErrorCode::OFFSET_METADATA_TOO_LARGE);
                    continue;
                }
                let committed = CommittedOffset {
                    offset: partition.committed_offset,
                    leader_epoch: partition.committed_leader_epoch,
                    metadata,
                    commit_timestamp: world.wall_ms,
                    expire_timestamp: match request.retention_time_ms {
                        -1 => -1,
                        kept_ms => world.wall_ms.saturating_add(kept_ms),
                    },
                };
                key.partition = partition.partition_index;
                output.records.push(offsets::commit(&mut writer, &key, committed));
                outcomes.push(ErrorCode::NONE);
            }
        }
        self.replay_own(&output.records);
        (output, Ok(outcomes))
    }

    fn check_commit(
        &mut self,
        world: &World<'_>,
        request: &OffsetCommitRequest,
        version: i16,
        output: &mut Output,
    ) -> Result<(), ErrorCode> {
        let generation = request.generation_id_or_member_epoch;
        if self.leaving.has_group(&request.group_id) {
            return Err(STILL_LEAVING);
        }
        if let Some(group) = self.consumers.get(&request.group_id) {
            return group.check_commit(request, version, world.image);
        }
        let desk = &mut Desk { world, timers: &mut self.timers, output };
        match self.groups.get_mut(&request.group_id) {
            Some(group) => {
                let instance = request.group_instance_id.as_ref();
                group.check_commit(&request.member_id, instance, generation, desk)
            }
            // Tools, and clients that assign partitions by themselves.
            None if generation < 0 => Ok(()),
            None if version >= FIRST_VERSION_OF_CONSUMER_GROUPS => {
                Err(ErrorCode::GROUP_ID_NOT_FOUND)
            }
            None => Err(ErrorCode::ILLEGAL_GENERATION),
        }
    }

    pub fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<&CommittedOffset> {
        self.offsets.get(group, topic, partition).filter(|_| !self.is_leaving(topic))
    }

    /// In which topics a group has committed anything.
    pub fn committed_topics(&self, group: &str) -> impl Iterator<Item = &Str> {
        let topics = self.offsets.of_group(group).into_iter().flatten();
        topics.map(|(topic, _)| topic).filter(|topic| !self.is_leaving(topic))
    }

    /// What a group has committed in a topic, by partition.
    pub fn committed_in(
        &self,
        group: &str,
        topic: &str,
    ) -> Option<&BTreeMap<i32, CommittedOffset>> {
        self.offsets.of_group(group)?.get(topic).filter(|_| !self.is_leaving(topic))
    }

    /// How many offsets are committed, of all groups together.
    pub fn offsets_count(&self) -> usize {
        self.offsets
            .iter()
            .map(|(_, topics)| topics.values().map(BTreeMap::len).sum::<usize>())
            .sum()
    }

    /// One outcome for each named partition, or one for all of them.
    pub fn delete_offsets(
        &mut self,
        group: &Str,
        named: &[(Str, i32)],
    ) -> (Output, Result<Vec<ErrorCode>, ErrorCode>) {
        let mut output = Output::default();
        let found = self.groups.get(group);
        let error = match found {
            _ if group.is_empty() => Some(ErrorCode::INVALID_GROUP_ID),
            None if !self.is_known(group) => Some(ErrorCode::GROUP_ID_NOT_FOUND),
            Some(group) if group.state != State::Empty && !group.is_of_consumers() => {
                Some(ErrorCode::NON_EMPTY_GROUP)
            }
            _ => None,
        };
        if let Some(error) = error {
            return (output, Err(error));
        }
        let mut outcomes = Vec::with_capacity(named.len());
        let mut writer = OffsetWriter::new(named.len());
        for (topic, partition) in named {
            if self.is_subscribed(group, topic) {
                outcomes.push(ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
                continue;
            }
            if self.offsets.get(group, topic, *partition).is_some() {
                output.records.push(offsets::tombstone(&mut writer, group, topic, *partition));
            }
            outcomes.push(ErrorCode::NONE);
        }
        self.replay_own(&output.records);
        (output, Ok(outcomes))
    }

    // ---- groups

    pub(crate) fn has_members(&self, id: &Str) -> bool {
        self.consumers.get(id).is_some_and(|group| !group.members.is_empty())
    }

    fn is_subscribed(&self, id: &Str, topic: &str) -> bool {
        self.groups.get(id).is_some_and(|it| it.is_subscribed_to(topic))
            || self.consumers.get(id).is_some_and(|it| it.is_subscribed_to(topic))
    }

    pub(crate) fn bury(&mut self, world: &World<'_>, group: &Str, output: &mut Output) {
        self.bury_consumer(group, output);
        let Some(found) = self.groups.get(group) else { return };
        found.silence(&mut Desk { world, timers: &mut self.timers, output });
        output.records.push(Record { key: record_key(group), value: None });
    }

    /// The one way in which committed offsets, and the end of a group, take effect.
    pub(crate) fn replay_own(&mut self, records: &[Record]) {
        for record in records {
            let replayed = self.replay(&record.key, record.value.as_deref());
            assert!(replayed.is_ok(), "a record of our own: {replayed:?}");
        }
    }

    /// What a restart has to find again: the offsets, of every classic group that is not in the
    /// middle of a rebalance its record, and all records of consumer groups.
    pub fn durable_state(&self) -> DurableState {
        let settled = self.groups.iter().filter(|(_, group)| {
            matches!(group.state, State::Stable | State::Empty) && group.generation > 0
        });
        let consumers = self.consumers.values();
        DurableState {
            offsets: self.offsets.iter().map(|(id, it)| (id.clone(), it.clone())).collect(),
            groups: settled.map(|(id, group)| (id.clone(), group.to_record())).collect(),
            consumers: consumers
                .flat_map(|group| group.changes().into_iter().map(|it| it.record(&group.id)))
                .collect(),
        }
    }
}

const FIRST_VERSION_OF_CONSUMER_GROUPS: i16 = 9;
