//! What the clients of one run share, and how they find their way: topics, leaders, connections.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use protocol::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreateTopicsRequest, CreateTopicsResponse,
};
use protocol::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use protocol::{ErrorCode, Str, Uuid};
use runtime::time::{now, random_u64, sleep};

use super::client::{Client, Lost};
use super::history::{History, Key, Span};

pub const TIMEOUT: Duration = Duration::from_secs(5);
pub const PAUSE: Duration = Duration::from_millis(40);

/// A topic that the clients use.
pub struct Topic {
    pub name: Str,
    pub id: Uuid,
    pub partitions: Cell<i32>,
    /// Its name was or will be used by another topic: it is spoken of by id only.
    pub shares_name: bool,
    pub deleted: Cell<bool>,
}

impl Topic {
    pub fn key(&self, partition: i32) -> Key {
        Key { topic: self.id, partition }
    }
}

pub struct Run {
    pub history: RefCell<History>,
    pub topics: RefCell<Vec<Rc<Topic>>>,
    pub addresses: Vec<SocketAddr>,
    /// No new work is begun; what was begun is brought to an end.
    pub stopping: Cell<bool>,
    /// Client tasks that have not ended.
    pub active: Cell<usize>,
    /// Members of each consumer group that have not ended.
    pub consuming: RefCell<BTreeMap<Str, usize>>,
    /// Client tasks that wait for all others to end.
    pub lingering: Cell<usize>,
    /// What is wrong, as seen by a client at once.
    pub findings: RefCell<Vec<String>>,
    /// What was broken, and when.
    pub faults: RefCell<Vec<String>>,
    /// Partitions that could not be read to their end, and why.
    pub unread: RefCell<BTreeMap<Key, String>>,
    /// How often something worth testing happened.
    pub reached: RefCell<BTreeMap<&'static str, u64>>,
}

impl Run {
    pub fn new(addresses: Vec<SocketAddr>) -> Rc<Self> {
        Rc::new(Self {
            history: RefCell::default(),
            topics: RefCell::default(),
            addresses,
            stopping: Cell::new(false),
            active: Cell::new(0),
            consuming: RefCell::default(),
            lingering: Cell::new(0),
            findings: RefCell::default(),
            faults: RefCell::default(),
            unread: RefCell::default(),
            reached: RefCell::default(),
        })
    }

    pub fn reach(&self, what: &'static str) {
        *self.reached.borrow_mut().entry(what).or_insert(0) += 1;
    }

    pub fn find(&self, finding: String) {
        self.findings.borrow_mut().push(finding);
    }

    /// A topic that nobody has asked to delete.
    pub fn any_topic(&self) -> Option<Rc<Topic>> {
        let topics = self.topics.borrow();
        let live: Vec<_> = topics.iter().filter(|topic| !topic.deleted.get()).collect();
        (!live.is_empty()).then(|| live[below(live.len() as u64) as usize].clone())
    }

    pub fn span(&self) -> Span {
        Span::since(now().as_nanos())
    }
}

pub fn below(bound: u64) -> u64 {
    random_u64() % bound.max(1)
}

pub fn one_in(n: u64) -> bool {
    below(n) == 0
}

/// One client's connections and what it knows about leaders.
pub struct Session {
    pub run: Rc<Run>,
    clients: BTreeMap<SocketAddr, Rc<Client>>,
    leaders: BTreeMap<Key, SocketAddr>,
    /// Who coordinates a group, as far as is known.
    pub coordinators: BTreeMap<Str, SocketAddr>,
}

impl Session {
    pub fn new(run: &Rc<Run>) -> Self {
        Self {
            run: run.clone(),
            clients: BTreeMap::new(),
            leaders: BTreeMap::new(),
            coordinators: BTreeMap::new(),
        }
    }

    pub async fn connect(&mut self, address: SocketAddr) -> Result<Rc<Client>, Lost> {
        if let Some(client) = self.clients.get(&address).filter(|client| !client.is_lost()) {
            return Ok(client.clone());
        }
        let client = Rc::new(Client::connect(address).await?);
        self.clients.insert(address, client.clone());
        Ok(client)
    }

    /// A connection to any node.
    pub async fn any_node(&mut self) -> Result<Rc<Client>, Lost> {
        let address = self.run.addresses[below(self.run.addresses.len() as u64) as usize];
        self.connect(address).await
    }

