//! Behaviour: deletes topics by name or id; their files are out of sight when the answer leaves.
//!
//! Versions: 1–6. 6 accepts ids (KIP-516).

use metadata::controller as decisions;
use protocol::messages::delete_topics::DeleteTopicsRequest;

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: DeleteTopicsRequest) -> Outcome {
    let version = cx.version();
    let decided = cx.decide(move |context| decisions::delete_topics(context, &request, version));
    match decided.await {
        Ok(response) => cx.reply_long(response).await,
        Err(why) => Outcome::Close(why.to_string()),
    }
}
