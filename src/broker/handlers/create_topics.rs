//! Behaviour: creates topics, each decided by itself; answered when every node serves them.
//!
//! Versions: 2–7. 5 answers with configs (KIP-525), 7 with topic ids (KIP-516).

use metadata::controller as decisions;
use protocol::messages::create_topics::CreateTopicsRequest;

use crate::connection::Outcome;
use crate::controller;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: CreateTopicsRequest) -> Outcome {
    let is_long = request.topics.len() > TOPICS_INLINE_MAX;
    let decide =
        move |context: &decisions::Context<'_>| decisions::create_topics(context, &request);
    let decided = match is_long {
        true => controller::decide_beside(&cx.slot, decide).await,
        false => controller::decide(&cx.slot, decide).await,
    };
    match decided {
        Ok(response) => cx.reply(&response),
        Err(why) => Outcome::Close(why.to_string()),
    }
}

/// So many topics are decided in a millisecond or two.
const TOPICS_INLINE_MAX: usize = 100;
