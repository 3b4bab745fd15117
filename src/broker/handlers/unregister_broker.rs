//! Behaviour: takes a host that is gone for good out of the cluster (KIP-631).
//!
//! Versions: 0.

use metadata::controller as decisions;
use protocol::messages::unregister_broker::UnregisterBrokerRequest;

use crate::connection::Outcome;
use crate::controller;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: UnregisterBrokerRequest) -> Outcome {
    let decided = controller::decide(&cx.slot, move |context| {
        decisions::unregister_broker(context, &request)
    });
    match decided.await {
        Ok(response) => cx.reply(&response),
        Err(why) => Outcome::Close(why.to_string()),
    }
}
