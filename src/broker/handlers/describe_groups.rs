//! Behaviour: state, protocol and members of groups; subscriptions and assignments of stable ones.
//!
//! Versions: 0–6. 3 tells the operations the client may do (KIP-430), 6 which group is missing.

use protocol::messages::describe_groups::{
    DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};

pub async fn handle(cx: Context, request: DescribeGroupsRequest) -> Outcome {
    Outcome::Later(Box::pin(async move {
        let mut groups = Vec::with_capacity(request.groups.len());
        for id in request.groups {
            let mut group = describe(&cx, id).await;
            if request.include_authorized_operations && !group.error_code.is_error() {
                group.authorized_operations = GROUP_OPERATIONS;
            }
            groups.push(group);
            pause_if_long().await;
        }
        cx.reply_long(DescribeGroupsResponse { groups, ..DescribeGroupsResponse::default() }).await
    }))
}

async fn describe(cx: &Context, id: Str) -> DescribedGroup {
    let refused = |group_id: Str, error_code| DescribedGroup {
        group_id,
        error_code,
        ..DescribedGroup::default()
    };
    let pump = match cx.slot.groups.find(&cx.slot, &id) {
        _ if id.is_empty() => return refused(id, ErrorCode::INVALID_GROUP_ID),
        Ok(pump) => pump,
        Err(error) => return refused(id, error),
    };
    let (group, mark) = pump.look(|coordinator| coordinator.describe(&id, cx.version()));
    match pump.durable(mark).await {
        Ok(()) => group,
        Err(error) => refused(id, error),
    }
}

/// READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
pub(super) const GROUP_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;
