//! Behaviour: reads record batches of many partitions; waits up to `max_wait_ms` until
//! `min_bytes` are there, unless something must be said at once (an error, a diverging epoch).
//! Sessions (KIP-227) are kept per node. Records leave as slices of the buffers they lie in.
//!
//! Versions: 4–18. 7 sessions, 9 leader epochs (KIP-320), 12 diverging epochs (KIP-595), 13 topic
//! ids (KIP-516), 16 leader hints (KIP-951).

use std::time::Duration;

use protocol::messages::fetch::{
    FetchRequest, FetchResponse, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint,
    PartitionData,
};
use protocol::{ErrorCode, Records, Str, Uuid};
use runtime::{task, time};

use crate::connection::{Answer, Outcome};
use crate::dispatch::{Context, Pace};
use crate::fetch::{
    Begun, Interest, Kind, Limits, News, PartitionKey, PartitionRead, ReadPlan, Reads, Reference,
    Session, Target, TopicKey, Wanted, read_all,
};

pub async fn handle(cx: Context, request: FetchRequest) -> Outcome {
    if let Some(error) = refusal(&cx, &request) {
        return refuse_all(&cx, &request, error).await;
    }
    Outcome::Later(Box::pin(fetch(cx, request)))
}

/// What makes the whole request wrong. No partition has a follower, and one that merely says so
/// must not move a high watermark (CVE-2018-1288).
fn refusal(cx: &Context, request: &FetchRequest) -> Option<ErrorCode> {
    let replica =
        if cx.version() >= 15 { request.replica_state.replica_id } else { request.replica_id };
    match (replica, request.isolation_level) {
        (0.., _) => Some(ErrorCode::NOT_LEADER_OR_FOLLOWER),
        (_, 0 | 1) => None,
        _ => Some(ErrorCode::INVALID_REQUEST),
    }
}

async fn fetch(cx: Context, request: FetchRequest) -> Outcome {
    let by_id = cx.version() >= FIRST_VERSION_WITH_IDS;
    let reference = Reference { id: request.session_id, epoch: request.session_epoch };
    let limits = limits(&cx, &request);
    let wait = Duration::from_millis(request.max_wait_ms.max(0) as u64);
    let min_bytes = request.min_bytes;
    let begun = cx.slot.sessions.borrow_mut().begin(time::now(), reference, by_id);
    let mut begun = match begun {
        Ok(begun) => begun,
        Err(refused) => return refuse_session(&cx, refused.0),
    };
    let mut plan = plan(&cx, request, by_id, &mut begun).await;
    drop_retired(&cx).await;
    let mut waited = Duration::ZERO;
    let deadline = time::now() + wait;
    let reads = read_or_wait(&cx, &mut plan, limits, min_bytes, (deadline, &mut waited)).await;
    match answer(&cx, begun, (by_id, limits), plan, reads).await {
        Outcome::Reply(answer) => Outcome::Reply(Answer { waited, ..answer }),
        other => other,
    }
}

fn limits(cx: &Context, request: &FetchRequest) -> Limits {
    let broker_max = cx.slot.settings().fetch_max_bytes;
    // A quarter of what is free, so that many slow readers cannot take all of it between them.
    let budget = &cx.slot.answer_budget;
    let share = ((budget.limit() - budget.used()) / 4).max(ANSWER_BYTES_ALWAYS);
    let bytes_max = (request.max_bytes.clamp(0, broker_max) as usize).min(share);
    Limits { bytes_max, committed_only: request.isolation_level == 1 }
}

