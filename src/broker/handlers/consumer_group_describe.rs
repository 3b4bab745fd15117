//! Behaviour: epochs, members and assignments of consumer groups (KIP-848).
//!
//! Versions: 0–1. 1 says which protocol a member speaks (KIP-1099).

use protocol::messages::consumer_group_describe::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DescribedGroup,
};
use protocol::{ErrorCode, Str};

use super::describe_groups::GROUP_OPERATIONS;
use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};

pub async fn handle(cx: Context, request: ConsumerGroupDescribeRequest) -> Outcome {
    Outcome::Later(Box::pin(async move {
        let mut groups = Vec::with_capacity(request.group_ids.len());
        for id in request.group_ids {
            let mut group = describe(&cx, id).await;
            if request.include_authorized_operations && !group.error_code.is_error() {
                group.authorized_operations = GROUP_OPERATIONS;
            }
            groups.push(group);
            pause_if_long().await;
        }
        cx.reply_long(ConsumerGroupDescribeResponse { groups, ..Default::default() }).await
    }))
}

async fn describe(cx: &Context, id: Str) -> DescribedGroup {
    let refused = |group_id: Str, error_code: ErrorCode| DescribedGroup {
        group_id,
        error_code,
        error_message: Some(error_code.message().into()),
        ..DescribedGroup::default()
    };
    let pump = match cx.slot.groups.find(&cx.slot, &id) {
        _ if id.is_empty() => return refused(id, ErrorCode::INVALID_GROUP_ID),
        Ok(pump) => pump,
        Err(error) => return refused(id, error),
    };
    let (group, mark) = pump
        .ask_about(&cx.slot, |coordinator, world| coordinator.describe_consumer_group(world, &id));
    match pump.durable(mark).await {
        Ok(()) => group,
        Err(error) => refused(id, error),
    }
}
