//! A coordinator in virtual time, with its log.

use std::collections::BTreeMap;

use bytes::Bytes;
use coordinator::{
    Assignor, Caller, ConsumerGroupSettings, Coordinator, GroupSettings, GroupTiming, Migration,
    Output, Record, Reply, Sweep, Ticket, World,
};
use metadata::Image;
use protocol::messages::heartbeat::HeartbeatRequest;
use protocol::messages::join_group::{
    JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse,
};
use protocol::messages::leave_group::MemberIdentity;
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use protocol::messages::sync_group::{
    SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse,
};
use protocol::{ErrorCode, Str};

pub struct Bench {
    pub coordinator: Coordinator,
    pub now_ms: i64,
    /// How far the clock of what is written down was set back.
    pub set_back_ms: i64,
    pub settings: GroupSettings,
    pub image: Image,
    pub log: Vec<Record>,
    pub replies: BTreeMap<Ticket, Reply>,
    tickets: u64,
}

pub fn text(text: &str) -> Str {
    Str::from(text.to_owned())
}

impl Bench {
    pub fn new() -> Bench {
        Bench {
            coordinator: Coordinator::default(),
            now_ms: 1_000_000,
            set_back_ms: 0,
            settings: GroupSettings {
                initial_rebalance_delay_ms: 0,
                session_timeout_min_ms: 1_000,
                session_timeout_max_ms: 60_000,
                members_max: 100,
                offset_metadata_chars_max: 10,
                offsets_retention_ms: 100_000,
                record_bytes_max: 10_000,
                consumer: consumer_settings(),
            },
            image: Image::default(),
            log: Vec::new(),
            replies: BTreeMap::new(),
            tickets: 0,
        }
    }