/// Everything to read; a session hears what the request changes in it.
async fn plan(cx: &Context, request: FetchRequest, by_id: bool, begun: &mut Begun) -> ReadPlan {
    let image = cx.slot.image();
    let sessions = &cx.slot.sessions;
    let (mut listed, mut pace) = (Wanted::default(), Pace::default());
    for topic in request.topics {
        let name = by_id.then(|| image.topic_by_id(topic.topic_id)).flatten();
        let name = name.map(|topic| topic.name.clone());
        let key = topic_key(by_id, topic.topic, topic.topic_id);
        for each in topic.partitions {
            let interest = Interest {
                fetch_offset: each.fetch_offset,
                max_bytes: each.partition_max_bytes,
                current_leader_epoch: each.current_leader_epoch,
                last_fetched_epoch: each.last_fetched_epoch,
                name: name.clone(),
            };
            let key = PartitionKey { topic: key.clone(), index: each.partition };
            match begun.kind {
                Kind::Incremental => sessions.borrow_mut().update(begun.session, key, interest),
                Kind::Full | Kind::Sessionless => listed.add(key, interest),
            }
            pace.turn().await;
        }
    }
    if begun.kind != Kind::Incremental {
        return ReadPlan::of_list(&cx.slot, listed).await;
    }
    for topic in request.forgotten_topics_data {
        let topic_key = topic_key(by_id, topic.topic, topic.topic_id);
        for index in topic.partitions {
            let key = PartitionKey { topic: topic_key.clone(), index };
            sessions.borrow_mut().forget(begun.session, &key);
            pace.turn().await;
        }
    }
    let plan = ReadPlan::of_session(&cx.slot, begun.session).await;
    if plan.is_empty() {
        sessions.borrow_mut().end(begun.session);
        *begun = Begun { session: 0, kind: Kind::Sessionless };
    }
    plan
}

/// Large sessions that are over are dropped beside the loop.
async fn drop_retired(cx: &Context) {
    let retired = cx.slot.sessions.borrow_mut().take_retired();
    if !retired.is_empty() {
        task::blocking(move || drop(retired)).await;
    }
}

/// Keys outlive the request in a session, so they must not hold on to its frame.
fn topic_key(by_id: bool, name: Str, id: Uuid) -> TopicKey {
    if by_id { TopicKey::Id(id) } else { TopicKey::Name(name.detach()) }
}

async fn read_or_wait(
    cx: &Context,
    plan: &mut ReadPlan,
    limits: Limits,
    min_bytes: i32,
    (deadline, waited): (time::Instant, &mut Duration),
) -> Reads {
    loop {
        let mut waiter = plan.listen().await;
        let reads = read_all(plan, limits).await;
        let enough = reads.bytes as i64 >= i64::from(min_bytes) || reads.bytes >= limits.bytes_max;
        if enough || reads.must_answer || reads.list.is_empty() || time::now() >= deadline {
            waiter.end().await;
            return reads;
        }
        // What was read so far is read again then: keeping it would pin memory for a waiter.
        drop(reads);
        let begun_waiting = time::now();
        let moved = cx.slot.stopping.or(cx.connection.left.or(waiter.moved()));
        let moved = time::within(deadline, moved).await;
        *waited += time::now().since(begun_waiting);
        waiter.end().await;
        plan.look_up_again(&cx.slot).await;
        // At the deadline, or when the slot stops or the client goes, what is there is the answer.
        if !matches!(moved, Ok(Some(Some(())))) {
            return read_all(plan, limits).await;
        }
    }
}

async fn answer(
    cx: &Context,
    begun: Begun,
    (by_id, limits): (bool, Limits),
    plan: ReadPlan,
    reads: Reads,
) -> Outcome {
    let sessions = &cx.slot.sessions;
    let makes_session = begun.kind == Kind::Full
        && cx.version() >= FIRST_VERSION_WITH_SESSIONS
        && sessions.borrow().has_room(time::now(), plan.len());
    let mut pace = Pace::default();
    let mut made = makes_session.then(|| Session::new(time::now(), by_id));
    let mut response = FetchResponse { session_id: begun.session, ..FetchResponse::default() };
    for (Target { key, interest, .. }, read) in plan.into_targets().into_iter().zip(reads.list) {
        pace.turn().await;
        let news = news_of(&read);
        if let Some(session) = &mut made {
            session.add(key.clone(), interest, &news);
        } else if begun.kind == Kind::Incremental
            && !sessions.borrow_mut().is_news(begun.session, &key, &news)
        {
            continue;
        }
        count(cx, &key.topic, &read);
        let data = partition_data(
            cx,
            (key.index, limits.committed_only),
            read,
            &mut response.node_endpoints,
        );
        match response.responses.last_mut() {
            Some(last) if names(last, &key.topic) => last.partitions.push(data),
            _ => response.responses.push(topic_response(key.topic, data)),
        }
    }
    if let Some(session) = made {
        let (now, random) = (time::now(), time::random_u64());
        response.session_id = sessions.borrow_mut().adopt(now, random, session);
        drop_retired(cx).await;
    }
    let lease = cx.slot.answer_budget.try_lease(reads.bytes);
    match cx.reply_long(response).await {
        Outcome::Reply(answer) => Outcome::Reply(Answer { lease, ..answer }),
        other => other,
    }
}