    /// A connection to the leader of a partition, as far as is known.
    pub async fn leader(&mut self, topic: &Topic, partition: i32) -> Result<Rc<Client>, Lost> {
        let key = topic.key(partition);
        if !self.leaders.contains_key(&key) {
            self.learn_leaders(topic).await?;
        }
        match self.leaders.get(&key).copied() {
            Some(address) => self.connect(address).await,
            None => Err(Lost),
        }
    }

    pub fn forget_leaders(&mut self) {
        self.leaders.clear();
    }

    /// Closes the connection to a node, so that the next request gets a new one.
    pub fn drop_connection(&mut self, client: &Client) {
        self.clients.remove(&client.address);
    }

    async fn learn_leaders(&mut self, topic: &Topic) -> Result<(), Lost> {
        let by_id = topic.shares_name || one_in(2);
        let wanted = MetadataRequestTopic {
            topic_id: if by_id { topic.id } else { Uuid::ZERO },
            name: (!by_id).then(|| topic.name.clone()),
        };
        let request = MetadataRequest {
            topics: Some(vec![wanted]),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let node = self.any_node().await?;
        let answer: MetadataResponse = node.call(&request, 12, TIMEOUT).await?;
        for found in &answer.topics {
            if found.error_code == ErrorCode::NONE && found.topic_id == topic.id {
                for partition in &found.partitions {
                    let leader = answer.brokers.iter().find(|b| b.node_id == partition.leader_id);
                    let address = leader.and_then(|leader| {
                        let ip: IpAddr = leader.host.parse().ok()?;
                        Some(SocketAddr::new(ip, leader.port as u16))
                    });
                    if let Some(address) = address {
                        self.leaders.insert(topic.key(partition.partition_index), address);
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes a topic, however often it has to be tried. `None` when the run ends before.
    pub async fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&str, String)],
    ) -> Option<Rc<Topic>> {
        let topic = self.create_unshared(name, partitions, configs).await?;
        let known = self.run.topics.borrow().iter().any(|known| known.id == topic.id);
        if known {
            return None;
        }
        self.run.topics.borrow_mut().push(topic.clone());
        Some(topic)
    }

    /// A topic that no other client uses.
    pub async fn create_unshared(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&str, String)],
    ) -> Option<Rc<Topic>> {
        let config = |(name, value): &(&str, String)| CreatableTopicConfig {
            name: Str::from(name.to_string()),
            value: Some(Str::from(value.clone())),
        };
        let wanted = CreatableTopic {
            name: Str::from(name.to_owned()),
            num_partitions: partitions,
            replication_factor: 1,
            configs: configs.iter().map(config).collect(),
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest {
            topics: vec![wanted],
            timeout_ms: 5000,
            ..CreateTopicsRequest::default()
        };
        while !self.run.stopping.get() {
            if let Ok(node) = self.any_node().await
                && let Ok(answer) = node.call::<_, CreateTopicsResponse>(&request, 7, TIMEOUT).await
            {
                let result = &answer.topics[0];
                match result.error_code {
                    ErrorCode::NONE => return Some(topic(name, result.topic_id, partitions)),
                    // An earlier try got through, and its answer did not.
                    ErrorCode::TOPIC_ALREADY_EXISTS => {
                        if let Some(id) = self.topic_id(name).await {
                            return Some(topic(name, id, partitions));
                        }
                    }
                    error if error.retriable() => {}
                    error => {
                        let why = result.error_message.as_deref().unwrap_or("");
                        self.run.find(format!("creating {name}: {} {why}", error.name()));
                        return None;
                    }
                }
            }
            sleep(PAUSE).await;
        }
        None
    }

    async fn topic_id(&mut self, name: &str) -> Option<Uuid> {
        let wanted =
            MetadataRequestTopic { topic_id: Uuid::ZERO, name: Some(Str::from(name.to_owned())) };
        let request = MetadataRequest {
            topics: Some(vec![wanted]),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let node = self.any_node().await.ok()?;
        let answer: MetadataResponse = node.call(&request, 12, TIMEOUT).await.ok()?;
        let found = answer.topics.first()?;
        (found.error_code == ErrorCode::NONE).then_some(found.topic_id)
    }
}

fn topic(name: &str, id: Uuid, partitions: i32) -> Rc<Topic> {
    Rc::new(Topic {
        name: Str::from(name.to_owned()),
        id,
        partitions: Cell::new(partitions),
        shares_name: name.starts_with(SHARED_NAME),
        deleted: Cell::new(false),
    })
}

/// Topics of such names come and go under one name.
pub const SHARED_NAME: &str = "phoenix";
