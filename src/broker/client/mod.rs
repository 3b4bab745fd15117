//! A small blocking client for the command line: one request at a time, any node.
//!
//! It negotiates versions as any Kafka client does, so the commands also work against another
//! broker that speaks the protocol. It retries what the protocol calls retriable, for a bounded
//! time, and says what it waits for.

pub mod consumer_protocol;
pub mod group;
pub mod member;
mod node;
pub mod positions;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use protocol::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic,
};
use protocol::{ApiKey, ErrorCode, Message, Str};

use node::NodeConnection;

/// A client of one cluster.
pub struct Client {
    bootstrap: NodeConnection,
    addresses: BTreeMap<i32, (String, u16)>,
    nodes: BTreeMap<i32, NodeConnection>,
}

impl Client {
    /// Connects to the first address of `bootstrap` (`HOST:PORT[,HOST:PORT…]`) that answers.
    pub fn connect(bootstrap: &str) -> anyhow::Result<Client> {
        let mut last = None;
        for address in bootstrap.split(',') {
            match NodeConnection::open(address.trim()) {
                Ok(bootstrap) => {
                    return Ok(Client {
                        bootstrap,
                        addresses: BTreeMap::new(),
                        nodes: BTreeMap::new(),
                    });
                }
                Err(why) => last = Some(why),
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("no address in '{bootstrap}'")))
    }

    /// Asks any node.
    pub fn ask<Q: Message, R: Message>(&mut self, request: &Q) -> anyhow::Result<R> {
        self.bootstrap.call(request)
    }

    /// Asks one node, named as in metadata.
    pub fn ask_node<Q: Message, R: Message>(
        &mut self,
        node: i32,
        request: &Q,
    ) -> anyhow::Result<R> {
        let answer = self.node(node)?.call(request);
        if answer.is_err() {
            self.nodes.remove(&node);
        }
        answer
    }

    /// Whether that node serves an API.
    pub fn serves(&mut self, node: i32, api: ApiKey) -> anyhow::Result<bool> {
        Ok(self.node(node)?.serves(api))
    }

    /// The connection to one node, made if there is none yet.
    fn node(&mut self, node: i32) -> anyhow::Result<&mut NodeConnection> {
        if !self.nodes.contains_key(&node) {
            let Some((host, port)) = self.addresses.get(&node) else {
                bail!("node {node} is not in the cluster's metadata");
            };
            let connection = NodeConnection::connect(host, *port)?;
            self.nodes.insert(node, connection);
        }
        self.nodes.get_mut(&node).context("just inserted")
    }

    /// Metadata of the topics, of all when none is named. Nothing is created by asking.
    pub fn metadata(&mut self, topics: &[&str]) -> anyhow::Result<MetadataResponse> {
        let named = topics.iter().map(|name| MetadataRequestTopic {
            name: Some(Str::from((*name).to_owned())),
            ..MetadataRequestTopic::default()
        });
        let request = MetadataRequest {
            topics: (!topics.is_empty()).then(|| named.collect()),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let response: MetadataResponse = self.ask(&request)?;
        for broker in &response.brokers {
            let address = (broker.host.to_string(), broker.port as u16);
            self.addresses.insert(broker.node_id, address);
        }
        Ok(response)
    }

    /// One topic, with every partition led; waits a bounded time for that.
    pub fn topic(&mut self, name: &str) -> anyhow::Result<MetadataResponseTopic> {
        let deadline = Instant::now() + LEADER_WAIT;
        loop {
            let topic = self.metadata(&[name])?.topics.into_iter().next();
            let topic = topic.with_context(|| format!("no answer about topic {name}"))?;
            let led = topic.partitions.iter().all(|each| each.leader_id >= 0);
            match topic.error_code {
                ErrorCode::NONE if led => return Ok(topic),
                error if error != ErrorCode::NONE && !error.retriable() => check(error, None)?,
                ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
                    bail!(
                        "topic {name} does not exist; create it with `coretide topic create {name}`"
                    )
                }
                _ if Instant::now() > deadline => {
                    bail!("topic {name} has partitions without leader")
                }
                _ => std::thread::sleep(RETRY_PAUSE),
            }
        }
    }
}

/// An error code as a sentence, with the broker's own words when it gave some.
pub fn check(error: ErrorCode, message: Option<&Str>) -> anyhow::Result<()> {
    if error == ErrorCode::NONE {
        return Ok(());
    }
    match message.filter(|text| !text.is_empty()) {
        Some(text) => bail!("{}: {text}", error.name()),
        None => bail!("{}: {}", error.name(), error.message()),
    }
}

const LEADER_WAIT: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_millis(50);
