//! Behaviour: validates and appends one batch per partition in arrival order, then answers when
//! the topic's flush policy calls all of them committed. acks=1 and acks=all mean the same as long
//! as a partition has one replica; acks=0 is never answered, and any error with it ends the
//! connection.
//!
//! Versions: 3–13 are served; 0–2 are advertised and refused (KAFKA-18659). 8 lists the offending
//! records (KIP-467), 10 says who leads (KIP-951), 13 names topics by id (KIP-516).

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use metadata::topic_name::is_internal;
use protocol::batch::{self, BatchHeader, RejectedBatch, Rejection, ValidBatch};
use protocol::messages::produce::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceData,
    PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceData,
    TopicProduceResponse,
};
use protocol::{ErrorCode, Str};
use runtime::{task, time};
use storage::producer::SequenceError;
use storage::{AppendError, Appended, Log};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::shard::{
    LeaderHint, LocalTopic, Misrouted, Partition, TopicRef, Unavailable, produce_rules,
};

/// One partition's batch on its way.
enum Begun {
    /// Appended; to be answered when committed.
    Appended {
        log: Log,
        appended: Appended,
    },
    Refused(Refusal),
    /// Not appended: the partition is on its way to another slot, and the answer says to which.
    Moving(Rc<Partition>),
}

/// Why one batch was not appended.
#[derive(Default)]
struct Refusal {
    error: ErrorCode,
    /// What was wrong, for the log; and for the client, where Kafka gives it words too.
    message: Option<Str>,
    told: bool,
    records: Vec<BatchIndexAndErrorMessage>,
    log_start_offset: Option<i64>,
    leader: Option<LeaderHint>,
}

struct BegunTopic {
    name: Str,
    id: protocol::Uuid,
    partitions: Vec<(i32, Begun)>,
}

pub async fn handle(cx: Context, request: ProduceRequest) -> Outcome {
    let acks = request.acks;
    let timeout = Duration::from_millis(request.timeout_ms.max(0) as u64);
    let transactional = request.transactional_id.is_some();
    let mut begun = Vec::with_capacity(request.topic_data.len());
    let foreign = !transactional && request.topic_data.iter().any(has_transactional_batch);
    for topic in request.topic_data.into_iter().filter(|it| !it.partition_data.is_empty()) {
        let refused = match acks {
            _ if foreign => Some(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
            -1..=1 => None,
            _ => Some(ErrorCode::INVALID_REQUIRED_ACKS),
        };
        begun.push(begin_topic(&cx, topic, refused).await);
    }
    if acks == 0 {
        return silent(&begun);
    }
    Outcome::Later(Box::pin(answer(cx, begun, timeout)))
}

/// A transactional batch belongs to a request that names the transactional id, or the whole
/// request is refused.
fn has_transactional_batch(topic: &TopicProduceData) -> bool {
    let batches = topic.partition_data.iter().filter_map(|data| data.records.as_ref());
    let headers = batches.filter_map(|records| records.chunks().next());
    headers
        .filter_map(|bytes| BatchHeader::parse_prefix(bytes).ok())
        .any(|it| it.is_transactional())
}

/// acks=0: no answer; the client learns of an error by losing its connection.
fn silent(begun: &[BegunTopic]) -> Outcome {
    let all = begun.iter().flat_map(|topic| topic.partitions.iter().map(move |each| (topic, each)));
    for (topic, (index, begun)) in all {
        let (error, why) = match begun {
            Begun::Appended { .. } => continue,
            Begun::Refused(refusal) => (refusal.error, refusal.message.as_deref()),
            Begun::Moving(_) => (ErrorCode::NOT_LEADER_OR_FOLLOWER, None),
        };
        let (name, why) = (error.name(), why.unwrap_or(error.message()));
        return Outcome::Close(format!("acks=0 to {}-{index}: {name}: {why}", topic.name));
    }
    Outcome::Silent
}

async fn begin_topic(
    cx: &Context,
    topic: TopicProduceData,
    refused: Option<ErrorCode>,
) -> BegunTopic {
    let TopicProduceData { name, topic_id, partition_data } = topic;
    let mut partitions: Vec<(i32, Begun)> = Vec::with_capacity(partition_data.len());
    let last = LastMentions::of(&partition_data);
    for (place, data) in partition_data.iter().enumerate() {
        let index = data.index;
        // A partition named twice in one request is one append: the last batch counts.
        if !last.is_at(place, index) {
            continue;
        }
        let by_id = cx.version() >= FIRST_VERSION_WITH_IDS;
        let topic = if by_id { TopicRef::Id(topic_id) } else { TopicRef::Name(&name) };
        let outcome = match refused {
            None => begin(cx, topic, data).await,
            Some(error) => Err(Refusal::of(error)),
        };
        partitions.push((index, outcome.unwrap_or_else(Begun::Refused)));
        pause_if_long().await;
    }
    // The frame goes now, not when its records are committed.
    BegunTopic { name: name.detach(), id: topic_id, partitions }
}

/// Where each partition is named last. Few are compared with one another: that is the common case,
/// and needs no memory.
struct LastMentions<'a> {
    data: &'a [PartitionProduceData],
    places: BTreeMap<i32, usize>,
}