    pub fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// Every verb comes out in pieces of bounded length.
    pub fn act<R>(&mut self, verb: impl FnOnce(&mut Coordinator, &World<'_>) -> (Output, R)) -> R {
        let (settings, image) = (self.settings.clone(), self.image.clone());
        self.tickets += 1;
        let world = World {
            now_ms: self.now_ms,
            wall_ms: self.now_ms - self.set_back_ms,
            random: u128::from(self.tickets) << 100 | u128::from(self.tickets),
            settings: &settings,
            image: &image,
        };
        let (output, answer) = verb(&mut self.coordinator, &world);
        let records = output.records.len();
        assert!(records <= RECORDS_AT_A_TIME, "{records} records in one go");
        self.log.extend(output.records);
        for (ticket, reply) in output.replies {
            let again = self.replies.insert(ticket, reply);
            assert!(again.is_none(), "{ticket:?} is answered twice");
        }
        answer
    }

    /// Lets time pass, ringing every alarm when it is due.
    pub fn pass(&mut self, ms: i64) {
        let end_ms = self.now_ms + ms;
        while let Some(wake_ms) = self.coordinator.poll_wake().filter(|wake| *wake <= end_ms) {
            self.now_ms = self.now_ms.max(wake_ms);
            self.act(|it, world| (it.on_time(world), ()));
        }
        self.now_ms = end_ms;
    }

    pub fn join(&mut self, version: i16, request: &JoinGroupRequest) -> Ticket {
        let ticket = self.ticket();
        let caller = Caller { client_id: text("client"), client_host: text("/127.0.0.1") };
        self.act(|it, world| (it.join_group(world, &caller, request, version, ticket), ()));
        ticket
    }

    pub fn sync(&mut self, request: &SyncGroupRequest) -> Ticket {
        let ticket = self.ticket();
        self.act(|it, world| (it.sync_group(world, request, ticket), ()));
        ticket
    }

    pub fn joined(&mut self, ticket: Ticket) -> Option<JoinGroupResponse> {
        match self.replies.remove(&ticket)? {
            Reply::Join(answer) => Some(answer),
            _ => panic!("{ticket:?} is of a join"),
        }
    }

    pub fn synced(&mut self, ticket: Ticket) -> Option<SyncGroupResponse> {
        match self.replies.remove(&ticket)? {
            Reply::Sync(answer) => Some(answer),
            _ => panic!("{ticket:?} is of a sync"),
        }
    }

    /// A dynamic member of version 5 gets its id and joins with it.
    pub fn new_member(&mut self, group: &str) -> (Str, Ticket) {
        let ask = self.join(5, &joining(group, ""));
        let told = self.joined(ask).unwrap();
        assert_eq!(told.error_code, ErrorCode::MEMBER_ID_REQUIRED);
        let ticket = self.join(5, &joining(group, &told.member_id));
        (told.member_id, ticket)
    }

    /// A group of one, stable in its first generation.
    pub fn stable_group(&mut self, group: &str) -> Str {
        let (member, ticket) = self.new_member(group);
        self.pass(0);
        let joined = self.joined(ticket).unwrap();
        assert_eq!(joined.error_code, ErrorCode::NONE);
        let sync = self.sync(&syncing(group, &member, joined.generation_id, &[(&member, "all")]));
        assert_eq!(self.synced(sync).unwrap().assignment, "all");
        member
    }

    /// Begins to delete a group.
    pub fn delete(&mut self, group: &str) -> Ticket {
        let ticket = self.ticket();
        self.act(|it, world| (it.delete_group(world, &text(group), ticket), ()));
        ticket
    }

    pub fn deleted(&mut self, ticket: Ticket) -> Option<ErrorCode> {
        match self.replies.remove(&ticket)? {
            Reply::Deleted(outcome) => Some(outcome),
            _ => panic!("{ticket:?} is of a deletion"),
        }
    }

    /// One piece of what goes in pieces.
    pub fn go_on(&mut self) {
        self.act(|it, world| (it.on_time(world), ()));
    }

    pub fn beat(&mut self, group: &str, member: &Str, generation_id: i32) -> ErrorCode {
        let (group_id, member_id) = (text(group), member.clone());
        let request =
            HeartbeatRequest { group_id, member_id, generation_id, group_instance_id: None };
        self.act(|it, world| it.heartbeat(world, &request))
    }

    pub fn leave(&mut self, group: &str, member: &Str) -> ErrorCode {
        let who = MemberIdentity { member_id: member.clone(), ..MemberIdentity::default() };
        self.act(|it, world| it.leave_group(world, &text(group), &[who])).unwrap()[0]
    }

    pub fn commit(
        &mut self,
        group: &str,
        member: &str,
        generation: i32,
        (topic, partition, offset): (&str, i32, i64),
        metadata: &str,
    ) -> ErrorCode {
        let at = (topic, partition, offset);
        let request = committing(group, member, generation, at, metadata);
        match self.act(|it, world| it.commit_offsets(world, &request, 8)) {
            Ok(outcomes) => outcomes[0],
            Err(error) => error,
        }
    }

    pub fn committed(&self, group: &str, topic: &str, partition: i32) -> Option<i64> {
        self.coordinator.committed(group, topic, partition).map(|it| it.offset)
    }

    /// What a restart would find.
    pub fn replayed(&self) -> Coordinator {
        let mut again = Coordinator::default();
        for record in &self.log {
            again.replay(&record.key, record.value.as_deref()).unwrap();
        }
        again
    }

    pub fn check_replay(&self) {
        let replayed = self.replayed();
        let (mut state, live) = (replayed.durable_state(), self.coordinator.durable_state());
        // A group in the middle of a rebalance still has the record of the last one.
        let known = self.coordinator.list(&[], &[]);
        assert!(state.groups.keys().all(|id| known.iter().any(|it| it.group_id == *id)));
        state.groups.retain(|id, _| live.groups.contains_key(id));
        assert_eq!(state, live);
    }

    /// A whole sweep; in how many goes.
    pub fn expire(&mut self) -> usize {
        let (mut sweep, mut goes) = (Sweep::default(), 1);
        while let Some(next) = self.act(|it, world| it.expire(world, &sweep)) {
            sweep = next;
            goes += 1;
        }
        goes
    }

    pub fn restart(&mut self) {
        self.coordinator = self.replayed();
        self.replies.clear();
        self.act(|it, world| (it.on_loaded(world), ()));
    }
}

/// What one verb may write down: all of a piece, and then the end of a group.
const RECORDS_AT_A_TIME: usize = 2_100;

fn consumer_settings() -> ConsumerGroupSettings {
    let timing = |key, usual| GroupTiming { key, usual, least: 0, most: 60_000 };
    ConsumerGroupSettings {
        session_timeout_ms: timing("consumer.session.timeout.ms", 45_000),
        heartbeat_interval_ms: timing("consumer.heartbeat.interval.ms", 5_000),
        assignment_interval_ms: timing("consumer.assignment.interval.ms", 0),
        members_max: 100,
        assignors: vec![Assignor::Uniform, Assignor::Range],
        migration: Migration::Bidirectional,
        pattern_refresh_ms: 600_000,
    }
}

pub fn committing(
    group: &str,
    member: &str,
    epoch: i32,
    (topic, partition, offset): (&str, i32, i64),
    metadata: &str,
) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: text(group),
        generation_id_or_member_epoch: epoch,
        member_id: text(member),
        topics: vec![OffsetCommitRequestTopic {
            name: text(topic),
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: partition,
                committed_offset: offset,
                committed_metadata: Some(text(metadata)),
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    }
}

pub fn joining(group: &str, member: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: text(group),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 30_000,
        member_id: text(member),
        protocol_type: text("consumer"),
        protocols: vec![JoinGroupRequestProtocol {
            name: text("range"),
            // Version 0, one topic: "t".
            metadata: Bytes::from_static(b"\0\0\0\0\0\x01\0\x01t\0\0\0\0"),
        }],
        ..JoinGroupRequest::default()
    }
}

pub fn syncing(
    group: &str,
    member: &str,
    generation_id: i32,
    assignments: &[(&str, &str)],
) -> SyncGroupRequest {
    let each = assignments.iter().map(|(member, share)| SyncGroupRequestAssignment {
        member_id: text(member),
        assignment: Bytes::from((*share).to_owned()),
    });
    SyncGroupRequest {
        group_id: text(group),
        generation_id,
        member_id: text(member),
        assignments: each.collect(),
        ..SyncGroupRequest::default()
    }
}
