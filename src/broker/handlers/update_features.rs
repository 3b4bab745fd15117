//! Behaviour: changes feature levels within what is served, all or nothing (KIP-584).
//!
//! Versions: 0–2. 1 can validate only (KIP-778), 2 answers once for all (KIP-1022).

use metadata::controller as decisions;
use protocol::messages::update_features::UpdateFeaturesRequest;

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: UpdateFeaturesRequest) -> Outcome {
    let decided = cx.decide(move |context| decisions::update_features(context, &request));
    match decided.await {
        Ok(response) => cx.reply_long(response).await,
        Err(why) => Outcome::Close(why.to_string()),
    }
}
