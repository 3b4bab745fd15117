//! Behaviour: elects leaders (KIP-183, KIP-460); with one replica there is never anything to elect.
//!
//! Versions: 0–2. 1 tells kinds of election apart.

use metadata::controller as decisions;
use protocol::messages::elect_leaders::ElectLeadersRequest;

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: ElectLeadersRequest) -> Outcome {
    let decided = cx.decide(move |context| decisions::elect_leaders(context, &request));
    match decided.await {
        Ok(response) => cx.reply_long(response).await,
        Err(why) => Outcome::Close(why.to_string()),
    }
}
