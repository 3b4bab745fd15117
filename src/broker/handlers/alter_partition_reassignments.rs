//! Behaviour: moves partitions between the slots of one host (KIP-455). A move is over when it is
//! answered; what cannot be begun within the request's timeout is answered REQUEST_TIMED_OUT and
//! stays where it is. Few partitions move at a time, so that each stands still only shortly.
//!
//! Versions: 0–1. 1 can refuse to change the replication factor (KIP-860).

use std::time::Duration;

use metadata::controller as decisions;
use protocol::ErrorCode;
use protocol::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ReassignablePartition,
    ReassignablePartitionResponse, ReassignableTopic, ReassignableTopicResponse,
};
use runtime::time;

use crate::connection::Outcome;
use crate::controller::{self, Stopping};
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: AlterPartitionReassignmentsRequest) -> Outcome {
    Outcome::Later(Box::pin(async move {
        match reassign(&cx, request).await {
            Ok(response) => cx.reply_long(response).await,
            Err(why) => Outcome::Close(why.to_string()),
        }
    }))
}

async fn reassign(
    cx: &Context,
    request: AlterPartitionReassignmentsRequest,
) -> Result<AlterPartitionReassignmentsResponse, Stopping> {
    let deadline = time::now() + Duration::from_millis(request.timeout_ms.max(0) as u64);
    let nothing = AlterPartitionReassignmentsRequest { topics: Vec::new(), ..request };
    if request.topics.is_empty() {
        return decide(cx, nothing).await;
    }
    let mut response = AlterPartitionReassignmentsResponse {
        allow_replication_factor_change: request.allow_replication_factor_change,
        error_message: None,
        ..AlterPartitionReassignmentsResponse::default()
    };
    for topic in request.topics {
        let ReassignableTopic { name, partitions } = topic;
        let mut out = ReassignableTopicResponse { name: name.clone(), partitions: Vec::new() };
        for few in partitions.chunks(AT_A_TIME) {
            if time::now() > deadline {
                out.partitions.extend(few.iter().map(timed_out));
                continue;
            }
            let topic = ReassignableTopic { name: name.clone(), partitions: few.to_vec() };
            let part =
                AlterPartitionReassignmentsRequest { topics: vec![topic], ..nothing.clone() };
            let moved = decide(cx, part).await?;
            out.partitions.extend(moved.responses.into_iter().flat_map(|topic| topic.partitions));
        }
        response.responses.push(out);
    }
    Ok(response)
}

async fn decide(
    cx: &Context,
    request: AlterPartitionReassignmentsRequest,
) -> Result<AlterPartitionReassignmentsResponse, Stopping> {
    let decide = move |context: &decisions::Context<'_>| {
        decisions::alter_partition_reassignments(context, &request)
    };
    controller::decide(&cx.slot, decide).await
}

fn timed_out(asked: &ReassignablePartition) -> ReassignablePartitionResponse {
    ReassignablePartitionResponse {
        partition_index: asked.partition_index,
        error_code: ErrorCode::REQUEST_TIMED_OUT,
        error_message: None,
    }
}

/// Partitions that stand still together.
const AT_A_TIME: usize = 8;
