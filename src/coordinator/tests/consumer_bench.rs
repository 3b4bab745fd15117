//! Honest members of the consumer protocol: each says what it owns, gives up what it is told to,
//! and checks that nobody else owns it.

use std::collections::{BTreeMap, BTreeSet};

use coordinator::Caller;
use protocol::messages::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions,
};
use protocol::{ErrorCode, Str, Uuid};

use crate::bench::{Bench, text};

pub type Share = BTreeSet<(Uuid, i32)>;

/// A member as far as it knows.
#[derive(Clone, Debug)]
pub struct Consumer {
    pub group: Str,
    pub id: Str,
    pub instance: Option<Str>,
    pub topics: Vec<Str>,
    pub pattern: Option<Str>,
    pub assignor: Option<Str>,
    pub epoch: i32,
    pub owned: Share,
    /// An answer was lost: the next request says everything, and so does its answer.
    pub lost: bool,
}

impl Consumer {
    pub fn new(id: &str, topics: &[&str]) -> Consumer {
        Consumer {
            group: text("g"),
            id: text(id),
            instance: None,
            topics: topics.iter().map(|it| text(it)).collect(),
            pattern: None,
            assignor: None,
            epoch: 0,
            owned: Share::new(),
            lost: false,
        }
    }

    pub fn of_instance(id: &str, instance: &str, topics: &[&str]) -> Consumer {
        Consumer { instance: Some(text(instance)), ..Consumer::new(id, topics) }
    }

    /// What it would send now: everything when it joins or missed an answer, else only what it
    /// owns.
    pub fn request(&self) -> ConsumerGroupHeartbeatRequest {
        let whole = self.epoch == 0 || self.lost;
        ConsumerGroupHeartbeatRequest {
            group_id: self.group.clone(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            instance_id: self.instance.clone(),
            rebalance_timeout_ms: if whole { 30_000 } else { -1 },
            subscribed_topic_names: whole.then(|| self.topics.clone()),
            subscribed_topic_regex: self.pattern.clone().filter(|_| whole),
            server_assignor: self.assignor.clone().filter(|_| whole),
            topic_partitions: Some(listed(&self.owned)),
            ..ConsumerGroupHeartbeatRequest::default()
        }
    }

    pub fn hear(&mut self, answer: &ConsumerGroupHeartbeatResponse) {
        assert_eq!(answer.error_code, ErrorCode::NONE, "{self:?} {answer:?}");
        self.lost = false;
        self.epoch = answer.member_epoch;
        if let Some(assignment) = &answer.assignment {
            let each = assignment.topic_partitions.iter();
            self.owned = each
                .flat_map(|it| it.partitions.iter().map(|&index| (it.topic_id, index)))
                .collect();
        }
    }
}

pub fn listed(share: &Share) -> Vec<TopicPartitions> {
    let mut topics: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
    for &(topic, index) in share {
        topics.entry(topic).or_default().push(index);
    }
    let each = topics.into_iter();
    each.map(|(topic_id, partitions)| TopicPartitions { topic_id, partitions }).collect()
}

impl Bench {
    pub fn send(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
    ) -> ConsumerGroupHeartbeatResponse {
        let caller = Caller { client_id: text("client"), client_host: text("/127.0.0.1") };
        self.act(|it, world| it.consumer_heartbeat(world, &caller, request, 1))
    }

    pub fn tell(&mut self, consumer: &mut Consumer) -> ConsumerGroupHeartbeatResponse {
        let answer = self.send(&consumer.request());
        consumer.hear(&answer);
        answer
    }

    pub fn refused(&mut self, request: &ConsumerGroupHeartbeatRequest) -> ErrorCode {
        self.send(request).error_code
    }

    pub fn leave_consumer(&mut self, consumer: &Consumer, epoch: i32) -> ErrorCode {
        let request = ConsumerGroupHeartbeatRequest { member_epoch: epoch, ..consumer.request() };
        self.refused(&ConsumerGroupHeartbeatRequest { topic_partitions: None, ..request })
    }

    /// Everybody beats in turn until nothing changes any more; at no time two own one partition.
    pub fn settle(&mut self, consumers: &mut [Consumer]) {
        let mut quiet = 0;
        for _ in 0..20 {
            let before: Vec<_> = consumers.iter().map(|it| (it.epoch, it.owned.clone())).collect();
            for at in 0..consumers.len() {
                self.pass(1);
                self.tell(&mut consumers[at]);
                check_disjoint(consumers);
                self.check_replay();
            }
            let after: Vec<_> = consumers.iter().map(|it| (it.epoch, it.owned.clone())).collect();
            quiet = if before == after { quiet + 1 } else { 0 };
            // What a beat set off, say patterns to be matched, the next one sees.
            if quiet == 2 {
                return;
            }
        }
        panic!("they never settle: {consumers:?}");
    }

    pub fn state_of(&self, group: &str) -> String {
        let all = self.coordinator.list(&[], &[]);
        let found = all.iter().find(|it| it.group_id == *group);
        found.map_or("none".into(), |it| format!("{} {}", it.group_type, it.group_state))
    }

    pub fn change_topics(&mut self, image: metadata::Image, names: &[&str]) {
        self.image = image;
        let names = names.iter().map(|it| text(it)).collect();
        self.act(|it, world| {
            it.on_topics_changed(world, &names);
            (coordinator::Output::default(), ())
        });
    }
}

pub fn check_disjoint(consumers: &[Consumer]) {
    let mut seen = Share::new();
    for owned in consumers.iter().flat_map(|it| &it.owned) {
        assert!(seen.insert(*owned), "{owned:?} has two owners: {consumers:?}");
    }
}

pub fn sizes(consumers: &[Consumer]) -> Vec<usize> {
    consumers.iter().map(|it| it.owned.len()).collect()
}

impl Bench {
    pub fn commit_as(&mut self, consumer: &Consumer, epoch: i32, offset: i64) -> ErrorCode {
        let request = crate::bench::committing("g", &consumer.id, epoch, ("t", 0, offset), "");
        match self.act(|it, world| it.commit_offsets(world, &request, 9)) {
            Ok(outcomes) => outcomes[0],
            Err(error) => error,
        }
    }
}
