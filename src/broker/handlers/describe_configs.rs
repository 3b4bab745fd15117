//! Behaviour: the configs of topics, nodes, groups, client metrics and loggers, with where each
//! value comes from (KIP-226) and what it means (KIP-569).
//!
//! A resource takes little in a request and much in an answer, so an answer that holds very many
//! configs refuses the rest.
//!
//! Versions: 1–4. 3 brings type and documentation.

use metadata::controller as decisions;
use protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse, DescribeConfigsResult,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::{Context, pause_if_long};
use crate::logs;

pub async fn handle(cx: Context, request: DescribeConfigsRequest) -> Outcome {
    let image = cx.slot.image();
    // Nothing is decided here, so there is no chance to give.
    let context = decisions::Context { image: &image, statics: &cx.slot.host.statics, random: 0 };
    let asked = decisions::Asked { node: cx.slot.node, loggers: &logs::levels() };
    let mut results = Vec::with_capacity(request.resources.len());
    let mut described = 0;
    for resource in &request.resources {
        let result = match described < CONFIGS_PER_ANSWER_MAX {
            true => decisions::describe_configs(&context, asked, &request, resource),
            false => too_many(resource),
        };
        described += result.configs.len();
        results.push(result);
        pause_if_long().await;
    }
    cx.reply_long(DescribeConfigsResponse { results, ..DescribeConfigsResponse::default() }).await
}

fn too_many(resource: &DescribeConfigsResource) -> DescribeConfigsResult {
    DescribeConfigsResult {
        error_code: ErrorCode::INVALID_REQUEST,
        error_message: Some(Str::from_static("too many configs are asked for in one request")),
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        configs: Vec::new(),
    }
}

/// Of 5,000 topics, each config a few hundred bytes.
const CONFIGS_PER_ANSWER_MAX: usize = 200_000;
