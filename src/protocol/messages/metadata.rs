//! Behaviour: Tells which nodes there are, and who leads and holds the partitions of the topics
//! asked for. In version 0 no topics means all of them; from 1 on null does, and an empty list
//! means none.
//!
//! Versions: 0–13, flexible from 9. 4 can decline automatic creation, 5 has offline replicas
//! (KIP-112), 7 leader epochs (KIP-320), 8 the operations the client may do (KIP-430; those of
//! the cluster only to 10, KIP-700), 10 topic ids (KIP-516), 12 lookup by id, 13 an error for
//! the whole answer (KIP-1102).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api Metadata;

    request MetadataRequest {
        /// Null asks for all; in version 0 an empty list does.
        topics: Option<Vec<MetadataRequestTopic>> [0.., null 1..] = Some(Vec::new()),
        /// Missing topics are created if the broker permits it too.
        allow_auto_topic_creation: bool [4..] = true,
        include_cluster_authorized_operations: bool [8..=10],
        include_topic_authorized_operations: bool [8..],
    }

    /// A topic, by name or (from 12) by id.
    part MetadataRequestTopic {
        /// Zero if the topic is named by name.
        topic_id: Uuid [10..],
        /// Null if the topic is named by id.
        name: Option<Str> [0.., null 10..] = Some(Str::EMPTY),
    }

    response MetadataResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [3..],
        brokers: Vec<MetadataResponseBroker> [0..],
        cluster_id: Option<Str> [2.., null 2..],
        /// Whom to send administrative requests to; here any live node will do.
        controller_id: i32 [1..] = -1,
        topics: Vec<MetadataResponseTopic> [0..],
        /// Bits of the operations the client may do; the minimum if it did not ask (KIP-430).
        cluster_authorized_operations: i32 [8..=10] = i32::MIN,
        error_code: ErrorCode [13..],
    }

    /// A live node.
    part MetadataResponseBroker {
        node_id: i32 [0..],
        host: Str [0..],
        port: i32 [0..],
        rack: Option<Str> [1.., null 1..],
    }

    /// A topic with its partitions, or why there is none.
    part MetadataResponseTopic {
        error_code: ErrorCode [0..],
        name: Option<Str> [0.., null 12..] = Some(Str::EMPTY),
        topic_id: Uuid [10..],
        /// Kept by the broker for itself: offsets and transactions.
        is_internal: bool [1..],
        partitions: Vec<MetadataResponsePartition> [0..],
        /// Bits of the operations the client may do; the minimum if it did not ask (KIP-430).
        topic_authorized_operations: i32 [8..] = i32::MIN,
    }

    /// Who leads and holds one partition.
    part MetadataResponsePartition {
        error_code: ErrorCode [0..],
        partition_index: i32 [0..],
        /// -1 while there is none.
        leader_id: i32 [0..],
        leader_epoch: i32 [7..] = -1,
        /// Node ids, the preferred leader first.
        replica_nodes: Vec<i32> [0..],
        /// The replicas in sync with the leader.
        isr_nodes: Vec<i32> [0..],
        /// Replicas that cannot be used at the moment (KIP-112).
        offline_replicas: Vec<i32> [5..],
    }
}
