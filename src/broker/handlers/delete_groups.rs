//! Behaviour: deletes groups without members, with all their offsets (KIP-229). One that is
//! still being deleted is answered with COORDINATOR_LOAD_IN_PROGRESS, and so is who joins it or
//! commits to it.
//!
//! Versions: 0–3.

use std::rc::Rc;

use coordinator::Reply;
use protocol::messages::delete_groups::{
    DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse,
};
use protocol::{ErrorCode, Str};
use runtime::mesh::OneshotReceiver;

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::groups::{Mark, Pump};

pub async fn handle(cx: Context, request: DeleteGroupsRequest) -> Outcome {
    let mut begun = Vec::with_capacity(request.groups_names.len());
    for group_id in request.groups_names {
        let deleted = delete(&cx, &group_id);
        begun.push((group_id.detach(), deleted));
        pause_if_long().await;
    }
    Outcome::Later(Box::pin(async move {
        let mut results = Vec::with_capacity(begun.len());
        for (group_id, deleted) in begun {
            let error_code = match deleted {
                Ok((pump, answer)) => outcome(&cx, &pump, answer).await,
                Err(error) => error,
            };
            results.push(DeletableGroupResult { group_id, error_code, error_message: None });
            pause_if_long().await;
        }
        cx.reply_long(DeleteGroupsResponse { results, ..DeleteGroupsResponse::default() }).await
    }))
}

/// Begins to delete a group; with many offsets it goes in pieces.
fn delete(cx: &Context, group: &Str) -> Result<(Rc<Pump>, Answer), ErrorCode> {
    if group.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID);
    }
    let pump = cx.slot.groups.find(&cx.slot, group)?;
    let answer = pump
        .ask(&cx.slot, |coordinator, world, ticket| coordinator.delete_group(world, group, ticket));
    Ok((pump, answer))
}

/// What came of it, when that is durable.
async fn outcome(cx: &Context, pump: &Pump, answer: Answer) -> ErrorCode {
    let answer = cx.slot.stopping.or(cx.connection.left.or(answer));
    match answer.await.flatten() {
        Some(Ok((Reply::Deleted(error), mark))) => pump.durable(mark).await.err().unwrap_or(error),
        _ => ErrorCode::NOT_COORDINATOR,
    }
}

type Answer = OneshotReceiver<(Reply, Mark)>;
