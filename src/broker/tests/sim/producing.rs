//! Producers: with and without idempotence, with every kind of acknowledgement, always pipelined.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use protocol::batch::{BatchBuilder, Codec, Compression, NewRecord};
use protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use protocol::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, ProduceResponse,
    TopicProduceData,
};
use protocol::{ErrorCode, Records};
use runtime::time::{Instant, now, sleep, wall_ms};

use super::client::{Answer, Client, Lost};
use super::history::{Outcome, Produce, Sequence, Value};
use super::run::{PAUSE, Run, Session, TIMEOUT, Topic, below, one_in};

/// Batches of one producer that may be in flight at once.
const IN_FLIGHT_MAX: usize = 5;

/// A producer whose oldest batch nobody takes for so long is stuck: no fault lasts as long.
const STUCK_AFTER: Duration = Duration::from_secs(40);

/// So soon it gives up where acknowledged batches may be lost, for then a gap cannot be filled.
const GAP_STAYS_AFTER: Duration = Duration::from_secs(4);

/// A batch and what it is known by in the history.
#[derive(Clone)]
struct Batch {
    values: Vec<Value>,
    sequence: Option<Sequence>,
    bytes: Bytes,
}

/// A producer that writes to one partition until the run stops, and then until all is acknowledged.
pub struct Producer {
    session: Session,
    topic: Rc<Topic>,
    partition: i32,
    acks: i16,
    identity: Option<(i64, i16)>,
    next_sequence: i32,
    window: VecDeque<Batch>,
    last_progress: Instant,
    /// How long it rests between two rounds, at most.
    pub pause_ms: u64,
}

/// What one answer means for the batch.
enum Verdict {
    Done,
    Again,
    /// The topic is gone.
    GiveUp,
}

impl Producer {
    pub fn new(run: &Rc<Run>, topic: Rc<Topic>, acks: i16) -> Self {
        let partition = below(topic.partitions.get() as u64) as i32;
        Self {
            session: Session::new(run),
            topic,
            partition,
            acks,
            identity: None,
            next_sequence: 0,
            window: VecDeque::new(),
            last_progress: now(),
            pause_ms: 0,
        }
    }

    fn run(&self) -> Rc<Run> {
        self.session.run.clone()
    }

    /// Sends batches of an idempotent producer, each until it is acknowledged, in their order.
    pub async fn produce_idempotently(mut self, batches: u64) {
        self.acks = -1;
        let mut left = batches;
        while left > 0 || !self.window.is_empty() {
            let stopping = self.run().stopping.get();
            if stopping {
                left = 0;
            }
            if self.window.is_empty() {
                self.last_progress = now();
            }
            if self.identity.is_none() && !self.get_identity().await {
                sleep(PAUSE).await;
                continue;
            }
            while left > 0 && self.window.len() < IN_FLIGHT_MAX {
                let batch = self.make_batch();
                self.window.push_back(batch);
                left -= 1;
                if one_in(3) {
                    break;
                }
            }
            if !self.send_window().await {
                return;
            }
            self.rest().await;
        }
    }

    /// Sends each batch once, some at a time, and never again.
    pub async fn produce_plainly(mut self, batches: u64) {
        let mut left = batches;
        while left > 0 && !self.run().stopping.get() && !self.topic.deleted.get() {
            for _ in 0..=below(3) {
                let batch = self.make_batch();
                self.window.push_back(batch);
                left = left.saturating_sub(1);
            }
            self.send_once().await;
            self.window.clear();
            self.rest().await;
        }
    }

    async fn rest(&self) {
        if self.pause_ms > 0 && !self.run().stopping.get() {
            sleep(Duration::from_millis(below(self.pause_ms))).await;
        }
    }

