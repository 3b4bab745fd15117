//! Behaviour: the configs of topics, nodes, groups, client metrics and loggers, with where each
//! value comes from (KIP-226) and what it means (KIP-569).
//!
//! Versions: 1–4. 3 brings type and documentation.

use metadata::controller as decisions;
use protocol::messages::describe_configs::DescribeConfigsRequest;

use crate::connection::Outcome;
use crate::dispatch::Context;
use crate::logs;

pub async fn handle(cx: Context, request: DescribeConfigsRequest) -> Outcome {
    let image = cx.slot.image();
    // Nothing is decided here, so there is no chance to give.
    let context = decisions::Context { image: &image, statics: &cx.slot.host.statics, random: 0 };
    let asked = decisions::Asked { node: cx.slot.node, loggers: &logs::levels() };
    cx.reply(&decisions::describe_configs(&context, asked, &request))
}
