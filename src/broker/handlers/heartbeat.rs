//! Behaviour: keeps a member alive and tells it of a rebalance.
//!
//! Versions: 0–4. 3 knows static members (KIP-345).

use protocol::ErrorCode;
use protocol::messages::heartbeat::{HeartbeatRequest, HeartbeatResponse};

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: HeartbeatRequest) -> Outcome {
    let pump = match cx.slot.groups.find(&cx.slot, &request.group_id) {
        _ if request.group_id.is_empty() => return answer(&cx, ErrorCode::INVALID_GROUP_ID),
        Ok(pump) => pump,
        Err(error) => return answer(&cx, error),
    };
    let (error, mark) =
        pump.decide(&cx.slot, |coordinator, world| coordinator.heartbeat(world, &request));
    Outcome::Later(Box::pin(async move {
        let error = pump.durable(mark).await.err().unwrap_or(error);
        answer(&cx, error)
    }))
}

fn answer(cx: &Context, error_code: ErrorCode) -> Outcome {
    cx.reply(&HeartbeatResponse { error_code, ..HeartbeatResponse::default() })
}
