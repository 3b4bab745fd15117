//! ListConfigResources.
//!
//! Behaviour: version 0 lists subscriptions to client metrics (KIP-1000); from 1 on, resources of
//! the wanted types, or of all types if none is named (KIP-1142). Topics and nodes are listed
//! whether or not they have overrides, groups and subscriptions only if they have.

use protocol::messages::list_config_resources::{
    ConfigResource as Listed, ListConfigResourcesRequest, ListConfigResourcesResponse,
};
use protocol::{ErrorCode, Str};

use super::resource::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC};
use crate::image::Image;
use crate::record::ConfigResource;

pub fn list_config_resources(
    image: &Image,
    request: &ListConfigResourcesRequest,
    version: i16,
) -> ListConfigResourcesResponse {
    let all = [TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP];
    let wanted: &[i8] = match (version, request.resource_types.as_slice()) {
        (0, _) => &[CLIENT_METRICS],
        (_, []) => &all,
        (_, named) => named,
    };
    if wanted.iter().any(|kind| !all.contains(kind)) {
        let error_code = ErrorCode::UNSUPPORTED_VERSION;
        return ListConfigResourcesResponse { error_code, ..Default::default() };
    }
    let asked = all.into_iter().filter(|kind| wanted.contains(kind));
    let config_resources = asked
        .flat_map(|kind| {
            let names = names_of(image, kind);
            names.into_iter().map(move |name| Listed { resource_name: name, resource_type: kind })
        })
        .collect();
    ListConfigResourcesResponse { config_resources, ..Default::default() }
}

fn names_of(image: &Image, kind: i8) -> Vec<Str> {
    let configured = image.configured_resources();
    match kind {
        TOPIC => image.topic_names().cloned().collect(),
        BROKER | BROKER_LOGGER => {
            image.nodes().map(|node| Str::from(node.id.to_string())).collect()
        }
        GROUP => configured
            .filter_map(|resource| match resource {
                ConfigResource::Group(name) => Some(name.clone()),
                _ => None,
            })
            .collect(),
        _ => configured
            .filter_map(|resource| match resource {
                ConfigResource::ClientMetrics(name) => Some(name.clone()),
                _ => None,
            })
            .collect(),
    }
}
