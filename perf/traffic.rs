//! Requests on their way and their answers: one task sends, one for each connection receives, a
//! third watches over them and opens again what is lost.

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use protocol::{ErrorCode, Message};
use runtime::net::Writer;
use runtime::time::{Instant, now, within};

use crate::node::{Frames, Node, decode};
use crate::pace::Pace;
use crate::pipeline::{Flight, Pipeline};
use crate::requests::Size;
use crate::stage::{Group, LoadCore};

/// Requests of one kind, one after the other, and what their answers say.
pub trait Requests {
    type Answer: Message + 'static;

    /// By which of its connections the next one leaves.
    fn connection(&self) -> usize {
        0
    }

    /// Puts the next one, due at `due`, behind `parts`.
    fn next(&mut self, correlation_id: i32, due: Instant, parts: &mut Vec<Bytes>) -> Size;

    /// What became of each partition.
    fn verdicts(answer: &Self::Answer) -> impl Iterator<Item = ErrorCode>;

    /// Partitions that a request of this size names.
    fn partitions(size: Size) -> u64;
}

/// Requests and the connections for them, which all may use.
pub struct Opened<R> {
    pub nodes: Vec<Node>,
    pub requests: R,
}

/// How requests leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manner {
    /// Requests that wait for their answers at the same time, all connections of one sender
    /// together.
    pub in_flight: usize,
    /// Whether they are answered at all.
    pub answered: bool,
}

/// Sends until the end; opens the connections again when one is lost.
pub async fn run<R: Requests + 'static>(
    core: LoadCore,
    manner: Manner,
    mut pace: Pace,
    opened: Opened<R>,
    open_again: impl AsyncFn() -> anyhow::Result<Opened<R>>,
) {
    let mut next = Some(opened);
    while let Some(opened) = next.take() {
        run_once(&core, manner, &mut pace, opened).await;
        while next.is_none() && !is_over(&core, &pace) {
            match open_again().await {
                Ok(opened) => next = Some(opened),
                Err(why) => {
                    core.tally.on_error(&format!("{why:#}"));
                    core.wait(now() + RECONNECT_PAUSE, std::future::pending()).await;
                }
            }
        }
    }
    if !core.is_interrupted() {
        core.tally.on_errors("due and not sent", pace.behind(core.tally.window().end));
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

async fn run_once<R: Requests + 'static>(
    core: &LoadCore,
    manner: Manner,
    pace: &mut Pace,
    opened: Opened<R>,
) {
    let Opened { nodes, mut requests } = opened;
    let pipeline = Rc::new(Pipeline::new(manner.in_flight));
    let (mut writers, mut closers) = (Vec::new(), Vec::new());
    let receivers = Group::default();
    for Node { frames, writer, versions, .. } in nodes {
        writers.push(writer);
        closers.push(frames.closer());
        let (receiving, core) = (Rc::clone(&pipeline), core.clone());
        let version = versions.of(<R::Answer as Message>::KEY);
        receivers.spawn(async move {
            if let Err(why) = receive::<R>(&core, &receiving, frames, version).await {
                receiving.fail(format!("{why:#}"));
            }
        });
    }
    if let Err(why) = send(core, manner, &pipeline, pace, &mut requests, &mut writers).await {
        pipeline.fail(format!("{why:#}"));
    }
    drain(&pipeline).await;
    if let Some(why) = pipeline.failure() {
        core.tally.on_error(&why);
    }
    closers.iter().for_each(|closer| closer.close());
    receivers.join().await;
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

async fn send<R: Requests>(
    core: &LoadCore,
    manner: Manner,
    pipeline: &Pipeline,
    pace: &mut Pace,
    requests: &mut R,
    writers: &mut [Writer],
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
        let connection = requests.connection();
        while !pipeline.is_full()
            && parts.len() < PARTS_MAX
            && requests.connection() == connection
            && let Some(due) = pace.take(now_is)
        {
            let correlation_id = pipeline.next_correlation_id();
            let size = requests.next(correlation_id, due, &mut parts);
            pipeline.depart(Flight { correlation_id, size, due });
            if pace.is_scheduled() {
                core.tally.on_sent(due, now_is);
            }
        }
        writers[connection].send(&parts).await.context("sending")?;
        parts.clear();
        if !manner.answered {
            for flight in pipeline.abandon() {
                core.tally.on_acknowledged(flight.size, flight.due, now());
            }
            // A socket with room never waits, and others have something to send too.
            runtime::task::yield_now().await;
        }
    }
}

async fn receive<R: Requests>(
    core: &LoadCore,
    pipeline: &Pipeline,
    mut frames: Frames,
    version: anyhow::Result<i16>,
) -> anyhow::Result<()> {
    let version = version?;
    loop {
        let frame = frames.next().await?;
        let at = now();
        let (correlation_id, answer) = decode::<R::Answer>(frame, version)?;
        let Some(flight) = pipeline.arrive(correlation_id) else {
            bail!("an answer to a request that was not sent");
        };
        judge::<R>(core, flight, &answer, at);
    }
}

/// Counts the request as acknowledged if all of it was taken, else each refusal by its name.
fn judge<R: Requests>(core: &LoadCore, flight: Flight, answer: &R::Answer, at: Instant) {
    let (mut taken, mut refused) = (0, 0);
    for code in R::verdicts(answer) {
        if code == ErrorCode::NONE {
            taken += 1;
        } else {
            refused += 1;
            core.tally.on_error(code.name());
        }
    }
    if refused > 0 {
        return;
    }
    if taken != R::partitions(flight.size) {
        return core.tally.on_error("an answer about other partitions than asked");
    }
    core.tally.on_acknowledged(flight.size, flight.due, at);
}

const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// How long a backlog is worked off behind the end.
const BACKLOG_PATIENCE: Duration = Duration::from_secs(10);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Slices handed to one send; what is due beyond that goes with the next.
const PARTS_MAX: usize = 64;
