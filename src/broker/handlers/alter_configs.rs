//! Behaviour: replaces all configs of a resource. Old clients use it, newer ones
//! IncrementalAlterConfigs.
//!
//! Versions: 0–2.

use metadata::controller as decisions;
use protocol::messages::alter_configs::AlterConfigsRequest;

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: AlterConfigsRequest) -> Outcome {
    let decided = cx.decide(move |context| decisions::alter_configs(context, &request));
    match decided.await {
        Ok(response) => cx.reply_long(response).await,
        Err(why) => Outcome::Close(why.to_string()),
    }
}
