//! Groups that commit offsets: each commit names some partitions of the topic and is waited for.
//!
//! The groups have no members, as those of a tool or of a consumer that chooses its partitions
//! itself: what is measured is how fast a broker takes commits, not how a group gathers.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, ensure};
use protocol::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse,
};
use protocol::{ErrorCode, Str};
use runtime::time::{now, sleep};

use crate::assignment::part_of;
use crate::cluster::Cluster;
use crate::node::{Node, check};
use crate::pace::Pace;
use crate::requests::Size;
use crate::stage::{Group, LoadCore};

/// What all connections of a run commit.
#[derive(Debug, Clone)]
pub struct Committing {
    pub connections: usize,
    /// Dealt to the connections; each commits in turn.
    pub groups: usize,
    /// Of the names of the groups.
    pub prefix: String,
    pub partitions_per_commit: usize,
    /// Commits of all connections, if that ends the run.
    pub commits: Option<u64>,
    /// Commits a second of the whole run.
    pub rate: Option<f64>,
}

/// One core's part of it.
pub async fn play(core: LoadCore, cluster: Cluster, run: Committing) -> anyhow::Result<()> {
    let cluster = Rc::new(cluster);
    let mut committers = Vec::new();
    for index in (0..run.connections).filter(|index| index % core.count == core.index) {
        committers.push((index, Committer::open(&cluster, &run, index).await?));
    }
    let window = core.ready().await;
    let tasks = Group::default();
    for (index, committer) in committers {
        let commits = part_of(run.commits.unwrap_or(u64::MAX), index, run.connections);
        let pace = match run.rate {
            None => Pace::closed(commits),
            Some(rate) => Pace::open(commits, window.start, rate, index, run.connections),
        };
        tasks.spawn(committer.run(core.clone(), pace));
    }
    tasks.join().await;
    core.sent_all();
    Ok(())
}

/// Commits for its groups, one commit at a time.
struct Committer {
    cluster: Rc<Cluster>,
    partitions_per_commit: usize,
    /// Names and coordinators; the first is the next.
    groups: VecDeque<(Str, i32)>,
    nodes: BTreeMap<i32, Node>,
    next_offset: i64,
}

impl Committer {
    /// Connects to the coordinators of its groups, once they serve.
    async fn open(
        cluster: &Rc<Cluster>,
        run: &Committing,
        index: usize,
    ) -> anyhow::Result<Committer> {
        let numbers = (index..run.groups).step_by(run.connections);
        let names: Vec<Str> =
            numbers.map(|number| Str::from(format!("{}{number}", run.prefix))).collect();
        let mut committer = Committer {
            cluster: Rc::clone(cluster),
            partitions_per_commit: run.partitions_per_commit,
            groups: VecDeque::with_capacity(names.len()),
            nodes: BTreeMap::new(),
            next_offset: 1,
        };
        for some in names.chunks(NAMES_MAX) {
            let found = committer.find(some).await?;
            committer.await_served(&found).await?;
            committer.groups.extend(found);
        }
        Ok(committer)
    }

    async fn node(&mut self, id: i32) -> anyhow::Result<&mut Node> {
        use std::collections::btree_map::Entry;
        match self.nodes.entry(id) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                Ok(place.insert(Node::connect(self.cluster.address(id)?).await?))
            }
        }
    }

    /// The coordinators of groups; whoever is asked first creates the topic of their offsets.
    async fn find(&mut self, names: &[Str]) -> anyhow::Result<Vec<(Str, i32)>> {
        let (_, any) = *self.cluster.leaders.first().context("the topic has no partitions")?;
        let request = FindCoordinatorRequest {
            coordinator_keys: names.to_vec(),
            ..FindCoordinatorRequest::default()
        };
        let deadline = now() + PATIENCE;
        loop {
            let answer: FindCoordinatorResponse = self.node(any).await?.call(&request).await?;
            let found = &answer.coordinators;
            match found.iter().map(|it| it.error_code).find(|code| code.is_error()) {
                None => return Ok(found.iter().map(|it| (it.key.detach(), it.node_id)).collect()),
                Some(code) if code.retriable() && now() < deadline => sleep(RETRY_PAUSE).await,
                Some(code) => check(code).context("FindCoordinator")?,
            }
        }
    }

    async fn await_served(&mut self, groups: &[(Str, i32)]) -> anyhow::Result<()> {
        let mut by_node: BTreeMap<i32, Vec<OffsetFetchRequestGroup>> = BTreeMap::new();
        for (group_id, node) in groups {
            let group_id = group_id.clone();
            let asked = OffsetFetchRequestGroup { group_id, ..OffsetFetchRequestGroup::default() };
            by_node.entry(*node).or_default().push(asked);
        }
        for (node, groups) in by_node {
            let request = OffsetFetchRequest { groups, ..OffsetFetchRequest::default() };
            let deadline = now() + PATIENCE;
            loop {
                let answer: OffsetFetchResponse = self.node(node).await?.call(&request).await?;
                let refused = answer.groups.iter().map(|it| it.error_code);
                match refused.into_iter().find(|code| code.is_error()) {
                    None => break,
                    Some(code) if code.retriable() && now() < deadline => sleep(RETRY_PAUSE).await,
                    Some(code) => check(code).context("OffsetFetch")?,
                }
            }
        }
        Ok(())
    }

    async fn run(mut self, core: LoadCore, mut pace: Pace) {
        let end = core.tally.window().end;
        while !core.is_over() && !pace.is_spent() {
            let due = pace.due(now());
            if due >= end {
                return;
            }
            if due > now() {
                core.wait(due, std::future::pending()).await;
                continue;
            }
            let Some(due) = pace.take(now()) else { continue };
            match self.commit().await {
                Ok((size, errors)) if errors.is_empty() => {
                    core.tally.on_acknowledged(size, due, now());
                }
                Ok((_, errors)) => errors.iter().for_each(|it| core.tally.on_error(it.name())),
                Err(why) => return core.tally.on_error(&format!("{why:#}")),
            }
        }
    }

    async fn commit(&mut self) -> anyhow::Result<(Size, Vec<ErrorCode>)> {
        let (group, node) = self.groups.front().cloned().context("no group to commit for")?;
        self.groups.rotate_left(1);
        let offset = self.next_offset;
        self.next_offset += 1;
        let chosen = self.cluster.leaders.iter().take(self.partitions_per_commit);
        let partitions = chosen.map(|&(partition_index, _)| OffsetCommitRequestPartition {
            partition_index,
            committed_offset: offset,
            ..OffsetCommitRequestPartition::default()
        });
        let topic = OffsetCommitRequestTopic {
            name: self.cluster.topic.clone(),
            topic_id: self.cluster.topic_id,
            partitions: partitions.collect(),
        };
        let request = OffsetCommitRequest {
            group_id: group,
            topics: vec![topic],
            ..OffsetCommitRequest::default()
        };
        let node = self.node(node).await?;
        let sent_before = node.sent_bytes;
        let answer: OffsetCommitResponse = node.call(&request).await?;
        let bytes = node.sent_bytes - sent_before;
        let answers = answer.topics.iter().flat_map(|topic| &topic.partitions);
        let codes: Vec<ErrorCode> = answers.map(|it| it.error_code).collect();
        ensure!(codes.len() == self.partitions_per_commit, "an answer about other partitions");
        let size = Size { batches: 1, records: codes.len() as u64, bytes };
        Ok((size, codes.into_iter().filter(|code| code.is_error()).collect()))
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Groups that are asked about at once.
const NAMES_MAX: usize = 500;
