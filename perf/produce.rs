//! Connections that produce: one task sends, one receives, a third watches over both.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use protocol::messages::produce::ProduceResponse;
use protocol::{ApiKey, ErrorCode};
use runtime::local::Event;
use runtime::net::Writer;
use runtime::time::{Instant, now, sleep, within};

use crate::assignment::Share;
use crate::batches::{Batch, Generator, Shape};
use crate::cluster::Cluster;
use crate::node::{Frames, Node, check, decode};
use crate::offsets;
use crate::options::Acks;
use crate::pace::Pace;
use crate::pipeline::{Flight, Pipeline};
use crate::requests::{Heading, Numbered, Source, Stamped};
use crate::stage::LoadCore;

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
) -> anyhow::Result<(Node, Source)> {
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
    Ok((node, source))
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

/// Sends until the end; opens the connection again when it is lost.
pub async fn run(
    core: LoadCore,
    cluster: Rc<Cluster>,
    sending: Rc<Sending>,
    connection: Connection,
    opened: (Node, Source),
) {
    let window = core.tally.window();
    let requests = connection.requests;
    let mut pace = match sending.rate {
        None => Pace::closed(requests),
        Some(rate) => Pace::open(requests, window.start, rate, connection.index, connection.count),
    };
    let mut next = Some(opened);
    while let Some((node, source)) = next.take() {
        run_once(&core, &sending, &mut pace, node, source).await;
        while next.is_none() && !is_over(&core, &pace) {
            match open(&cluster, &sending, &connection).await {
                Ok(opened) => next = Some(opened),
                Err(why) => {
                    core.tally.on_error(&format!("{why:#}"));
                    core.wait(now() + RECONNECT_PAUSE, std::future::pending()).await;
                }
            }
        }
    }
    if !core.is_interrupted() {
        core.tally.on_errors("due and not sent", pace.behind(window.end));
    }
}

/// Whether nothing more shall be sent. What was due before the end is sent behind it too, unless
/// the broker is hopelessly late: to leave it out would hide that it was held up.
fn is_over(core: &LoadCore, pace: &Pace) -> bool {
    let end = core.tally.window().end;
    let now = now();
    core.is_interrupted() || pace.is_spent() || pace.due(now) >= end || now >= patience(core, pace)
}

/// Until when requests may leave.
fn patience(core: &LoadCore, pace: &Pace) -> Instant {
    let end = core.tally.window().end;
    if pace.is_scheduled() { end + BACKLOG_PATIENCE } else { end }
}

async fn run_once(
    core: &LoadCore,
    sending: &Sending,
    pace: &mut Pace,
    node: Node,
    mut source: Source,
) {
    let version = match node.versions.of(ApiKey::Produce) {
        Ok(version) => version,
        Err(why) => return core.tally.on_error(&format!("{why:#}")),
    };
    let Node { frames, mut writer, .. } = node;
    let closer = frames.closer();
    let pipeline = Rc::new(Pipeline::new(sending.in_flight));
    let receiver_gone = Event::new();
    let gone = receiver_gone.listen();
    let (receiving, receiver_core) = (Rc::clone(&pipeline), core.clone());
    runtime::task::spawn(async move {
        if let Err(why) = receive(&receiver_core, &receiving, frames, version).await {
            receiving.fail(format!("{why:#}"));
        }
        receiver_gone.notify_all();
    });
    let acknowledged = sending.acks != Acks::None;
    if let Err(why) = send(core, &pipeline, pace, &mut source, &mut writer, acknowledged).await {
        pipeline.fail(format!("{why:#}"));
    }
    drain(&pipeline).await;
    if let Some(why) = pipeline.failure() {
        core.tally.on_error(&why);
    }
    closer.close();
    gone.await;
    core.tally.on_errors("no answer", pipeline.abandon().len() as u64);
}

/// Waits for the answers to what was sent.
async fn drain(pipeline: &Pipeline) {
    let deadline = now() + DRAIN_TIMEOUT;
    loop {
        let changed = pipeline.changed();
        if pipeline.is_empty() || pipeline.is_failed() || now() >= deadline {
            return;
        }
        // The loop looks at the clock again.
        let _elapsed = within(deadline, changed).await;
    }
}

async fn send(
    core: &LoadCore,
    pipeline: &Pipeline,
    pace: &mut Pace,
    source: &mut Source,
    writer: &mut Writer,
    acknowledged: bool,
) -> anyhow::Result<()> {
    let mut parts: Vec<Bytes> = Vec::with_capacity(2 * PARTS_MAX);
    loop {
        let changed = pipeline.changed();
        if pipeline.is_failed() || is_over(core, pace) {
            return Ok(());
        }
        if pipeline.is_full() {
            core.wait(patience(core, pace), changed).await;
            continue;
        }
        let now_is = now();
        let due = pace.due(now_is);
        if due > now_is {
            core.wait(due, std::future::pending()).await;
            continue;
        }
        while !pipeline.is_full()
            && parts.len() < PARTS_MAX
            && let Some(due) = pace.take(now_is)
        {
            let correlation_id = pipeline.next_correlation_id();
            let size = source.next(correlation_id, due, &mut parts);
            pipeline.depart(Flight { correlation_id, size, due });
            if pace.is_scheduled() {
                core.tally.on_sent(due, now_is);
            }
        }
        writer.send(&parts).await.context("sending")?;
        parts.clear();
        if !acknowledged {
            for flight in pipeline.abandon() {
                core.tally.on_acknowledged(flight.size, flight.due, now());
            }
            // A socket with room never waits, and others have something to send too.
            runtime::task::yield_now().await;
        }
    }
}

async fn receive(
    core: &LoadCore,
    pipeline: &Pipeline,
    mut frames: Frames,
    version: i16,
) -> anyhow::Result<()> {
    loop {
        let frame = frames.next().await?;
        let at = now();
        let (correlation_id, answer) = decode::<ProduceResponse>(frame, version)?;
        let Some(flight) = pipeline.arrive(correlation_id) else {
            bail!("an answer to a request that was not sent");
        };
        judge(core, flight, &answer, at);
    }
}

/// Counts the request as acknowledged if every batch was taken, else each refusal by its name.
fn judge(core: &LoadCore, flight: Flight, answer: &ProduceResponse, at: Instant) {
    let answers = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
    let (mut taken, mut refused) = (0, 0);
    for partition in answers {
        if partition.error_code == ErrorCode::NONE {
            taken += 1;
        } else {
            refused += 1;
            core.tally.on_error(partition.error_code.name());
        }
    }
    if refused > 0 {
        return;
    }
    if taken != flight.size.batches {
        return core.tally.on_error("an answer about other partitions than asked");
    }
    core.tally.on_acknowledged(flight.size, flight.due, at);
}

const PRODUCER_ID_PATIENCE: Duration = Duration::from_secs(30);
const RETRY_PAUSE: Duration = Duration::from_millis(50);
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// How long a backlog is worked off behind the end.
const BACKLOG_PATIENCE: Duration = Duration::from_secs(10);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Slices handed to one send; what is due beyond that goes with the next.
const PARTS_MAX: usize = 64;