impl<'a> LastMentions<'a> {
    fn of(data: &'a [PartitionProduceData]) -> Self {
        let places = match data.len() <= COMPARED_MAX {
            true => BTreeMap::new(),
            false => data.iter().map(|each| each.index).zip(0..).collect(),
        };
        LastMentions { data, places }
    }

    fn is_at(&self, place: usize, index: i32) -> bool {
        match self.places.is_empty() {
            true => self.data[place + 1..].iter().all(|later| later.index != index),
            false => self.places.get(&index) == Some(&place),
        }
    }
}

async fn begin(
    cx: &Context,
    topic: TopicRef<'_>,
    data: &PartitionProduceData,
) -> Result<Begun, Refusal> {
    let (topic, partition) = cx.slot.find(topic, data.index)?;
    if is_internal(&topic.name) {
        let message = format!("{} is written by the broker only", topic.name);
        return Err(Refusal::with(ErrorCode::INVALID_TOPIC_EXCEPTION, message));
    }
    let raw = data.records.clone().map(|records| records.into_bytes()).unwrap_or_default();
    let batch = validate(cx, &topic, raw).await;
    let batch = batch.map_err(|rejected| refuse_batch(rejected, &partition))?;
    if batch.header().is_transactional() {
        return Err(refuse_transactional(cx.version()));
    }
    let records = batch.record_count();
    let bytes = batch.size_in_bytes();
    let log = match partition.log() {
        Ok(log) => log,
        Err(why) => {
            partition.turn_away(batch.header());
            return match why {
                Unavailable::Moving => Ok(Begun::Moving(partition)),
                why => Err(refuse_unavailable(&why)),
            };
        }
    };
    let now_ms = time::wall_ms();
    let appended = match log.append(&batch, partition.leader_epoch(), now_ms).await {
        Err(AppendError::Unavailable(_)) if partition.is_moving() => {
            return Ok(Begun::Moving(partition));
        }
        appended => appended.map_err(|why| refuse_append(&why, &partition))?,
    };
    if !appended.duplicate {
        let (records, bytes) = (records as u64, bytes as u64);
        cx.slot.metrics.records_produced.add(records);
        cx.slot.metrics.bytes_produced.add(bytes);
        topic.traffic.produced_records.add(records);
        topic.traffic.produced_bytes.add(bytes);
        partition.timeline().note(appended.base_offset, now_ms);
    }
    Ok(Begun::Appended { log, appended })
}

/// Validates here when that is quick, on another thread when it may take long.
async fn validate(
    cx: &Context,
    topic: &LocalTopic,
    raw: Bytes,
) -> Result<ValidBatch, RejectedBatch> {
    let rules = produce_rules(&topic.settings(), cx.version(), time::wall_ms());
    if batch::estimated_micros(&raw, &rules) <= INLINE_MICROS_MAX
        && let Some(decided) = batch::validate_within(raw.clone(), &rules, INLINE_BYTES_MAX)
    {
        return decided;
    }
    task::blocking(move || batch::validate_for_append(raw, &rules)).await
}

