//! Behaviour: sets, deletes, appends to and subtracts from single configs (KIP-339). Levels of
//! loggers are changed in this process at once and are not kept (KIP-412).
//!
//! Versions: 0–1.

use metadata::Decision;
use metadata::controller as decisions;
use protocol::messages::incremental_alter_configs::IncrementalAlterConfigsRequest;

use crate::connection::Outcome;
use crate::dispatch::Context;
use crate::logs;

pub async fn handle(cx: Context, request: IncrementalAlterConfigsRequest) -> Outcome {
    let node = cx.slot.node;
    let decided = cx.decide(move |context| {
        let levels = decisions::Levels { node, loggers: &logs::levels() };
        let (decision, changes) = decisions::incremental_alter_configs(context, levels, &request);
        let Decision { records, response, warnings } = decision;
        Decision { records, response: (response, changes), warnings }
    });
    match decided.await {
        Ok((response, changes)) => {
            for change in changes {
                logs::set_level(change.level);
            }
            cx.reply_long(response).await
        }
        Err(why) => Outcome::Close(why.to_string()),
    }
}
