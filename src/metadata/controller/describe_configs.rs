//! DescribeConfigs.
//!
//! Behaviour: null or an empty list of keys means all, unknown keys are left out. Synonyms and
//! documentation come when they are asked for. A node's configs are answered by any node of the
//! same host, because they share flags and file; those of another host only it knows.

use protocol::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult,
    DescribeConfigsResult, DescribeConfigsSynonym,
};
use protocol::{ErrorCode, NodeId, Str};

use super::resource::{BROKER_LOGGER, Resource, TOPIC};
use super::{Context, Refusal};
use crate::configs::{
    BrokerLayers, Described, DescribedConfig, describe_all_nodes, describe_client_metrics,
    describe_group, describe_loggers, describe_node, describe_topic,
};
use crate::record::ConfigResource;
use crate::topic_name::TopicNameError;

/// Which node was asked, and the loggers of its process.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub node: NodeId,
    /// Name and level of each.
    pub loggers: &'a [(&'static str, &'static str)],
}

/// `context.statics` are those of the host that was asked.
pub fn describe_configs(
    context: &Context<'_>,
    asked: Asked<'_>,
    request: &DescribeConfigsRequest,
    resource: &DescribeConfigsResource,
) -> DescribeConfigsResult {
    let (error_code, error_message, configs) = match describe(context, asked, resource) {
        Ok(configs) => (ErrorCode::NONE, Some(Str::EMPTY), configs),
        Err(refusal) => (refusal.code, refusal.text(), Vec::new()),
    };
    DescribeConfigsResult {
        error_code,
        error_message,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        configs: configs.into_iter().map(|config| on_the_wire(config, request)).collect(),
    }
}

fn describe(
    context: &Context<'_>,
    asked: Asked<'_>,
    resource: &DescribeConfigsResource,
) -> Result<Vec<DescribedConfig>, Refusal> {
    let image = context.image;
    let which = &Described::keys(resource.configuration_keys.as_deref());
    let (kind, name) = (resource.resource_type, &resource.resource_name);
    if kind == BROKER_LOGGER && name.is_empty() {
        let message = "loggers belong to a node, which has to be named";
        return Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    }
    if kind == TOPIC && name.is_empty() {
        // Altering calls the same name a malformed request.
        let why = TopicNameError::Empty;
        return Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why));
    }
    let of_asked = BrokerLayers::of_node(image, asked.node, context.statics);
    let kept = match Resource::parse(image, kind, name)? {
        Resource::Kept(kept) => kept,
        Resource::Loggers(node) => {
            own_host(asked, node)?;
            return Ok(describe_loggers(asked.loggers, which));
        }
    };
    let overrides = image.overrides(&kept);
    match &kept {
        ConfigResource::Topic(name) => match image.topic(name) {
            Some(_) => Ok(describe_topic(&of_asked, overrides, which)),
            None => {
                let message = format!("there is no topic {name}");
                Err(Refusal::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, message))
            }
        },
        ConfigResource::Node { host, slot } => {
            let node = NodeId::of(*host, *slot);
            own_host(asked, node)?;
            let layers = BrokerLayers::of_node(image, node, context.statics);
            let node = image.node(node);
            Ok(node.map(|node| describe_node(&layers, &node, which)).unwrap_or_default())
        }
        ConfigResource::AllNodes => Ok(describe_all_nodes(&of_asked, which)),
        ConfigResource::ClientMetrics(_) => Ok(describe_client_metrics(overrides, which)),
        ConfigResource::Group(_) => Ok(describe_group(&of_asked, overrides, which)),
    }
}

fn own_host(asked: Asked<'_>, node: NodeId) -> Result<(), Refusal> {
    if node.host() == asked.node.host() {
        return Ok(());
    }
    let message = format!("ask node {node} itself, this is node {}", asked.node);
    Err(Refusal::new(ErrorCode::INVALID_REQUEST, message))
}

fn on_the_wire(
    config: DescribedConfig,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResourceResult {
    let synonyms = config.synonyms.into_iter().filter(|_| request.include_synonyms);
    let documentation = request.include_documentation;
    DescribeConfigsResourceResult {
        name: config.name,
        value: config.value.map(Str::from),
        read_only: config.read_only,
        config_source: config.source.wire_code(),
        is_sensitive: config.sensitive,
        synonyms: synonyms
            .map(|synonym| DescribeConfigsSynonym {
                name: Str::from(synonym.name),
                value: synonym.value.map(Str::from),
                source: synonym.source.wire_code(),
            })
            .collect(),
        config_type: config.kind_code,
        documentation: documentation.then(|| Str::from_static(config.documentation)),
    }
}
