//! DeleteTopics.
//!
//! Behaviour: by name up to version 5, by name or id from 6 (KIP-516), never by both. A topic that
//! is in the request twice, under whichever of its names, is refused once and not deleted.
//! With `delete.topic.enable=false` nothing is.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::messages::delete_topics::{
    DeletableTopicResult, DeleteTopicState, DeleteTopicsRequest, DeleteTopicsResponse,
};
use protocol::{ErrorCode, Str, Uuid};

use super::{Context, Decision, Refusal};
use crate::image::{Image, Topic};
use crate::record::{MetadataRecord, TopicRemoved};

pub fn delete_topics(
    context: &Context<'_>,
    request: &DeleteTopicsRequest,
    version: i16,
) -> Decision<DeleteTopicsResponse> {
    let named = request
        .topic_names
        .iter()
        .map(|name| DeleteTopicState { name: Some(name.clone()), topic_id: Uuid::ZERO });
    let asked: Vec<DeleteTopicState> = request.topics.iter().cloned().chain(named).collect();
    if !context.settings().delete_topics {
        return Decision::answer(deletion_is_off(&asked, version));
    }
    let mut decision = Decision::answer(DeleteTopicsResponse::default());
    let responses = &mut decision.response.responses;
    // How often each topic, or each name or id that stands for none, is asked for.
    let mut times_asked: BTreeMap<Subject, usize> = BTreeMap::new();
    for each in &asked {
        *times_asked.entry(Subject::of(context.image, each)).or_default() += 1;
    }
    for each in &asked {
        let subject = Subject::of(context.image, each);
        match (&subject, times_asked.insert(subject.clone(), 0)) {
            (Subject::Malformed(_), _) => {
                responses.push(refused(each, &malformed(each)));
            }
            (_, Some(0) | None) => {}
            (_, Some(1)) => match find(context.image, each) {
                Ok(topic) => {
                    responses.push(DeletableTopicResult {
                        name: Some(topic.name.clone()),
                        topic_id: topic.id,
                        error_code: ErrorCode::NONE,
                        error_message: None,
                    });
                    let removed = TopicRemoved { id: topic.id };
                    decision.records.push(MetadataRecord::TopicRemoved(removed));
                }
                Err(refusal) => responses.push(refused(each, &refusal)),
            },
            (_, Some(_)) => responses.push(refused(each, &asked_twice())),
        }
    }
    decision
}

/// What a request's entry is about, so that doubles are seen whichever way they are named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Topic(Uuid),
    UnknownName(Str),
    UnknownId(Uuid),
    /// Neither name nor id, or both. Every such entry is answered.
    Malformed(Option<Str>),
}

impl Subject {
    fn of(image: &Image, asked: &DeleteTopicState) -> Self {
        match (&asked.name, asked.topic_id.is_zero()) {
            (Some(name), true) => match image.topic(name) {
                Some(topic) => Self::Topic(topic.id),
                None => Self::UnknownName(name.clone()),
            },
            (None, false) => match image.topic_by_id(asked.topic_id) {
                Some(topic) => Self::Topic(topic.id),
                None => Self::UnknownId(asked.topic_id),
            },
            (name, _) => Self::Malformed(name.clone()),
        }
    }
}

fn find<'a>(image: &'a Image, asked: &DeleteTopicState) -> Result<&'a Arc<Topic>, Refusal> {
    match &asked.name {
        Some(name) => image.topic(name).ok_or_else(|| {
            let message = format!("there is no topic {name}");
            Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message)
        }),
        None => image.topic_by_id(asked.topic_id).ok_or_else(|| {
            let message = format!("there is no topic with the id {}", asked.topic_id);
            Refusal::new(ErrorCode::UNKNOWN_TOPIC_ID, message)
        }),
    }
}

fn malformed(asked: &DeleteTopicState) -> Refusal {
    let message = match asked.name {
        Some(_) => "a topic is deleted by name or by id, not by both",
        None => "neither a name nor an id says which topic is meant",
    };
    Refusal::new(ErrorCode::INVALID_REQUEST, message)
}

fn asked_twice() -> Refusal {
    Refusal::new(ErrorCode::INVALID_REQUEST, "the topic is in the request twice")
}

fn deletion_is_off(asked: &[DeleteTopicState], version: i16) -> DeleteTopicsResponse {
    // Version 3 brought an error of its own for this (KIP-322).
    let code = match version {
        ..3 => ErrorCode::INVALID_REQUEST,
        3.. => ErrorCode::TOPIC_DELETION_DISABLED,
    };
    let refusal = Refusal::new(code, "delete.topic.enable is false");
    let responses = asked.iter().map(|each| refused(each, &refusal)).collect();
    DeleteTopicsResponse { responses, ..DeleteTopicsResponse::default() }
}

fn refused(asked: &DeleteTopicState, refusal: &Refusal) -> DeletableTopicResult {
    DeletableTopicResult {
        name: asked.name.clone(),
        topic_id: asked.topic_id,
        error_code: refusal.code,
        error_message: refusal.text(),
    }
}
