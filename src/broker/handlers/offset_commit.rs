//! Behaviour: stores how far a group has come; answered when that is durable. Partitions that do
//! not exist are refused one by one, the others are committed.
//!
//! Versions: 2–10. 6 has leader epochs (KIP-320), 7 static members (KIP-345), 10 topic ids.

use std::rc::Rc;
use std::vec;

use protocol::ErrorCode;
use protocol::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::groups::{Mark, Pump};

pub async fn handle(cx: Context, mut request: OffsetCommitRequest) -> Outcome {
    let pump = cx.slot.groups.find(&cx.slot, &request.group_id);
    let mut pieces = Pieces::of(std::mem::take(&mut request.topics));
    let (mut topics, mut marks) = (Vec::new(), Vec::new());
    loop {
        let goes_on = pieces.is_within_a_topic();
        request.topics = pieces.next().unwrap_or_default();
        let mut answers = check_topics(&cx, &mut request);
        // It may have changed between two pieces.
        let serving = pump.as_ref().map_err(|error| *error);
        let serving = serving.and_then(|pump| pump.check_serving().map(|()| pump));
        let decided = serving.and_then(|pump| decide(&cx, pump, &mut request, &mut marks));
        fill(&mut answers, decided);
        append(&mut topics, answers, goes_on);
        if pieces.is_empty() {
            break;
        }
        pause_if_long().await;
    }
    drop(request);
    let response = OffsetCommitResponse { topics, ..OffsetCommitResponse::default() };
    match pump {
        Ok(pump) => Outcome::Later(Box::pin(answer(cx, pump, response, marks))),
        Err(_) => cx.reply_long(response).await,
    }
}

/// When everything is durable, or cannot be.
async fn answer(
    cx: Context,
    pump: Rc<Pump>,
    mut response: OffsetCommitResponse,
    marks: Vec<Mark>,
) -> Outcome {
    let mut durable = Ok(());
    for mark in marks {
        durable = pump.durable(mark).await.and(durable);
    }
    if let Err(error) = durable {
        for topic in &mut response.topics {
            let committed = topic.partitions.iter_mut().filter(|it| !it.error_code.is_error());
            committed.for_each(|partition| partition.error_code = error);
            pause_if_long().await;
        }
    }
    cx.reply_long(response).await
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

/// The topics of a request in pieces that take no long to decide about.
struct Pieces {
    /// What is left of a topic that was begun, with its partitions beside it.
    begun: Option<(OffsetCommitRequestTopic, vec::IntoIter<OffsetCommitRequestPartition>)>,
    topics: vec::IntoIter<OffsetCommitRequestTopic>,
}

impl Pieces {
    fn of(topics: Vec<OffsetCommitRequestTopic>) -> Pieces {
        Pieces { begun: None, topics: topics.into_iter() }
    }

    fn is_within_a_topic(&self) -> bool {
        self.begun.is_some()
    }

    fn is_empty(&self) -> bool {
        self.begun.is_none() && self.topics.len() == 0
    }
}

impl Iterator for Pieces {
    type Item = Vec<OffsetCommitRequestTopic>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut piece, mut room) = (Vec::new(), PIECE_PARTITIONS);
        while room > 0 {
            let (topic, mut left) = match (self.begun.take(), self.topics.as_slice()) {
                (Some(begun), _) => begun,
                (None, [next, ..]) if next.partitions.len() <= room => {
                    room -= next.partitions.len().max(1);
                    piece.extend(self.topics.next());
                    continue;
                }
                (None, _) => {
                    let Some(mut topic) = self.topics.next() else { break };
                    let partitions = std::mem::take(&mut topic.partitions);
                    (topic, partitions.into_iter())
                }
            };
            let partitions: Vec<_> = left.by_ref().take(room).collect();
            room -= partitions.len();
            piece.push(OffsetCommitRequestTopic { partitions, ..topic.clone() });
            self.begun = (left.len() > 0).then_some((topic, left));
        }
        (!piece.is_empty()).then_some(piece)
    }
}

/// Takes out what cannot be committed. The answer has its error already, and -1 for the others.
fn check_topics(cx: &Context, request: &mut OffsetCommitRequest) -> Vec<OffsetCommitResponseTopic> {
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
            // The frame goes before the records are durable.
            name: topic.name.detach(),
            topic_id: topic.topic_id,
            partitions: answers.collect(),
        });
        topic.partitions.retain(|partition| exists(partition.partition_index));
        if let Some(found) = found {
            topic.name = found.name.clone();
        }
    }
    topics
}

/// Writes the outcomes to the partitions that wait for one.
fn fill(topics: &mut [OffsetCommitResponseTopic], outcomes: Result<Vec<ErrorCode>, ErrorCode>) {
    let (each, all) = match outcomes {
        Ok(outcomes) => (outcomes, ErrorCode::NONE),
        Err(error) => (Vec::new(), error),
    };
    let mut each = each.into_iter();
    let partitions = topics.iter_mut().flat_map(|topic| &mut topic.partitions);
    for partition in partitions.filter(|partition| partition.error_code == PENDING) {
        partition.error_code = each.next().unwrap_or(all);
    }
}

/// Adds the answers to one piece. Its first topic may be the one that the last piece ended in.
fn append(
    topics: &mut Vec<OffsetCommitResponseTopic>,
    piece: Vec<OffsetCommitResponseTopic>,
    goes_on: bool,
) {
    let mut piece = piece.into_iter();
    if goes_on && let (Some(last), Some(more)) = (topics.last_mut(), piece.next()) {
        last.partitions.extend(more.partitions);
    }
    topics.extend(piece);
}

const FIRST_VERSION_WITH_IDS: i16 = 10;
/// Partitions that are decided about in one go.
const PIECE_PARTITIONS: usize = 1000;
const PENDING: ErrorCode = ErrorCode::UNKNOWN_SERVER_ERROR;
