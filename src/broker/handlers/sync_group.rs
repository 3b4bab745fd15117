//! Behaviour: gives a member its assignment once the leader has handed all of them in and they
//! are durable.
//!
//! Versions: 0–5. 3 knows static members (KIP-345), 5 repeats protocol type and name (KIP-559).

use coordinator::Reply;
use protocol::ErrorCode;
use protocol::messages::sync_group::{SyncGroupRequest, SyncGroupResponse};

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: SyncGroupRequest) -> Outcome {
    let pump = match cx.slot.groups.find(&cx.slot, &request.group_id) {
        _ if lacks_protocol(&cx, &request) => {
            return refuse(&cx, ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        _ if request.group_id.is_empty() => return refuse(&cx, ErrorCode::INVALID_GROUP_ID),
        Ok(pump) => pump,
        Err(error) => return refuse(&cx, error),
    };
    let answer = pump.ask(&cx.slot, |coordinator, world, ticket| {
        coordinator.sync_group(world, &request, ticket)
    });
    drop(request);
    Outcome::Later(Box::pin(async move {
        let answer = cx.slot.stopping.or(cx.connection.left.or(answer));
        match answer.await.flatten() {
            Some(Ok((Reply::Sync(response), mark))) => match pump.durable(mark).await {
                Ok(()) => cx.reply(&response),
                Err(error) => refuse(&cx, error),
            },
            _ => refuse(&cx, ErrorCode::NOT_COORDINATOR),
        }
    }))
}

/// From version 5 on a member has to say what it agreed to.
fn lacks_protocol(cx: &Context, request: &SyncGroupRequest) -> bool {
    let told = request.protocol_type.is_some() && request.protocol_name.is_some();
    cx.version() >= FIRST_VERSION_WITH_PROTOCOL && !told
}

fn refuse(cx: &Context, error_code: ErrorCode) -> Outcome {
    cx.reply(&SyncGroupResponse { error_code, ..SyncGroupResponse::default() })
}

const FIRST_VERSION_WITH_PROTOCOL: i16 = 5;
