//! Connections that produce.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use protocol::messages::produce::ProduceResponse;
use protocol::{ApiKey, ErrorCode};
use runtime::time::{Instant, now, sleep};

use crate::assignment::Share;
use crate::batches::{Batch, Generator, Shape};
use crate::cluster::Cluster;
use crate::node::{Node, check};
use crate::offsets;
use crate::options::Acks;
use crate::pace::Pace;
use crate::requests::{Heading, Numbered, Size, Source, Stamped};
use crate::stage::LoadCore;
use crate::traffic::{self, Manner, Opened, Requests};

/// What every connection of a run sends.
#[derive(Debug, Clone)]
pub struct Sending {
    pub acks: Acks,
    pub in_flight: usize,
    pub partitions_per_request: usize,
    pub content: Content,
    pub shape: Shape,
    /// Ready batches, unless they are stamped.
    pub batches: Arc<[Batch]>,
    /// Requests a second of the whole run.
    pub rate: Option<f64>,
}

/// How batches come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Prepared,
    Idempotent,
    Stamped { run_id: u64 },
}

/// One connection's part of it.
#[derive(Debug, Clone)]
pub struct Connection {
    pub index: usize,
    pub count: usize,
    pub share: Share,
    /// Requests that it may send.
    pub requests: u64,
}

/// Opens a connection, so that the clock starts only when all are there.
pub async fn open(
    cluster: &Cluster,
    sending: &Sending,
    connection: &Connection,
) -> anyhow::Result<Opened<Source>> {
    let mut node = Node::connect(cluster.address(connection.share.node)?).await?;
    let heading = Heading {
        topic: cluster.topic.clone(),
        topic_id: cluster.topic_id,
        version: node.versions.of(ApiKey::Produce)?,
        acks: sending.acks.wire(),
    };
    let partitions = &connection.share.partitions;
    offsets::list(&mut node, cluster, partitions, offsets::LATEST).await?;
    let per_request = sending.partitions_per_request;
    let source = match sending.content {
        Content::Prepared => Source::prepared(&heading, partitions, per_request, &sending.batches),
        Content::Idempotent => {
            let identity = producer_id(&mut node).await?;
            let batches = Rc::from(&*sending.batches);
            let numbered = Numbered::new(heading, identity, partitions, per_request, batches);
            Source::Numbered(Box::new(numbered))
        }
        Content::Stamped { run_id } => {
            let generator = Generator::new(sending.shape, run_id ^ connection.index as u64);
            let stamped = Stamped::new(heading, run_id, partitions, per_request, generator);
            Source::Stamped(Box::new(stamped))
        }
    };
    Ok(Opened { nodes: vec![node], requests: source })
}

async fn producer_id(node: &mut Node) -> anyhow::Result<(i64, i16)> {
    let request = InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        ..InitProducerIdRequest::default()
    };
    let deadline = now() + PRODUCER_ID_PATIENCE;
    loop {
        let answer: InitProducerIdResponse = node.call(&request).await?;
        if answer.error_code.retriable() && now() < deadline {
            sleep(RETRY_PAUSE).await;
            continue;
        }
        check(answer.error_code).context("InitProducerId")?;
        return Ok((answer.producer_id, answer.producer_epoch));
    }
}

/// Sends until the end.
pub async fn run(
    core: LoadCore,
    cluster: Rc<Cluster>,
    sending: Rc<Sending>,
    connection: Connection,
    opened: Opened<Source>,
) {
    let Connection { index, count, requests, .. } = connection;
    let pace = Pace::of(requests, core.tally.window().start, sending.rate, index, count);
    let answered = sending.acks != Acks::None;
    let manner = Manner { in_flight: sending.in_flight, answered };
    let open_again = async || open(&cluster, &sending, &connection).await;
    traffic::run(core, manner, pace, opened, open_again).await;
}

impl Requests for Source {
    type Answer = ProduceResponse;

    fn next(&mut self, correlation_id: i32, due: Instant, parts: &mut Vec<Bytes>) -> Size {
        match self {
            Source::Prepared { requests, next } => {
                let request = &requests[*next];
                *next = (*next + 1) % requests.len();
                request.put(correlation_id, parts)
            }
            Source::Numbered(numbered) => numbered.put(correlation_id, parts),
            Source::Stamped(stamped) => stamped.put(correlation_id, due, parts),
        }
    }

    fn verdicts(answer: &ProduceResponse) -> impl Iterator<Item = ErrorCode> {
        let topics = answer.responses.iter();
        topics.flat_map(|topic| &topic.partition_responses).map(|it| it.error_code)
    }

    fn partitions(size: Size) -> u64 {
        size.batches
    }
}

const PRODUCER_ID_PATIENCE: Duration = Duration::from_secs(30);
const RETRY_PAUSE: Duration = Duration::from_millis(50);
