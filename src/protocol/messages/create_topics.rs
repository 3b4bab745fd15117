//! Behaviour: Creates topics. -1 partitions or replicas stand for the default of the broker
//! (KIP-464); with a replica assignment both have to be -1. `validate_only` changes nothing.
//!
//! Versions: 2–7, flexible from 5. 5 answers the configuration of the new topic (KIP-525), 6 has
//! an error for a used-up quota (KIP-599), 7 the id of the topic (KIP-516).

use crate::wire::messages;
use crate::{ErrorCode, Str, Uuid};

messages! {
    api CreateTopics;

    request CreateTopicsRequest {
        topics: Vec<CreatableTopic> [2..],
        /// How long to wait until the topics exist everywhere, in ms.
        timeout_ms: i32 [2..] = 60_000,
        /// Check everything, change nothing.
        validate_only: bool [2..],
    }

    /// A topic that shall be.
    part CreatableTopic {
        name: Str [2..],
        /// -1 for the default of the broker, or if `assignments` is given.
        num_partitions: i32 [2..],
        /// -1 for the default of the broker, or if `assignments` is given.
        replication_factor: i16 [2..],
        assignments: Vec<CreatableReplicaAssignment> [2..],
        configs: Vec<CreatableTopicConfig> [2..],
    }

    /// The replicas of one partition, chosen by the client.
    part CreatableReplicaAssignment {
        partition_index: i32 [2..],
        broker_ids: Vec<i32> [2..],
    }

    /// A value that shall apply to the topic.
    part CreatableTopicConfig {
        name: Str [2..],
        /// Null is refused.
        value: Option<Str> [2.., null 2..] = Some(Str::EMPTY),
    }

    response CreateTopicsResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [2..],
        topics: Vec<CreatableTopicResult> [2..],
    }

    /// A topic that now is, or why it is not.
    part CreatableTopicResult {
        name: Str [2..],
        topic_id: Uuid [7..],
        error_code: ErrorCode [2..],
        error_message: Option<Str> [2.., null 2..] = Some(Str::EMPTY),
        /// Set if `configs` are withheld.
        topic_config_error_code: ErrorCode [5.., tag 0],
        /// -1 if unknown.
        num_partitions: i32 [5..] = -1,
        /// -1 if unknown.
        replication_factor: i16 [5..] = -1,
        /// Null if the client may not see them.
        configs: Option<Vec<CreatableTopicConfigs>> [5.., null 5..] = Some(Vec::new()),
    }

    /// A value as it applies to the new topic.
    part CreatableTopicConfigs {
        name: Str [5..],
        value: Option<Str> [5.., null 5..] = Some(Str::EMPTY),
        read_only: bool [5..],
        /// 1 topic, 2 node, 3 all nodes, 4 static, 5 default, 6 logger, 7 client metrics, 8 group.
        config_source: i8 [5..] = -1,
        is_sensitive: bool [5..],
    }
}
