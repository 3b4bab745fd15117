//! Groups that commit offsets: each commit names some partitions of the topic, and its answer is
//! waited for.
//!
//! The groups have no members, as those of a tool or of a consumer that chooses its partitions
//! itself: what is measured is how fast a broker takes commits, not how a group gathers.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use protocol::messages::find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse,
};
use protocol::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse,
};
use protocol::{ApiKey, ErrorCode, Str};
use runtime::time::{Instant, now, sleep};

use crate::assignment::part_of;
use crate::cluster::Cluster;
use crate::node::{Node, check, encode};
use crate::pace::Pace;
use crate::requests::Size;
use crate::stage::{Group, LoadCore};
use crate::traffic::{self, Manner, Opened, Requests};

/// What all connections of a run commit.
#[derive(Debug, Clone)]
pub struct Committing {
    pub connections: usize,
    /// Dealt to the connections; each commits in turn.
    pub groups: usize,
    /// Of the names of the groups.
    pub prefix: String,
    pub partitions_per_commit: usize,
    /// Of one connection.
    pub in_flight: usize,
    /// Commits of all connections, if that ends the run.
    pub commits: Option<u64>,
    /// Commits a second of the whole run.
    pub rate: Option<f64>,
}

/// One core's part of it.
pub async fn play(core: LoadCore, cluster: Cluster, run: Committing) -> anyhow::Result<()> {
    let (cluster, run) = (Rc::new(cluster), Rc::new(run));
    let mut opened = Vec::new();
    for index in (0..run.connections).filter(|index| index % core.count == core.index) {
        opened.push((index, open(&cluster, &run, index).await?));
    }
    let window = core.ready().await;
    let tasks = Group::default();
    for (index, opened) in opened {
        let (core, cluster, run) = (core.clone(), Rc::clone(&cluster), Rc::clone(&run));
        let commits = part_of(run.commits.unwrap_or(u64::MAX), index, run.connections);
        let pace = Pace::of(commits, window.start, run.rate, index, run.connections);
        let manner = Manner { in_flight: run.in_flight, answered: true };
        tasks.spawn(async move {
            let open_again = async || open(&cluster, &run, index).await;
            traffic::run(core, manner, pace, opened, open_again).await;
        });
    }
    tasks.join().await;
    core.sent_all();
    Ok(())
}

/// Connects to the coordinators of a connection's groups, once they serve.
async fn open(
    cluster: &Rc<Cluster>,
    run: &Committing,
    index: usize,
) -> anyhow::Result<Opened<Commits>> {
    let numbers = (index..run.groups).step_by(run.connections);
    let names: Vec<Str> =
        numbers.map(|number| Str::from(format!("{}{number}", run.prefix))).collect();
    let mut search = Search { cluster, nodes: BTreeMap::new() };
    let mut found = Vec::with_capacity(names.len());
    for some in names.chunks(NAMES_MAX) {
        let some = search.find(some).await?;
        search.await_served(&some).await?;
        found.extend(some);
    }
    ensure!(!found.is_empty(), "no group to commit for");
    let mut nodes = search.nodes;
    nodes.retain(|id, _| found.iter().any(|(_, node)| node == id));
    let mut versions = Vec::with_capacity(nodes.len());
    for node in nodes.values() {
        versions.push(node.versions.of(ApiKey::OffsetCommit)?);
    }
    let groups = found.into_iter().map(|(name, id)| {
        let connection = nodes.keys().position(|&node| node == id);
        Ok((name, connection.context("a coordinator that nobody has asked")?))
    });
    let requests = Commits {
        cluster: Rc::clone(cluster),
        partitions_per_commit: run.partitions_per_commit,
        groups: groups.collect::<anyhow::Result<_>>()?,
        turn: 0,
        versions,
        next_offset: 1,
    };
    Ok(Opened { nodes: nodes.into_values().collect(), requests })
}

/// For the coordinators of groups.
struct Search<'a> {
    cluster: &'a Cluster,
    nodes: BTreeMap<i32, Node>,
}

impl Search<'_> {
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
}

/// The commits of some groups, for each in turn.
struct Commits {
    cluster: Rc<Cluster>,
    partitions_per_commit: usize,
    /// Names, and the places of the connections to their coordinators; never none.
    groups: Vec<(Str, usize)>,
    turn: usize,
    /// By connection.
    versions: Vec<i16>,
    next_offset: i64,
}

impl Requests for Commits {
    type Answer = OffsetCommitResponse;

    fn connection(&self) -> usize {
        self.groups[self.turn].1
    }

    fn next(&mut self, correlation_id: i32, _due: Instant, parts: &mut Vec<Bytes>) -> Size {
        let (group_id, connection) = self.groups[self.turn].clone();
        self.turn = (self.turn + 1) % self.groups.len();
        let committed_offset = self.next_offset;
        self.next_offset += 1;
        let chosen = self.cluster.leaders.iter().take(self.partitions_per_commit);
        let partitions = chosen.map(|&(partition_index, _)| OffsetCommitRequestPartition {
            partition_index,
            committed_offset,
            ..OffsetCommitRequestPartition::default()
        });
        let topic = OffsetCommitRequestTopic {
            name: self.cluster.topic.clone(),
            topic_id: self.cluster.topic_id,
            partitions: partitions.collect(),
        };
        let request =
            OffsetCommitRequest { group_id, topics: vec![topic], ..OffsetCommitRequest::default() };
        let encoded = encode(&request, self.versions[connection], correlation_id).finish();
        let bytes = encoded.iter().map(|part| part.len() as u64).sum();
        parts.extend(encoded);
        Size { batches: 1, records: self.partitions_per_commit as u64, bytes }
    }

    fn verdicts(answer: &OffsetCommitResponse) -> impl Iterator<Item = ErrorCode> {
        answer.topics.iter().flat_map(|topic| &topic.partitions).map(|it| it.error_code)
    }

    /// A partition counts as a record.
    fn partitions(size: Size) -> u64 {
        size.records
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Groups that are asked about at once.
const NAMES_MAX: usize = 500;
