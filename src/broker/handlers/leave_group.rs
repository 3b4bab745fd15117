//! Behaviour: takes members out of a classic group at once.
//!
//! Versions: 0–5. 3 takes several members, static ones by their instance id (KIP-345).

use protocol::ErrorCode;
use protocol::messages::leave_group::{
    LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse,
};

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: LeaveGroupRequest) -> Outcome {
    let several = cx.version() >= FIRST_VERSION_WITH_SEVERAL;
    let members = if several {
        request.members
    } else {
        vec![MemberIdentity { member_id: request.member_id, ..MemberIdentity::default() }]
    };
    let pump = match cx.slot.groups.find(&cx.slot, &request.group_id) {
        _ if request.group_id.is_empty() => return refuse(&cx, ErrorCode::INVALID_GROUP_ID),
        Ok(pump) => pump,
        Err(error) => return refuse(&cx, error),
    };
    let (outcomes, mark) = pump.decide(&cx.slot, |coordinator, world| {
        coordinator.leave_group(world, &request.group_id, &members)
    });
    Outcome::Later(Box::pin(async move {
        match (pump.durable(mark).await, outcomes) {
            (Err(error), _) | (Ok(()), Err(error)) => refuse(&cx, error),
            (Ok(()), Ok(outcomes)) if several => cx.reply(&listed(members, outcomes)),
            (Ok(()), Ok(outcomes)) => refuse(&cx, outcomes.first().copied().unwrap_or_default()),
        }
    }))
}

fn listed(members: Vec<MemberIdentity>, outcomes: Vec<ErrorCode>) -> LeaveGroupResponse {
    let each = members.into_iter().zip(outcomes).map(|(member, error_code)| MemberResponse {
        member_id: member.member_id,
        group_instance_id: member.group_instance_id,
        error_code,
    });
    LeaveGroupResponse { members: each.collect(), ..LeaveGroupResponse::default() }
}

fn refuse(cx: &Context, error_code: ErrorCode) -> Outcome {
    cx.reply(&LeaveGroupResponse { error_code, ..LeaveGroupResponse::default() })
}

const FIRST_VERSION_WITH_SEVERAL: i16 = 3;
