//! Hosts: formatting a cluster, starting a host, and UnregisterBroker.
//!
//! Every start is a record, and tells whether the stop before it was clean; the incarnation it
//! gets is larger than any before. A host keeps the slots it once had: partitions live on them.

use protocol::messages::unregister_broker::{UnregisterBrokerRequest, UnregisterBrokerResponse};
use protocol::{ErrorCode, HostId, NodeId, SlotIndex, Str, Uuid};

use super::features::initial_levels;
use super::{Context, Decision, RandomIds, Refusal};
use crate::record::{
    ClusterFormatted, ConfigChanged, ConfigResource, HostRegistered, HostStarted, HostUnregistered,
    MetadataRecord, PreviousStop,
};

/// Of the metadata as a whole; a release refuses clusters of a newer one.
pub const CLUSTER_FORMAT: u16 = 1;

/// What a host knows about itself when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFacts {
    pub host: HostId,
    /// Of its data directory.
    pub directory: Uuid,
    pub advertised_host: Str,
    pub client_port: u16,
    /// As many as it was started with.
    pub slots: u16,
    pub rack: Option<Str>,
    pub previous_stop: PreviousStop,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStart {
    pub incarnation: i64,
    pub cluster_id: Str,
    /// At least as many as it was started with.
    pub slots: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    #[error(
        "host {host} is registered with the data directory {registered}, and this one is {found}: \
         two hosts have one --host-id, or a directory was swapped"
    )]
    ForeignDirectory { host: HostId, registered: Uuid, found: Uuid },
    #[error("the cluster's metadata is of format {0}, and this release knows {CLUSTER_FORMAT}")]
    NewerFormat(u16),
}

/// The records of a start. The first start of the first host formats the cluster.
pub fn start_host(
    context: &Context<'_>,
    facts: &HostFacts,
) -> Result<Decision<HostStart>, StartError> {
    let image = context.image;
    if image.format() > CLUSTER_FORMAT {
        return Err(StartError::NewerFormat(image.format()));
    }
    let known = image.host(facts.host);
    if let Some(known) = known.filter(|known| known.directory != facts.directory) {
        let (host, registered, found) = (facts.host, known.directory, facts.directory);
        return Err(StartError::ForeignDirectory { host, registered, found });
    }
    let mut records = Vec::new();
    let cluster_id = match image.cluster_id() {
        Some(cluster_id) => cluster_id.clone(),
        None => {
            let id = RandomIds::new(context.random).next_id();
            let cluster_id = Str::from(id.to_string());
            records.extend(format_cluster(context, cluster_id.clone()));
            cluster_id
        }
    };
    let incarnation = known.map_or(1, |known| known.incarnation + 1);
    let slots = known.map_or(facts.slots, |known| known.slots.max(facts.slots));
    let registration = HostRegistered {
        host: facts.host,
        incarnation: known.map_or(incarnation, |known| known.incarnation),
        directory: facts.directory,
        advertised_host: facts.advertised_host.clone(),
        client_port: facts.client_port,
        slots,
        rack: facts.rack.clone(),
    };
    if known.is_none_or(|known| **known != registration) {
        records.push(MetadataRecord::HostRegistered(registration));
    }
    let (host, previous_stop) = (facts.host, facts.previous_stop);
    records.push(MetadataRecord::HostStarted(HostStarted { host, incarnation, previous_stop }));
    let response = HostStart { incarnation, cluster_id, slots };
    Ok(Decision { records, response, warnings: Vec::new() })
}

fn format_cluster(
    context: &Context<'_>,
    cluster_id: Str,
) -> impl Iterator<Item = MetadataRecord> + use<> {
    let formatted = ClusterFormatted { cluster_id, format: CLUSTER_FORMAT };
    // As Kafka 4.4 with its eligible leader replicas: the cluster as a whole says how many
    // replicas have to be in sync, so that nodes cannot differ about it.
    let key = "min.insync.replicas";
    let in_sync = context.layers().text(key).unwrap_or("1").to_owned();
    let in_sync = MetadataRecord::ConfigChanged(ConfigChanged {
        resource: ConfigResource::AllNodes,
        key: Str::from_static(key),
        value: Some(Str::from(in_sync)),
    });
    [MetadataRecord::ClusterFormatted(formatted), in_sync].into_iter().chain(initial_levels())
}

/// Behaviour: takes a host out of the cluster that is gone for good. Its nodes go together, by
/// any of their ids. A host that still has replicas stays, and so does the last one: whoever
/// answers is alive.
pub fn unregister_broker(
    context: &Context<'_>,
    request: &UnregisterBrokerRequest,
) -> Decision<UnregisterBrokerResponse> {
    let mut decision = Decision::answer(UnregisterBrokerResponse::default());
    match unregister(context, NodeId(request.broker_id)) {
        Ok(record) => {
            decision.records.push(record);
            decision.response.error_message = None;
        }
        Err(refusal) => {
            decision.response.error_code = refusal.code;
            decision.response.error_message = refusal.text();
        }
    }
    decision
}

fn unregister(context: &Context<'_>, node: NodeId) -> Result<MetadataRecord, Refusal> {
    let image = context.image;
    let Some(host) = image.node(node).and_then(|node| image.host(node.id.host())) else {
        let message = format!("there is no node {node}");
        return Err(Refusal::new(ErrorCode::BROKER_ID_NOT_REGISTERED, message));
    };
    let refuse = |message: String| Err(Refusal::new(ErrorCode::INVALID_REQUEST, message));
    if image.host_count() == 1 {
        return refuse(format!("host {} is all there is of the cluster", host.host));
    }
    let replicas: usize =
        (0..host.slots).map(|slot| image.load_of(host.host, SlotIndex(slot))).sum();
    if replicas > 0 {
        return refuse(format!("host {} still has {replicas} replicas", host.host));
    }
    Ok(MetadataRecord::HostUnregistered(HostUnregistered { host: host.host }))
}
