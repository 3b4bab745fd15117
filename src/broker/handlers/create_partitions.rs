//! Behaviour: adds partitions to topics (KIP-195); answered when every node serves them.
//!
//! Versions: 0–3.

use metadata::controller as decisions;
use protocol::messages::create_partitions::CreatePartitionsRequest;

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: CreatePartitionsRequest) -> Outcome {
    let decided = cx.decide(move |context| decisions::create_partitions(context, &request));
    match decided.await {
        Ok(response) => cx.reply_long(response).await,
        Err(why) => Outcome::Close(why.to_string()),
    }
}
