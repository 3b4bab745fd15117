//! Behaviour: takes members out of a classic group at once.
//!
//! Versions: 0–5. 3 takes several members, static ones by their instance id (KIP-345).

use protocol::messages::leave_group::{
    LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::groups::{Mark, Pump};

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
    let (outcomes, mark) = match leave(&cx, &pump, &request.group_id, &members).await {
        Ok((outcomes, mark)) => (outcomes, mark),
        Err(error) => return refuse(&cx, error),
    };
    Outcome::Later(Box::pin(async move {
        match pump.durable(mark).await {
            Err(error) => refuse(&cx, error),
            Ok(()) if several => cx.reply_long(listed(members, outcomes)).await,
            Ok(()) => refuse(&cx, outcomes.first().copied().unwrap_or_default()),
        }
    }))
}

/// One outcome for each, and when they are durable.
async fn leave(
    cx: &Context,
    pump: &Pump,
    group: &Str,
    members: &[MemberIdentity],
) -> Result<(Vec<ErrorCode>, Mark), ErrorCode> {
    let decide = |some: &[MemberIdentity]| {
        pump.decide(&cx.slot, |coordinator, world| coordinator.leave_group(world, group, some))
    };
    let (first, rest) = members.split_at(members.len().min(PIECE_MEMBERS));
    let (decided, mut mark) = decide(first);
    let mut outcomes = decided?;
    for some in rest.chunks(PIECE_MEMBERS) {
        pause_if_long().await;
        pump.check_serving()?;
        let (decided, last) = decide(some);
        outcomes.extend(decided?);
        mark = last;
    }
    Ok((outcomes, mark))
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
/// Members that are taken out in one go.
const PIECE_MEMBERS: usize = 1000;
