//! Behaviour: makes the sender a member of a classic group; the answer comes when the group has
//! gathered, or at once where there is nothing to gather for.
//!
//! Versions: 0–9. 4 gives out the member id first (KIP-394), 5 knows static members (KIP-345), 9
//! lets a static leader keep the assignment (KIP-814).

use coordinator::{Caller, Reply};
use protocol::messages::join_group::{JoinGroupRequest, JoinGroupResponse};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: JoinGroupRequest) -> Outcome {
    let pump = match cx.slot.groups.find(&cx.slot, &request.group_id) {
        _ if request.group_id.is_empty() => {
            return refuse(&cx, request.member_id, ErrorCode::INVALID_GROUP_ID);
        }
        Ok(pump) => pump,
        Err(error) => return refuse(&cx, request.member_id, error),
    };
    let caller = Caller {
        client_id: cx.header.client_id.clone().unwrap_or_default(),
        client_host: Str::from(format!("/{}", cx.connection.peer.ip())),
    };
    let version = cx.version();
    let answer = pump.ask(&cx.slot, |coordinator, world, ticket| {
        coordinator.join_group(world, &caller, &request, version, ticket)
    });
    let member = request.member_id.detach();
    drop(request);
    Outcome::Later(Box::pin(async move {
        let answer = cx.slot.stopping.or(cx.connection.left.or(answer));
        match answer.await.flatten() {
            Some(Ok((Reply::Join(response), mark))) => match pump.durable(mark).await {
                Ok(()) => cx.reply_long(response).await,
                Err(error) => refuse(&cx, member, error),
            },
            _ => refuse(&cx, member, ErrorCode::NOT_COORDINATOR),
        }
    }))
}

fn refuse(cx: &Context, member_id: Str, error_code: ErrorCode) -> Outcome {
    let protocol_name = None;
    cx.reply(&JoinGroupResponse { error_code, member_id, protocol_name, ..Default::default() })
}
