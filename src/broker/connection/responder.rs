//! Sends answers in request order.
//!
//! The queue between reader and responder is the pipeline of the connection. Waiting answers are
//! futures that the responder polls in order; what is ready behind the first leaves with it in one
//! vectored write.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_lite::future::poll_once;
use runtime::local::{Event, Lease, Queue};
use runtime::net::Writer;
use runtime::time::{self, Instant};

use crate::connection::{Answer, Connection, Outcome, limits};
use crate::dispatch::ApiIndex;
use crate::slot::{RequestTimes, Slot};

/// A request whose answer is ready or on its way.
pub(super) struct Begun {
    pub request: Request,
    pub outcome: Outcome,
}

/// What is remembered of a request for metrics.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub api: ApiIndex,
    /// When its last byte came, and when its handler began.
    pub arrived: Instant,
    pub begun: Instant,
}

impl Request {
    /// Its answer is ready now.
    fn done(self) -> (ApiIndex, RequestTimes) {
        let (arrived, begun, done) = (self.arrived, self.begun, time::now());
        (self.api, RequestTimes { arrived, begun, done, waited: Duration::ZERO })
    }
}

/// The bounded queue of begun requests of one connection.
pub(super) struct Pipeline {
    queue: Queue<Begun>,
    sent: Event,
    ended: Cell<bool>,
}

impl Pipeline {
    /// Of at most `requests` at a time (queued.max.requests).
    pub fn bounded(requests: usize) -> Pipeline {
        Pipeline {
            queue: Queue::bounded(requests.clamp(1, limits::IN_FLIGHT_MAX)),
            sent: Event::new(),
            ended: Cell::new(false),
        }
    }

    /// Queues an answer; waits while too much is unsent. False when the responder has ended.
    pub async fn push(&self, connection: &Connection, begun: Begun) -> bool {
        if let Outcome::Reply(answer) = &begun.outcome {
            connection.unsent_bytes.set(connection.unsent_bytes.get() + answer.bytes());
        }
        if self.queue.push(begun).await.is_err() {
            return false;
        }
        while connection.unsent_bytes.get() > limits::UNSENT_BYTES_MAX && !self.ended.get() {
            self.sent.listen().await;
        }
        !self.ended.get()
    }

    /// No more requests will come; what is queued is still answered.
    pub fn close(&self) {
        self.queue.close();
    }

    /// Waits until the responder has sent what it could.
    pub async fn ended(&self) {
        while !self.ended.get() {
            self.sent.listen().await;
        }
    }
}

/// Answers ready to leave in one vectored write.
#[derive(Default)]
struct Outbox {
    chunks: Vec<Bytes>,
    requests: Vec<(ApiIndex, RequestTimes)>,
    counted_bytes: usize,
    leases: Vec<Lease>,
    close: bool,
}

/// Runs until the pipeline is closed and empty, or the client cannot be written to.
pub(super) async fn run(
    slot: Rc<Slot>,
    connection: Rc<Connection>,
    pipeline: Rc<Pipeline>,
    mut to: Writer,
) {
    let mut waiting = None;
    loop {
        let first = match waiting.take() {
            Some(begun) => begun,
            None => match pipeline.queue.pop().await {
                Some(begun) => begun,
                None => break,
            },
        };
        let outbox = collect(&slot, &connection, &pipeline, first, &mut waiting).await;
        if !flush(&slot, &connection, &pipeline, &mut to, outbox).await {
            break;
        }
    }
    pipeline.queue.close();
    while pipeline.queue.try_pop().is_some() {}
    to.shutdown();
    connection.closer.close();
    pipeline.ended.set(true);
    pipeline.sent.notify_all();
}

/// Waits for the first answer and adds what is ready behind it.
async fn collect(
    slot: &Slot,
    connection: &Connection,
    pipeline: &Pipeline,
    first: Begun,
    waiting: &mut Option<Begun>,
) -> Outbox {
    let mut outbox = Outbox::default();
    let outcome = finish(first.outcome).await;
    outbox.take(slot, connection, first.request.done(), outcome);
    while !outbox.full() {
        let Some(next) = pipeline.queue.try_pop() else { break };
        match poll_ready(next.outcome).await {
            Ok(outcome) => outbox.take(slot, connection, next.request.done(), outcome),
            Err(outcome) => {
                *waiting = Some(Begun { request: next.request, outcome });
                break;
            }
        }
    }
    outbox
}

/// Sends an outbox. False when the connection has ended.
async fn flush(
    slot: &Slot,
    connection: &Connection,
    pipeline: &Pipeline,
    to: &mut Writer,
    outbox: Outbox,
) -> bool {
    if !outbox.chunks.is_empty() {
        let deadline = time::now() + limits::SEND_DEADLINE;
        match time::within(deadline, to.send(&outbox.chunks)).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => {
                tracing::debug!(peer = %connection.peer, %why, "cannot send");
                return false;
            }
            Err(_) => {
                slot.log_close(connection, "the client did not take its answer within 60 s");
                return false;
            }
        }
        let bytes: usize = outbox.chunks.iter().map(Bytes::len).sum();
        slot.metrics.bytes_out.add(bytes as u64);
    }
    connection.unsent_bytes.set(connection.unsent_bytes.get() - outbox.counted_bytes);
    pipeline.sent.notify_all();
    let now = time::now();
    connection.last_active.set(now);
    for (api, times) in outbox.requests {
        slot.metrics.on_answered(api, times, now);
    }
    !outbox.close
}

impl Outbox {
    fn take(
        &mut self,
        slot: &Slot,
        connection: &Connection,
        (api, times): (ApiIndex, RequestTimes),
        (outcome, counted): (Outcome, bool),
    ) {
        match outcome {
            Outcome::Reply(Answer { chunks, lease, waited }) => {
                self.leases.extend(lease);
                if counted {
                    self.counted_bytes += chunks.iter().map(Bytes::len).sum::<usize>();
                }
                self.chunks.extend(chunks);
                self.requests.push((api, RequestTimes { waited, ..times }));
            }
            Outcome::Silent => {}
            Outcome::Close(why) => {
                slot.log_close(connection, &why);
                self.close = true;
            }
            Outcome::Later(_) => unreachable!("a finished answer waits for nothing"),
        }
    }

    fn full(&self) -> bool {
        self.close || self.chunks.len() >= limits::SEND_BATCH_CHUNKS_MAX
    }
}

/// Waits for the answer; true beside it when its bytes were counted as unsent on arrival.
async fn finish(outcome: Outcome) -> (Outcome, bool) {
    let counted = matches!(outcome, Outcome::Reply(_));
    let mut outcome = outcome;
    while let Outcome::Later(future) = outcome {
        outcome = future.await;
    }
    (outcome, counted)
}

/// The answer if it is ready now, else the outcome as it was.
async fn poll_ready(outcome: Outcome) -> Result<(Outcome, bool), Outcome> {
    let Outcome::Later(mut future) = outcome else { return Ok((outcome, true)) };
    match poll_once(future.as_mut()).await {
        Some(next @ Outcome::Later(_)) => Err(next),
        Some(done) => Ok((done, false)),
        None => Err(Outcome::Later(future)),
    }
}
