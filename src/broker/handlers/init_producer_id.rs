//! Behaviour: gives an idempotent producer its id and epoch 0 (KIP-98). Ids come from blocks that
//! the controller hands to each slot, so that no two slots ever give the same one.
//!
//! Versions: 0–5. Transactional ids are refused until transactions are served.

use protocol::ErrorCode;
use protocol::messages::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

use crate::connection::Outcome;
use crate::dispatch::Context;
use crate::producer_ids::NoProducerId;

pub async fn handle(cx: Context, request: InitProducerIdRequest) -> Outcome {
    let response = match decide(&cx, &request).await {
        Ok((producer_id, producer_epoch)) => {
            InitProducerIdResponse { producer_id, producer_epoch, ..Default::default() }
        }
        Err(error_code) => InitProducerIdResponse {
            error_code,
            producer_epoch: -1,
            ..InitProducerIdResponse::default()
        },
    };
    cx.reply(&response)
}

async fn decide(cx: &Context, request: &InitProducerIdRequest) -> Result<(i64, i16), ErrorCode> {
    match &request.transactional_id {
        Some(_) => return Err(ErrorCode::INVALID_REQUEST),
        None if (request.producer_id < 0) != (request.producer_epoch < 0) => {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        None => {}
    }
    match cx.slot.producer_ids.next(&cx.slot).await {
        Ok(id) => Ok((id, 0)),
        Err(NoProducerId::Stopping) => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        Err(NoProducerId::Refused(refusal)) => Err(refusal.code),
    }
}
