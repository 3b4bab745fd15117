//! Behaviour: deletes groups without members, with all their offsets (KIP-229).
//!
//! Versions: 0–3.

use protocol::messages::delete_groups::{
    DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: DeleteGroupsRequest) -> Outcome {
    Outcome::Later(Box::pin(async move {
        let mut results = Vec::with_capacity(request.groups_names.len());
        for group_id in request.groups_names {
            let error_code = delete(&cx, &group_id).await.err().unwrap_or_default();
            results.push(DeletableGroupResult { group_id, error_code, error_message: None });
        }
        cx.reply(&DeleteGroupsResponse { results, ..DeleteGroupsResponse::default() })
    }))
}

async fn delete(cx: &Context, group: &Str) -> Result<(), ErrorCode> {
    if group.is_empty() {
        return Err(ErrorCode::INVALID_GROUP_ID);
    }
    let pump = cx.slot.groups.find(&cx.slot, group)?;
    let (error, mark) =
        pump.decide(&cx.slot, |coordinator, world| coordinator.delete_group(world, group));
    pump.durable(mark).await?;
    if error.is_error() { Err(error) } else { Ok(()) }
}
