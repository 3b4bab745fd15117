//! What the brokers say about themselves and about the topic, asked once before the clock starts.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use protocol::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, CreateTopicsResponse,
};
use protocol::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic,
};
use protocol::{ErrorCode, Str, Uuid};
use runtime::time::{now, sleep};

use crate::node::{Node, check};
use crate::options::TargetArgs;

/// Where a topic's partitions are led, and how to get there.
#[derive(Debug, Clone)]
pub struct Cluster {
    pub topic: Str,
    pub topic_id: Uuid,
    /// Partition and leading node.
    pub leaders: Vec<(i32, i32)>,
    addresses: BTreeMap<i32, SocketAddr>,
}

impl Cluster {
    pub fn address(&self, node: i32) -> anyhow::Result<SocketAddr> {
        let address = self.addresses.get(&node).copied();
        address.with_context(|| format!("node {node} is not in the cluster's metadata"))
    }

    /// Asks about the topic, which is created first if so many partitions are wanted.
    pub async fn survey(target: TargetArgs) -> anyhow::Result<Cluster> {
        let bootstrap = resolve(target.bootstrap.clone()).await?;
        let mut node = reach(bootstrap, target.wait).await?;
        if target.partitions.is_some() {
            create(&mut node, &target).await?;
        }
        let deadline = now() + LEADERS_TIMEOUT;
        loop {
            let answer = describe(&mut node, &target.topic).await?;
            let topic = answer.topics.first().context("no answer about the topic")?;
            if is_ready(topic, &target)? {
                return Cluster::of(&answer, topic).await;
            }
            ensure!(now() < deadline, "topic {} has partitions without leader", target.topic);
            sleep(RETRY_PAUSE).await;
        }
    }

    async fn of(
        answer: &MetadataResponse,
        topic: &MetadataResponseTopic,
    ) -> anyhow::Result<Cluster> {
        let mut addresses = BTreeMap::new();
        for broker in &answer.brokers {
            let host = broker.host.as_str();
            let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            let address = resolve(format!("{host}:{}", broker.port)).await?;
            addresses.insert(broker.node_id, address);
        }
        let leaders = topic.partitions.iter().map(|p| (p.partition_index, p.leader_id));
        let mut leaders: Vec<(i32, i32)> = leaders.collect();
        leaders.sort_unstable();
        let name = topic.name.clone().unwrap_or_default();
        Ok(Cluster { topic: name.detach(), topic_id: topic.topic_id, leaders, addresses })
    }
}

/// Whether the topic is there with all its leaders. Fails for good reasons only.
fn is_ready(topic: &MetadataResponseTopic, target: &TargetArgs) -> anyhow::Result<bool> {
    if topic.error_code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION && target.partitions.is_none() {
        bail!("topic {} does not exist; create it with --partitions N", target.topic);
    }
    if topic.error_code.retriable() {
        return Ok(false);
    }
    check(topic.error_code)?;
    if let Some(wanted) = target.partitions {
        let there = topic.partitions.len();
        ensure!(there == wanted as usize, "topic {} has {there} partitions", target.topic);
    }
    Ok(topic.partitions.iter().all(|partition| partition.leader_id >= 0))
}

async fn reach(address: SocketAddr, patience: Duration) -> anyhow::Result<Node> {
    let deadline = now() + patience;
    loop {
        match Node::connect(address).await {
            Err(_unreachable) if now() < deadline => sleep(REACH_PAUSE).await,
            reached => return reached,
        }
    }
}

async fn describe(node: &mut Node, topic: &str) -> anyhow::Result<MetadataResponse> {
    let wanted = MetadataRequestTopic {
        name: Some(Str::from(topic.to_owned())),
        ..MetadataRequestTopic::default()
    };
    let request = MetadataRequest {
        topics: Some(vec![wanted]),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    node.call(&request).await
}

async fn create(node: &mut Node, target: &TargetArgs) -> anyhow::Result<()> {
    let config = |(name, value): &(String, String)| CreatableTopicConfig {
        name: Str::from(name.clone()),
        value: Some(Str::from(value.clone())),
    };
    let topic = CreatableTopic {
        name: Str::from(target.topic.clone()),
        num_partitions: target.partitions.unwrap_or(-1),
        replication_factor: target.replication_factor,
        configs: target.configs.iter().map(config).collect(),
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
    let answer: CreateTopicsResponse = node.call(&request).await?;
    let result = answer.topics.first().context("no answer about the new topic")?;
    if result.error_code == ErrorCode::TOPIC_ALREADY_EXISTS {
        return Ok(());
    }
    let words = result.error_message.as_deref().unwrap_or_default().to_owned();
    check(result.error_code).with_context(|| format!("cannot create the topic. {words}"))
}

async fn resolve(address: String) -> anyhow::Result<SocketAddr> {
    if let Ok(literal) = address.parse() {
        return Ok(literal);
    }
    let looked_up = address.clone();
    let found = runtime::task::blocking(move || {
        looked_up.to_socket_addrs().map(|mut addresses| addresses.next())
    });
    let found = found.await.with_context(|| format!("'{address}': write HOST:PORT"))?;
    found.with_context(|| format!("{address} has no address"))
}

const LEADERS_TIMEOUT: Duration = Duration::from_secs(60);
const REACH_PAUSE: Duration = Duration::from_millis(2);
const RETRY_PAUSE: Duration = Duration::from_millis(20);
