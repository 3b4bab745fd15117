//! What a config request is about, as the protocol names it: a type and a name.

use protocol::{ErrorCode, NodeId, Str};

use super::Refusal;
use crate::configs::Family;
use crate::image::Image;
use crate::record::ConfigResource;
use crate::topic_name::check_topic_name;

pub(super) const TOPIC: i8 = 2;
pub(super) const BROKER: i8 = 4;
pub(super) const BROKER_LOGGER: i8 = 8;
pub(super) const CLIENT_METRICS: i8 = 16;
pub(super) const GROUP: i8 = 32;

/// A resource that exists in form: whether it exists in fact is asked by whoever cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Resource {
    Kept(ConfigResource),
    Loggers(NodeId),
}

impl Resource {
    pub(super) fn parse(image: &Image, kind: i8, name: &Str) -> Result<Self, Refusal> {
        let invalid = |message: String| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
        match kind {
            TOPIC | CLIENT_METRICS | GROUP if name.is_empty() => {
                invalid("a topic, a group and a subscription need a name".to_owned())
            }
            TOPIC => match check_topic_name(name) {
                Ok(()) => Ok(Self::Kept(ConfigResource::Topic(name.detach()))),
                Err(why) => Err(Refusal::new(ErrorCode::INVALID_TOPIC_EXCEPTION, why)),
            },
            BROKER if name.is_empty() => Ok(Self::Kept(ConfigResource::AllNodes)),
            BROKER => {
                let node = parse_node(image, name)?;
                let (host, slot) = (node.host(), node.slot());
                Ok(Self::Kept(ConfigResource::Node { host, slot }))
            }
            BROKER_LOGGER => Ok(Self::Loggers(parse_node(image, name)?)),
            CLIENT_METRICS => Ok(Self::Kept(ConfigResource::ClientMetrics(name.detach()))),
            GROUP => Ok(Self::Kept(ConfigResource::Group(name.detach()))),
            _ => invalid(format!("resources of type {kind} have no configs")),
        }
    }
}

fn parse_node(image: &Image, name: &str) -> Result<NodeId, Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    let Ok(id) = name.parse::<i32>() else {
        return invalid("a node is named by its number".to_owned());
    };
    match image.node(NodeId(id)) {
        Some(node) => Ok(node.id),
        None => invalid(format!("there is no node {id}")),
    }
}

pub(super) fn family_of(resource: &ConfigResource) -> Family {
    match resource {
        ConfigResource::Topic(_) => Family::Topic,
        ConfigResource::Node { .. } | ConfigResource::AllNodes => Family::Broker,
        ConfigResource::ClientMetrics(_) => Family::ClientMetrics,
        ConfigResource::Group(_) => Family::Group,
    }
}