fn refuse_batch(rejected: RejectedBatch, partition: &Partition) -> Refusal {
    let records = rejected.record_faults.iter().map(|fault| BatchIndexAndErrorMessage {
        batch_index: fault.batch_index,
        batch_index_error_message: Some(Str::from(fault.kind.to_string())),
    });
    let log_start_offset =
        if rejected.error.tells_log_start_offset() { partition.log_start_offset() } else { None };
    Refusal {
        error: ErrorCode(rejected.error.code()),
        told: !rejected.record_faults.is_empty() || is_unreadable(&rejected.error),
        message: Some(Str::from(rejected.error.to_string())),
        records: records.collect(),
        log_start_offset,
        leader: None,
    }
}

/// Bytes that cannot even be walked get words, as in Kafka.
fn is_unreadable(error: &Rejection) -> bool {
    matches!(error, Rejection::BatchLength(..OLD_BATCH_LENGTH_MIN))
}

fn refuse_unavailable(why: &Unavailable) -> Refusal {
    Refusal::with(why.code(), why.to_string())
}

fn refuse_append(why: &AppendError, partition: &Partition) -> Refusal {
    let error = match why {
        AppendError::Sequence(SequenceError::StaleEpoch { .. }) => {
            ErrorCode::INVALID_PRODUCER_EPOCH
        }
        AppendError::Sequence(SequenceError::NoSequence { .. }) => ErrorCode::INVALID_RECORD,
        AppendError::Sequence(_) => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        AppendError::TooLarge { .. } => ErrorCode::RECORD_LIST_TOO_LARGE,
        AppendError::Unavailable(_) => ErrorCode::NOT_LEADER_OR_FOLLOWER,
        AppendError::NoSpace { .. }
        | AppendError::Io(_)
        | AppendError::Read(_)
        | AppendError::Batch(_)
        | AppendError::OutOfOrder { .. }
        | AppendError::StaleEpoch { .. }
        | AppendError::Checksum { .. } => ErrorCode::KAFKA_STORAGE_ERROR,
    };
    let log_start_offset = match error {
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER | ErrorCode::INVALID_PRODUCER_EPOCH => {
            partition.log_start_offset()
        }
        _ => None,
    };
    Refusal { log_start_offset, ..Refusal::with(error, why.to_string()) }
}

/// Transactions come later: no batch can belong to one yet, and the client is told so.
fn refuse_transactional(version: i16) -> Refusal {
    let error = match version {
        ..FIRST_VERSION_WITH_ABORTABLE => ErrorCode::INVALID_TXN_STATE,
        _ => ErrorCode::TRANSACTION_ABORTABLE,
    };
    Refusal::with(error, "the partition is not part of an ongoing transaction".to_owned())
}

impl Refusal {
    fn of(error: ErrorCode) -> Refusal {
        Refusal { error, ..Refusal::default() }
    }

    fn with(error: ErrorCode, message: String) -> Refusal {
        Refusal { error, message: Some(Str::from(message)), ..Refusal::default() }
    }
}

impl From<Misrouted> for Refusal {
    fn from(misrouted: Misrouted) -> Refusal {
        Refusal { leader: misrouted.leader, ..Refusal::of(misrouted.error) }
    }
}

