//! Behaviour: the nodes of the cluster (KIP-700). Controllers cannot be asked by this port: there
//! is no bootstrap by controllers here, and the endpoint type says so.
//!
//! Versions: 0–2. 1 names an endpoint type (KIP-919), 2 can include fenced nodes (KIP-1073).

use protocol::messages::describe_cluster::{
    DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse,
};
use protocol::{ErrorCode, Str};

use crate::connection::Outcome;
use crate::dispatch::Context;

pub async fn handle(cx: Context, request: DescribeClusterRequest) -> Outcome {
    let wrong = match request.endpoint_type {
        BROKERS => None,
        CONTROLLERS => Some((
            ErrorCode::MISMATCHED_ENDPOINT_TYPE,
            "this port serves brokers; ask for endpoint type 1",
        )),
        _ => Some((ErrorCode::UNSUPPORTED_ENDPOINT_TYPE, "endpoint types are 1 and 2")),
    };
    if let Some((error_code, message)) = wrong {
        return cx.reply(&DescribeClusterResponse {
            error_code,
            error_message: Some(Str::from_static(message)),
            ..DescribeClusterResponse::default()
        });
    }
    let image = cx.slot.image();
    let brokers = image.nodes().map(|node| DescribeClusterBroker {
        broker_id: node.id.0,
        host: node.host,
        port: i32::from(node.port),
        rack: node.rack,
        is_fenced: false,
    });
    let operations = match request.include_cluster_authorized_operations {
        true => CLUSTER_OPERATIONS,
        false => i32::MIN,
    };
    cx.reply(&DescribeClusterResponse {
        endpoint_type: BROKERS,
        cluster_id: cx.slot.identity.cluster_id.clone(),
        controller_id: cx.slot.node.0,
        brokers: brokers.collect(),
        cluster_authorized_operations: operations,
        ..DescribeClusterResponse::default()
    })
}

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;
/// Without authorization everyone may do what there is on a cluster: create (5), alter (7),
/// describe (8), cluster action (9), describe and alter configs (10, 11), idempotent write (12).
pub(super) const CLUSTER_OPERATIONS: i32 =
    1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;
/// On a topic: read (3), write (4), create (5), delete (6), alter (7), describe (8), describe and
/// alter configs (10, 11).
pub(super) const TOPIC_OPERATIONS: i32 =
    1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11;