    async fn get_identity(&mut self) -> bool {
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: i32::MAX,
            ..InitProducerIdRequest::default()
        };
        let Ok(node) = self.session.any_node().await else { return false };
        let answer: Result<InitProducerIdResponse, Lost> = node.call(&request, 4, TIMEOUT).await;
        if let Ok(answer) = answer
            && answer.error_code == ErrorCode::NONE
        {
            self.identity = Some((answer.producer_id, answer.producer_epoch));
            self.next_sequence = 0;
        }
        self.identity.is_some()
    }

    fn make_batch(&mut self) -> Batch {
        let count = if one_in(8) { 1 + below(60) } else { 1 + below(4) };
        let codec = if one_in(4) { Codec::ALL[below(5) as usize] } else { Codec::None };
        let mut builder = BatchBuilder::new(Compression::of(codec));
        let mut sequence = None;
        if let Some((producer_id, epoch)) = self.identity {
            let first = self.next_sequence;
            builder = builder.producer(producer_id, epoch, first);
            sequence = Some(Sequence { producer_id, epoch, first });
            self.next_sequence = first.wrapping_add(count as i32);
        }
        let padding = [0x5a; 3000];
        let mut values = Vec::new();
        for _ in 0..count {
            let value = self.run().history.borrow_mut().next_value();
            let size = if one_in(10) { below(3000) } else { below(100) } as usize;
            let body = [&value.to_be_bytes()[..], &padding[..size]].concat();
            let timestamp = wall_ms() - below(2000) as i64;
            builder.append(&NewRecord { timestamp, key: None, value: Some(&body), headers: &[] });
            values.push(value);
        }
        Batch { values, sequence, bytes: builder.build() }
    }

    fn request(&self, batch: &Batch) -> (ProduceRequest, i16) {
        let by_id = self.topic.shares_name || one_in(2);
        let partition = PartitionProduceData {
            index: self.partition,
            records: Some(Records::from(batch.bytes.clone())),
        };
        let topic = TopicProduceData {
            name: self.topic.name.clone(),
            topic_id: self.topic.id,
            partition_data: vec![partition],
        };
        let request = ProduceRequest {
            transactional_id: None,
            acks: self.acks,
            timeout_ms: 3000,
            topic_data: vec![topic],
        };
        // Version 7 brought zstd.
        (request, if by_id { 13 } else { 7 + below(6) as i16 })
    }

    /// Notes that a batch is about to be sent; gives its place in the history.
    fn note(&self, batch: &Batch) -> usize {
        let run = self.run();
        let span = run.span();
        let mut history = run.history.borrow_mut();
        history.produces.push(Produce {
            key: self.topic.key(self.partition),
            span,
            acks: self.acks,
            values: batch.values.clone(),
            sequence: batch.sequence,
            outcome: Outcome::Unknown,
            error: None,
        });
        history.produces.len() - 1
    }

    /// Sends what is in the window in one go. False when the topic is gone.
    async fn send_window(&mut self) -> bool {
        let Some(client) = self.find_leader().await else { return !self.topic.deleted.get() };
        let window = self.window.clone();
        let mut answers = VecDeque::new();
        for batch in window {
            let place = self.note(&batch);
            let (request, version) = self.request(&batch);
            let answer: Answer<ProduceResponse> = client.send(&request, version);
            answers.push_back((place, answer));
        }
        let mut in_order = true;
        for (place, answer) in answers {
            match self.settle(place, answer.wait(TIMEOUT).await, &client) {
                Verdict::GiveUp => return false,
                Verdict::Done if in_order => {
                    self.window.pop_front();
                    self.last_progress = now();
                }
                // It was appended behind a gap, or is done out of order: the resend will tell.
                Verdict::Done => {}
                Verdict::Again => in_order = false,
            }
        }
        if !in_order {
            self.check_stuck();
            sleep(PAUSE).await;
        }
        true
    }

    async fn send_once(&mut self) {
        let Some(client) = self.find_leader().await else { return };
        let window = self.window.clone();
        let mut answers = VecDeque::new();
        for batch in window {
            let place = self.note(&batch);
            let (request, version) = self.request(&batch);
            if self.acks == 0 {
                client.send_unanswered(&request, version);
            } else {
                let answer: Answer<ProduceResponse> = client.send(&request, version);
                answers.push_back((place, answer));
            }
        }
        for (place, answer) in answers {
            self.settle(place, answer.wait(TIMEOUT).await, &client);
        }
    }

    async fn find_leader(&mut self) -> Option<Rc<Client>> {
        match self.session.leader(&self.topic, self.partition).await {
            Ok(client) => Some(client),
            Err(Lost) => {
                self.session.forget_leaders();
                sleep(PAUSE).await;
                None
            }
        }
    }

    fn settle(
        &mut self,
        place: usize,
        answer: Result<ProduceResponse, Lost>,
        client: &Client,
    ) -> Verdict {
        let Ok(answer) = answer else {
            self.session.drop_connection(client);
            self.session.forget_leaders();
            return if self.topic.deleted.get() { Verdict::GiveUp } else { Verdict::Again };
        };
        let answer = &answer.responses[0].partition_responses[0];
        let run = self.run();
        let mut history = run.history.borrow_mut();
        let produce = &mut history.produces[place];
        produce.span.completed = now().as_nanos();
        produce.outcome = outcome_of(answer);
        produce.error = Some(answer.error_code);
        match answer.error_code {
            ErrorCode::NONE => {
                run.reach("produce acknowledged");
                Verdict::Done
            }
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::UNKNOWN_TOPIC_ID
                if self.topic.deleted.get() =>
            {
                run.reach("produce to a deleted topic refused");
                Verdict::GiveUp
            }
            error => {
                run.reach(if error == ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER {
                    "produce refused behind a gap"
                } else {
                    "produce refused"
                });
                self.session.forget_leaders();
                Verdict::Again
            }
        }
    }

    /// Where acknowledged batches may be lost, a gap can never be filled: begin anew. Elsewhere a
    /// producer that nothing helps is a finding.
    fn check_stuck(&mut self) {
        let run = self.run();
        let key = self.topic.key(self.partition);
        let waited = now().since(self.last_progress);
        let last = run.history.borrow().produces.iter().rfind(|p| p.key == key).cloned();
        let gap = last.as_ref().and_then(|last| last.error)
            == Some(ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER);
        if gap && waited > GAP_STAYS_AFTER && run.history.borrow().may_have_lost(key) {
            run.reach("producer began anew after a loss");
        } else if waited > STUCK_AFTER {
            run.find(format!("an idempotent producer is stuck: {last:?}"));
        } else {
            return;
        }
        self.window.clear();
        self.identity = None;
        self.last_progress = now();
    }
}

fn outcome_of(answer: &PartitionProduceResponse) -> Outcome {
    match answer.error_code {
        ErrorCode::NONE => Outcome::Acknowledged { base_offset: answer.base_offset },
        error if SURELY_REFUSED.contains(&error) => Outcome::Refused(error),
        _ => Outcome::Unknown,
    }
}

const SURELY_REFUSED: [ErrorCode; 8] = [
    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode::UNKNOWN_TOPIC_ID,
    ErrorCode::NOT_LEADER_OR_FOLLOWER,
    ErrorCode::CORRUPT_MESSAGE,
    ErrorCode::INVALID_RECORD,
    ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode::MESSAGE_TOO_LARGE,
    ErrorCode::INVALID_TIMESTAMP,
];
