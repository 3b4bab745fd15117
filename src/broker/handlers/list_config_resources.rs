//! Behaviour: what has configs: topics, nodes, groups and client metrics (KIP-1142).
//!
//! Versions: 0–1. 0 lists client metrics only; in 1 an empty list of types means all.

use metadata::controller as decisions;
use protocol::messages::list_config_resources::ListConfigResourcesRequest;

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: ListConfigResourcesRequest) -> Outcome {
    let image = cx.slot.image();
    cx.reply_long(decisions::list_config_resources(&image, &request, cx.version())).await
}
