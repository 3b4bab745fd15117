//! Behaviour: Stores the description of a streams topology for people to read (KIP-1331).
//!
//! Versions: 0, flexible from 0.

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api StreamsGroupTopologyDescriptionUpdate;

    request StreamsGroupTopologyDescriptionUpdateRequest {
        group_id: Str [0..],
        member_id: Str [0..],
        topology_epoch: i32 [0..],
        topology_description: TopologyDescription [0..],
    }

    part TopologyDescription {
        subtopologies: Vec<TopologyDescriptionSubtopology> [0..],
        global_stores: Vec<TopologyDescriptionGlobalStore> [0..],
    }

    part TopologyDescriptionSubtopology {
        subtopology_id: Str [0..],
        nodes: Vec<TopologyDescriptionNode> [0..],
    }

    part TopologyDescriptionNode {
        name: Str [0..],
        node_type: i8 [0..],
        source_topics: Vec<Str> [0..],
        sink_topic: Option<Str> [0.., null 0..],
        stores: Vec<Str> [0..],
        successors: Vec<Str> [0..],
    }

    part TopologyDescriptionGlobalStore {
        source: TopologyDescriptionNode [0..],
        processor: TopologyDescriptionNode [0..],
    }

    response StreamsGroupTopologyDescriptionUpdateResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
    }
}
