//! Behaviour: deletes groups without members, with all their offsets (KIP-229).
//!
//! Versions: 0–3.

use std::rc::Rc;

use protocol::messages::delete_groups::{
    DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse,
};
use protocol::{ErrorCode, Str};

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
            let outcome = match deleted {
                Ok((pump, error, mark)) => pump.durable(mark).await.err().unwrap_or(error),
                Err(error) => error,
            };
            results.push(DeletableGroupResult {
                group_id,
                error_code: outcome,
                error_message: None,
            });
            pause_if_long().await;
        }
        cx.reply_long(DeleteGroupsResponse { results, ..DeleteGroupsResponse::default() }).await
    }))
}

/// What was decided, and when it is durable.
fn delete(cx: &Context, group: &Str) -> Result<(Rc<Pump>, ErrorCode, Mark), ErrorCode> {
    if group.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID);
    }
    let pump = cx.slot.groups.find(&cx.slot, group)?;
    let (error, mark) =
        pump.decide(&cx.slot, |coordinator, world| coordinator.delete_group(world, group));
    Ok((pump, error, mark))
}
