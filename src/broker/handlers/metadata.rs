//! Behaviour: the nodes and, for topics by name or id, who leads their partitions. A topic that is
//! not there is created if the request, the broker's configuration and the name allow it, and only
//! when it was named. The answer then already carries the new leaders if the creation commits
//! within [`CREATION_WAIT`]; Kafka answers UNKNOWN_TOPIC_OR_PARTITION first, which some clients
//! take as final.
//!
//! Versions: 0–13. 0 means all topics by an empty list, later versions by null; ids are accepted
//! from 12 (KIP-516); the controller named is the node that was asked. What a client may do with a
//! topic that it named, whether or not it is there, and with the cluster is told from 8 on to one
//! that asks (KIP-430).

use std::collections::BTreeSet;
use std::time::Duration;

use metadata::topic_name::{check_topic_name, is_internal};
use metadata::{Image, Topic, controller as decide};
use protocol::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker,
    MetadataResponsePartition, MetadataResponseTopic,
};
use protocol::{ErrorCode, Str, Uuid};
use runtime::time;

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::handlers::describe_cluster::{CLUSTER_OPERATIONS, TOPIC_OPERATIONS};

pub async fn handle(cx: Context, request: MetadataRequest) -> Outcome {
    let version = cx.version();
    if asks_by_id_too_early(version, &request) {
        return cx.reply_long(refused(&request)).await;
    }
    let asked = Asked {
        topics: request.include_topic_authorized_operations,
        cluster: request.include_cluster_authorized_operations,
    };
    let all = match (&request.topics, version) {
        (None, _) => true,
        (Some(topics), 0) => topics.is_empty(),
        (Some(_), _) => false,
    };
    if all {
        let image = cx.slot.image();
        let mut topics = Vec::with_capacity(image.topic_count());
        for topic in image.topics_from("") {
            topics.push(describe(topic, version));
            pause_if_long().await;
        }
        return cx.reply_long(response(&cx, &image, topics, asked)).await;
    }
    let wanted = request.topics.unwrap_or_default();
    if request.allow_auto_topic_creation {
        create_missing(&cx, &wanted).await;
    }
    let image = cx.slot.image();
    let mut topics = Vec::with_capacity(wanted.len());
    let mut named = BTreeSet::new();
    for topic in wanted {
        // Each once, as in Kafka: a name is short, and what it stands for may be long.
        let name = topic.name.clone().filter(|_| topic.topic_id.is_zero());
        if named.insert((topic.topic_id, name)) {
            topics.push(find(&image, topic, version));
        }
        pause_if_long().await;
    }
    cx.reply_long(response(&cx, &image, topics, asked)).await
}

/// Versions 10 and 11 have room for ids and nulls but no meaning for them.
fn asks_by_id_too_early(version: i16, request: &MetadataRequest) -> bool {
    let topics = request.topics.iter().flatten();
    (10..FIRST_VERSION_BY_ID).contains(&version)
        && topics.into_iter().any(|topic| topic.name.is_none() || !topic.topic_id.is_zero())
}

fn refused(request: &MetadataRequest) -> MetadataResponse {
    let topics = request.topics.iter().flatten().map(|topic| MetadataResponseTopic {
        error_code: ErrorCode::INVALID_REQUEST,
        name: Some(topic.name.clone().unwrap_or(Str::EMPTY)),
        topic_id: topic.topic_id,
        ..MetadataResponseTopic::default()
    });
    MetadataResponse { cluster_id: None, topics: topics.collect(), ..MetadataResponse::default() }
}

async fn create_missing(cx: &Context, wanted: &[MetadataRequestTopic]) {
    let settings = cx.slot.settings();
    if !settings.auto_create_topics {
        return;
    }
    let image = cx.slot.image();
    let mut missing = Vec::new();
    for name in wanted.iter().filter_map(|topic| topic.name.as_ref()) {
        if image.topic(name).is_none() {
            missing.push(name.detach());
        }
        pause_if_long().await;
    }
    if missing.is_empty() {
        return;
    }
    let created = cx.decide(move |context| decide::auto_create_topics(context, &missing));
    if time::within(time::now() + CREATION_WAIT, created).await.is_err() {
        tracing::warn!("a topic was not created within {} ms", CREATION_WAIT.as_millis());
    }
}

fn find(image: &Image, wanted: MetadataRequestTopic, version: i16) -> MetadataResponseTopic {
    let by_id = !wanted.topic_id.is_zero();
    let found = match (&wanted.name, by_id) {
        (_, true) => image.topic_by_id(wanted.topic_id),
        (Some(name), false) => image.topic(name),
        (None, false) => None,
    };
    if let Some(topic) = found {
        return describe(topic, version);
    }
    let error_code = match &wanted.name {
        _ if by_id => ErrorCode::UNKNOWN_TOPIC_ID,
        Some(name) if check_topic_name(name).is_err() => ErrorCode::INVALID_TOPIC_EXCEPTION,
        Some(_) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        None => ErrorCode::UNKNOWN_TOPIC_ID,
    };
    MetadataResponseTopic {
        error_code,
        name: if by_id { None } else { wanted.name },
        topic_id: if by_id { wanted.topic_id } else { Uuid::ZERO },
        ..MetadataResponseTopic::default()
    }
}

fn describe(topic: &Topic, version: i16) -> MetadataResponseTopic {
    let partitions = topic.indexed().map(|(index, partition)| {
        let nodes = |replicas: &mut dyn Iterator<Item = protocol::NodeId>| {
            replicas.map(|node| node.0).collect::<Vec<i32>>()
        };
        MetadataResponsePartition {
            error_code: match partition.leader {
                Some(_) => ErrorCode::NONE,
                None => ErrorCode::LEADER_NOT_AVAILABLE,
            },
            partition_index: index,
            leader_id: partition.leader_node().map_or(-1, |node| node.0),
            leader_epoch: partition.leader_epoch,
            replica_nodes: nodes(&mut partition.replicas.iter().map(|replica| replica.node())),
            isr_nodes: nodes(&mut partition.in_sync_nodes()),
            offline_replicas: Vec::new(),
        }
    });
    MetadataResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: is_internal(&topic.name) && version >= 1,
        partitions: partitions.collect(),
        ..MetadataResponseTopic::default()
    }
}

/// Which operations a client asked to be told.
struct Asked {
    topics: bool,
    cluster: bool,
}

fn response(
    cx: &Context,
    image: &Image,
    mut topics: Vec<MetadataResponseTopic>,
    asked: Asked,
) -> MetadataResponse {
    if asked.topics {
        // An unknown id is of no topic that anything could be done with.
        for topic in topics.iter_mut().filter(|it| it.error_code != ErrorCode::UNKNOWN_TOPIC_ID) {
            topic.topic_authorized_operations = TOPIC_OPERATIONS;
        }
    }
    let brokers = image.nodes().map(|node| MetadataResponseBroker {
        node_id: node.id.0,
        host: node.host,
        port: i32::from(node.port),
        rack: node.rack,
    });
    MetadataResponse {
        brokers: brokers.collect(),
        cluster_id: Some(cx.slot.identity.cluster_id.clone()),
        controller_id: cx.slot.node.0,
        topics,
        cluster_authorized_operations: if asked.cluster { CLUSTER_OPERATIONS } else { i32::MIN },
        ..MetadataResponse::default()
    }
}

const FIRST_VERSION_BY_ID: i16 = 12;
/// How long an answer waits for a topic that it had to create.
const CREATION_WAIT: Duration = Duration::from_millis(200);
