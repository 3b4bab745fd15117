//! Behaviour: creates topics, each decided by itself; answered when every node serves them.
//!
//! Versions: 2–7. 5 answers with configs (KIP-525), 7 with topic ids (KIP-516).

use metadata::controller as decisions;
use protocol::messages::create_topics::CreateTopicsRequest;

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: CreateTopicsRequest) -> Outcome {
    let decided = cx.decide(move |context| decisions::create_topics(context, &request));
    match decided.await {
        Ok(response) => cx.reply_long(response).await,
        Err(why) => Outcome::Close(why.to_string()),
    }
}
