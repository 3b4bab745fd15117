//! Behaviour: stores how far a group has come; answered when that is durable. Partitions that do
//! not exist are refused one by one, the others are committed.
//!
//! Versions: 2–10. 6 has leader epochs (KIP-320), 7 static members (KIP-345), 10 topic ids.

use std::collections::VecDeque;

use protocol::ErrorCode;
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestTopic, OffsetCommitResponse,
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::groups::{Mark, Pump};

pub async fn handle(cx: Context, mut request: OffsetCommitRequest) -> Outcome {
    let mut response = check_topics(&cx, &mut request);
    let pump = match cx.slot.groups.find(&cx.slot, &request.group_id) {
        Ok(pump) => pump,
        Err(error) => return cx.reply(&filled(response, Err(error))),
    };
    let (mut outcomes, mut marks) = (Vec::new(), Vec::new());
    let mut pieces = pieces(std::mem::take(&mut request.topics)).peekable();
    while let Some(topics) = pieces.next() {
        let count = topics.iter().map(|topic| topic.partitions.len()).sum();
        request.topics = topics;
        // It may have changed between two pieces.
        let decided =
            pump.check_serving().and_then(|()| decide(&cx, &pump, &mut request, &mut marks));
        match decided {
            Ok(decided) => outcomes.extend(decided),
            Err(error) => outcomes.extend(std::iter::repeat_n(error, count)),
        }
        if pieces.peek().is_some() {
            pause_if_long().await;
        }
    }
    drop(request);
    detach(&mut response);
    Outcome::Later(Box::pin(async move {
        let mut outcomes = Ok(outcomes);
        for mark in marks {
            outcomes = pump.durable(mark).await.and(outcomes);
        }
        cx.reply(&filled(response, outcomes))
    }))
}

fn decide(
    cx: &Context,
    pump: &Pump,
    request: &mut OffsetCommitRequest,
    marks: &mut Vec<Mark>,
) -> Result<Vec<ErrorCode>, ErrorCode> {
    let version = cx.version();
    loop {
        let (outcomes, mark) = pump.decide(&cx.slot, |coordinator, world| {
            coordinator.commit_offsets(world, request, version)
        });
        let accepts_outdated = runtime::sabotaged("accept an outdated generation");
        if !accepts_outdated || outcomes != Err(ErrorCode::ILLEGAL_GENERATION) {
            marks.push(mark);
            return outcomes;
        }
        request.generation_id_or_member_epoch += 1;
    }
}

/// The topics in pieces that take no long to decide about; one piece at least.
fn pieces(
    topics: Vec<OffsetCommitRequestTopic>,
) -> impl Iterator<Item = Vec<OffsetCommitRequestTopic>> {
    let mut rest = Some(VecDeque::from(topics));
    std::iter::from_fn(move || {
        let mut topics = rest.take()?;
        let (mut piece, mut room) = (Vec::new(), PIECE_PARTITIONS);
        while let Some(mut topic) = topics.pop_front() {
            if topic.partitions.len() > room {
                let later = topic.partitions.split_off(room);
                let (name, topic_id) = (topic.name.clone(), topic.topic_id);
                topics.push_front(OffsetCommitRequestTopic { name, topic_id, partitions: later });
            }
            room -= topic.partitions.len();
            piece.push(topic);
            if room == 0 {
                break;
            }
        }
        rest = (!topics.is_empty()).then_some(topics);
        Some(piece)
    })
}

/// Takes out what cannot be committed. The answer has its error already, and -1 for the others.
fn check_topics(cx: &Context, request: &mut OffsetCommitRequest) -> OffsetCommitResponse {
    let image = cx.slot.image();
    let by_id = cx.version() >= FIRST_VERSION_WITH_IDS;
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &mut request.topics {
        let found =
            if by_id { image.topic_by_id(topic.topic_id) } else { image.topic(&topic.name) };
        let missing = if by_id && found.is_none() {
            ErrorCode::UNKNOWN_TOPIC_ID
        } else {
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        };
        let exists = |index: i32| found.is_some_and(|topic| topic.partition(index).is_some());
        let answers = topic.partitions.iter().map(|partition| OffsetCommitResponsePartition {
            partition_index: partition.partition_index,
            error_code: if exists(partition.partition_index) { PENDING } else { missing },
        });
        topics.push(OffsetCommitResponseTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions: answers.collect(),
        });
        topic.partitions.retain(|partition| exists(partition.partition_index));
        if let Some(found) = found {
            topic.name = found.name.clone();
        }
    }
    OffsetCommitResponse { topics, ..OffsetCommitResponse::default() }
}

/// The frame goes before the records are durable.
fn detach(response: &mut OffsetCommitResponse) {
    for topic in &mut response.topics {
        topic.name = topic.name.detach();
    }
}

fn filled(
    mut response: OffsetCommitResponse,
    outcomes: Result<Vec<ErrorCode>, ErrorCode>,
) -> OffsetCommitResponse {
    let (mut each, all) = match outcomes {
        Ok(outcomes) => (VecDeque::from(outcomes), ErrorCode::NONE),
        Err(error) => (VecDeque::new(), error),
    };
    let partitions = response.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
    for partition in partitions.filter(|partition| partition.error_code == PENDING) {
        partition.error_code = each.pop_front().unwrap_or(all);
    }
    response
}

const FIRST_VERSION_WITH_IDS: i16 = 10;
/// Partitions that are decided about in one go.
const PIECE_PARTITIONS: usize = 1000;
const PENDING: ErrorCode = ErrorCode::UNKNOWN_SERVER_ERROR;