/// Waits until everything appended is committed, then encodes the answer.
async fn answer(cx: Context, begun: Vec<BegunTopic>, timeout: Duration) -> Outcome {
    let deadline = time::now() + timeout.max(COMMIT_TIMEOUT_MIN);
    let mut response = ProduceResponse::default();
    for topic in begun {
        let mut out = TopicProduceResponse {
            name: topic.name,
            topic_id: topic.id,
            partition_responses: Vec::with_capacity(topic.partitions.len()),
        };
        for (index, begun) in topic.partitions {
            let each = match begun {
                Begun::Appended { log, appended } => committed(&log, appended, deadline).await,
                Begun::Refused(refusal) => Err(refusal),
                Begun::Moving(partition) => {
                    let topic = match cx.version() {
                        ..FIRST_VERSION_WITH_IDS => TopicRef::Name(&partition.topic),
                        _ => TopicRef::Id(partition.topic_id),
                    };
                    Err(who_leads_now(&cx, topic, &partition, deadline).await)
                }
            };
            out.partition_responses.push(match each {
                Ok(each) => PartitionProduceResponse { index, ..each },
                Err(refusal) => refused(&cx, index, refusal, &mut response.node_endpoints),
            });
            if out.partition_responses.len().is_multiple_of(PIECE_PARTITIONS) {
                pause_if_long().await;
            }
        }
        response.responses.push(out);
    }
    cx.reply_long(response).await
}

/// Where to send a batch that came while its partition was moving.
async fn who_leads_now(
    cx: &Context,
    topic: TopicRef<'_>,
    partition: &Partition,
    deadline: time::Instant,
) -> Refusal {
    let moved = time::within(deadline, partition.moved()).await;
    match cx.slot.find(topic, partition.index) {
        Err(misrouted) if moved.is_ok() => misrouted.into(),
        _ => Refusal::of(ErrorCode::NOT_LEADER_OR_FOLLOWER),
    }
}

async fn committed(
    log: &Log,
    appended: Appended,
    deadline: time::Instant,
) -> Result<PartitionProduceResponse, Refusal> {
    match time::within(deadline, log.committed(appended.last_offset + 1)).await {
        Ok(Ok(())) => Ok(PartitionProduceResponse {
            base_offset: appended.base_offset,
            log_append_time_ms: appended.log_append_time_ms,
            log_start_offset: log.log_start_offset(),
            ..PartitionProduceResponse::default()
        }),
        Ok(Err(why)) => Err(Refusal::with(ErrorCode::KAFKA_STORAGE_ERROR, why.to_string())),
        Err(_) => Err(Refusal::of(ErrorCode::REQUEST_TIMED_OUT)),
    }
}

fn refused(
    cx: &Context,
    index: i32,
    refusal: Refusal,
    endpoints: &mut Vec<NodeEndpoint>,
) -> PartitionProduceResponse {
    let mut out = PartitionProduceResponse {
        index,
        error_code: refusal.error,
        base_offset: -1,
        log_start_offset: refusal.log_start_offset.unwrap_or(-1),
        record_errors: refusal.records,
        error_message: refusal.message.filter(|_| refusal.told),
        ..PartitionProduceResponse::default()
    };
    if let Some(leader) = refusal.leader.filter(|_| cx.version() >= FIRST_VERSION_WITH_LEADERS) {
        out.current_leader =
            LeaderIdAndEpoch { leader_id: leader.node.0, leader_epoch: leader.epoch };
        if let Some(node) = cx.slot.image().node(leader.node)
            && endpoints.iter().all(|each| each.node_id != leader.node.0)
        {
            let port = i32::from(node.port);
            let (host, rack) = (node.host.clone(), node.rack.clone());
            endpoints.push(NodeEndpoint { node_id: leader.node.0, host, port, rack });
        }
    }
    out
}

/// Partitions that are answered in one go.
const PIECE_PARTITIONS: usize = 1000;
/// So many partitions of a request are compared with one another.
const COMPARED_MAX: usize = 16;
/// The smallest length of a batch in any format.
const OLD_BATCH_LENGTH_MIN: i32 = 14;
const FIRST_VERSION_WITH_LEADERS: i16 = 10;
const FIRST_VERSION_WITH_ABORTABLE: i16 = 11;
const FIRST_VERSION_WITH_IDS: i16 = 13;
/// Validation expected to take longer leaves the core's loop.
const INLINE_MICROS_MAX: u64 = 2_000;
/// Decompressed bytes that are walked on the core's loop at most.
const INLINE_BYTES_MAX: usize = 4 << 20;
/// A client that gives the broker no time to commit would only retry what is on its way.
const COMMIT_TIMEOUT_MIN: Duration = Duration::from_millis(100);
