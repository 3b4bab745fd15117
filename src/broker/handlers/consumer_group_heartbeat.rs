//! Behaviour: the one request of a member of a consumer group: joins, keeps alive, says what it
//! owns and hears what it is to own, leaves (KIP-848). Answered when what it changed is durable.
//!
//! Versions: 0–1. 1 has patterns, and clients that make their member ids (KIP-1082).

use coordinator::Caller;
use protocol::messages::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: ConsumerGroupHeartbeatRequest) -> Outcome {
    let level = cx.slot.image().feature_level("group.version");
    if level < 1 || !cx.slot.settings().groups.consumer.is_served {
        return refuse(&cx, ErrorCode::UNSUPPORTED_VERSION);
    }
    if request.group_id.is_empty() {
        return refuse(&cx, ErrorCode::INVALID_REQUEST);
    }
    let pump = match cx.slot.groups.find(&cx.slot, &request.group_id) {
        Ok(pump) => pump,
        Err(error) => return refuse(&cx, error),
    };
    let caller = Caller {
        client_id: cx.header.client_id.clone().unwrap_or_default(),
        client_host: Str::from(format!("/{}", cx.connection.peer.ip())),
    };
    let version = cx.version();
    let (answer, mark) = pump.decide(&cx.slot, |coordinator, world| {
        coordinator.consumer_heartbeat(world, &caller, &request, version)
    });
    drop(request);
    Outcome::Later(Box::pin(async move {
        match pump.durable(mark).await {
            Ok(()) => cx.reply_long(answer).await,
            Err(error) => refuse(&cx, error),
        }
    }))
}

fn refuse(cx: &Context, error_code: ErrorCode) -> Outcome {
    let error_message = Some(error_code.message().into());
    cx.reply(&ConsumerGroupHeartbeatResponse { error_code, error_message, ..Default::default() })
}