fn count(cx: &Context, topic: &TopicKey, read: &PartitionRead) {
    let bytes = read.records.len() as u64;
    if bytes == 0 {
        return;
    }
    cx.slot.metrics.records_fetched.add(read.record_count);
    cx.slot.metrics.bytes_fetched.add(bytes);
    let topic = match topic {
        TopicKey::Name(name) => cx.slot.shard.topic(name),
        TopicKey::Id(id) => cx.slot.shard.topic_by_id(*id),
    };
    if let Some(topic) = topic {
        topic.traffic.fetched_records.add(read.record_count);
        topic.traffic.fetched_bytes.add(bytes);
    }
}

fn news_of(read: &PartitionRead) -> News {
    News {
        error: read.error,
        bytes: read.records.len(),
        high_watermark: read.high_watermark,
        log_start_offset: read.log_start_offset,
        diverging: read.diverging.is_some(),
    }
}

fn names(response: &FetchableTopicResponse, topic: &TopicKey) -> bool {
    match topic {
        TopicKey::Name(name) => response.topic == *name,
        TopicKey::Id(id) => response.topic_id == *id,
    }
}

fn topic_response(topic: TopicKey, first: PartitionData) -> FetchableTopicResponse {
    let mut response =
        FetchableTopicResponse { partitions: vec![first], ..FetchableTopicResponse::default() };
    match topic {
        TopicKey::Name(name) => response.topic = name,
        TopicKey::Id(id) => response.topic_id = id,
    }
    response
}

fn partition_data(
    cx: &Context,
    (index, committed_only): (i32, bool),
    read: PartitionRead,
    endpoints: &mut Vec<NodeEndpoint>,
) -> PartitionData {
    // Null to a reader of everything; no transaction can have been aborted yet.
    let aborted = (committed_only || !read.found).then(Vec::new);
    let mut data = PartitionData {
        partition_index: index,
        error_code: read.error,
        high_watermark: read.high_watermark,
        last_stable_offset: read.last_stable_offset,
        log_start_offset: read.log_start_offset,
        aborted_transactions: aborted,
        records: Some(read.records),
        ..PartitionData::default()
    };
    if let Some(end) = read.diverging {
        data.diverging_epoch = end;
    }
    if let Some(leader) = read.leader.filter(|_| cx.version() >= FIRST_VERSION_WITH_LEADERS) {
        data.current_leader =
            LeaderIdAndEpoch { leader_id: leader.node.0, leader_epoch: leader.epoch };
        if let Some(node) = cx.slot.image().node(leader.node)
            && endpoints.iter().all(|each| each.node_id != leader.node.0)
        {
            let port = i32::from(node.port);
            let (host, rack) = (node.host.clone(), node.rack.clone());
            endpoints.push(NodeEndpoint { node_id: leader.node.0, host, port, rack });
        }
    }
    data
}

fn refuse_session(cx: &Context, error: ErrorCode) -> Outcome {
    cx.reply(&FetchResponse { error_code: error, ..FetchResponse::default() })
}

/// The same error for every partition named, and at the top where the version has room there.
async fn refuse_all(cx: &Context, request: &FetchRequest, error: ErrorCode) -> Outcome {
    let (mut responses, mut pace) = (Vec::with_capacity(request.topics.len()), Pace::default());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for each in &topic.partitions {
            partitions.push(refused(each.partition, error));
            pace.turn().await;
        }
        responses.push(FetchableTopicResponse {
            topic: topic.topic.clone(),
            topic_id: topic.topic_id,
            partitions,
        });
    }
    let error_code = match error {
        ErrorCode::INVALID_REQUEST => error,
        _ => ErrorCode::NONE,
    };
    cx.reply_long(FetchResponse { error_code, responses, ..FetchResponse::default() }).await
}

fn refused(index: i32, error: ErrorCode) -> PartitionData {
    PartitionData {
        partition_index: index,
        error_code: error,
        high_watermark: -1,
        aborted_transactions: None,
        records: Some(Records::default()),
        ..PartitionData::default()
    }
}

/// What an answer may hold however little memory is free; it may exceed the budget by this.
const ANSWER_BYTES_ALWAYS: usize = 64 << 10;
const FIRST_VERSION_WITH_SESSIONS: i16 = 7;
const FIRST_VERSION_WITH_IDS: i16 = 13;
const FIRST_VERSION_WITH_LEADERS: i16 = 16;
