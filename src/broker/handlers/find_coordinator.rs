//! Behaviour: says which node coordinates a group: the leader of the partition of
//! `__consumer_offsets` that its id hashes to. The first to ask makes that topic come into being.
//!
//! Versions: 0–6. 1 has key types; 4 asks for several keys at once (KIP-699).

use metadata::controller::{InternalTopic, create_internal_topic};
use metadata::topic_name::OFFSETS_TOPIC;
use protocol::messages::find_coordinator::{
    Coordinator, FindCoordinatorRequest, FindCoordinatorResponse,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::controller;
use crate::dispatch::{Context, pause_if_long};
use crate::groups::partition_of;

pub async fn handle(cx: Context, request: FindCoordinatorRequest) -> Outcome {
    let batched = cx.version() >= FIRST_VERSION_WITH_SEVERAL;
    let keys = if batched { request.coordinator_keys } else { vec![request.key] };
    let mut coordinators = Vec::with_capacity(keys.len());
    for key in keys {
        coordinators.push(find(&cx, key, request.key_type).await);
        pause_if_long().await;
    }
    let response = match coordinators.pop() {
        Some(only) if !batched => FindCoordinatorResponse {
            error_code: only.error_code,
            error_message: only.error_message,
            node_id: only.node_id,
            host: only.host,
            port: only.port,
            ..FindCoordinatorResponse::default()
        },
        last => {
            coordinators.extend(last);
            FindCoordinatorResponse { coordinators, ..FindCoordinatorResponse::default() }
        }
    };
    cx.reply_long(response).await
}

async fn find(cx: &Context, key: Str, key_type: i8) -> Coordinator {
    let refused = |key: Str, error_code: ErrorCode| Coordinator {
        key,
        node_id: -1,
        port: -1,
        error_code,
        error_message: Some(Str::from_static(error_code.message())),
        ..Coordinator::default()
    };
    match key_type {
        GROUP => {}
        // Nobody coordinates transactions or share groups yet.
        TRANSACTION | SHARE => return refused(key, ErrorCode::COORDINATOR_NOT_AVAILABLE),
        _ => return refused(key, ErrorCode::INVALID_REQUEST),
    }
    if cx.slot.image().topic(OFFSETS_TOPIC).is_none() {
        let created = controller::decide(&cx.slot, |context| {
            create_internal_topic(context, InternalTopic::Offsets)
        });
        if !matches!(created.await, Ok(Ok(_))) {
            return refused(key, ErrorCode::COORDINATOR_NOT_AVAILABLE);
        }
    }
    let image = cx.slot.image();
    let leader = partition_of(&image, &key)
        .and_then(|index| image.topic(OFFSETS_TOPIC)?.partition(index)?.leader_node());
    match leader.and_then(|leader| image.node(leader)) {
        None => refused(key, ErrorCode::COORDINATOR_NOT_AVAILABLE),
        Some(node) => Coordinator {
            key,
            node_id: node.id.0,
            host: node.host,
            port: i32::from(node.port),
            error_code: ErrorCode::NONE,
            error_message: Some(Str::EMPTY),
        },
    }
}

const FIRST_VERSION_WITH_SEVERAL: i16 = 4;
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;
