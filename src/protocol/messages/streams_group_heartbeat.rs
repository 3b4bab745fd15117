//! Behaviour: The one request of a member of a streams group (KIP-1071).
//!
//! Versions: 0–1, flexible from 0. 1 can ask for the description of the topology (KIP-1331).

use crate::wire::messages;
use crate::{ErrorCode, Str};

messages! {
    api StreamsGroupHeartbeat;

    request StreamsGroupHeartbeatRequest {
        group_id: Str [0..],
        member_id: Str [0..],
        member_epoch: i32 [0..],
        endpoint_information_epoch: i32 [0..],
        instance_id: Option<Str> [0.., null 0..],
        rack_id: Option<Str> [0.., null 0..],
        /// How long the others wait for this member in a rebalance.
        rebalance_timeout_ms: i32 [0..] = -1,
        topology: Option<Topology> [0.., null 0..],
        active_tasks: Option<Vec<TaskIds>> [0.., null 0..],
        standby_tasks: Option<Vec<TaskIds>> [0.., null 0..],
        warmup_tasks: Option<Vec<TaskIds>> [0.., null 0..],
        process_id: Option<Str> [0.., null 0..],
        user_endpoint: Option<Endpoint> [0.., null 0..],
        client_tags: Option<Vec<KeyValue>> [0.., null 0..],
        task_offsets: Option<Vec<TaskOffset>> [0.., null 0..],
        task_end_offsets: Option<Vec<TaskOffset>> [0.., null 0..],
        shutdown_application: bool [0..],
    }

    part Topology {
        epoch: i32 [0..],
        subtopologies: Vec<Subtopology> [0..],
    }

    part Subtopology {
        subtopology_id: Str [0..],
        source_topics: Vec<Str> [0..],
        source_topic_regex: Vec<Str> [0..],
        state_changelog_topics: Vec<TopicInfo> [0..],
        repartition_sink_topics: Vec<Str> [0..],
        repartition_source_topics: Vec<TopicInfo> [0..],
        copartition_groups: Vec<CopartitionGroup> [0..],
    }

    part TopicInfo {
        name: Str [0..],
        partitions: i32 [0..],
        replication_factor: i16 [0..],
        topic_configs: Vec<KeyValue> [0..],
    }

    part KeyValue {
        key: Str [0..],
        value: Str [0..],
    }

    part CopartitionGroup {
        source_topics: Vec<i16> [0..],
        source_topic_regex: Vec<i16> [0..],
        repartition_source_topics: Vec<i16> [0..],
    }

    part TaskIds {
        subtopology_id: Str [0..],
        partitions: Vec<i32> [0..],
    }

    part Endpoint {
        host: Str [0..],
        port: u16 [0..],
    }

    part TaskOffset {
        subtopology_id: Str [0..],
        partition: i32 [0..],
        offset: i64 [0..],
    }

    response StreamsGroupHeartbeatResponse {
        /// How long the sender should hold back, in ms (KIP-219).
        throttle_time_ms: i32 [0..],
        error_code: ErrorCode [0..],
        error_message: Option<Str> [0.., null 0..],
        member_id: Str [0..],
        member_epoch: i32 [0..],
        heartbeat_interval_ms: i32 [0..],
        acceptable_recovery_lag_legacy: i32 [0..=0],
        task_offset_interval_ms: i32 [0..],
        acceptable_recovery_lag: i64 [1..] = -1,
        status: Option<Vec<Status>> [0.., null 0..] = Some(Vec::new()),
        active_tasks: Option<Vec<TaskIds>> [0.., null 0..],
        standby_tasks: Option<Vec<TaskIds>> [0.., null 0..],
        warmup_tasks: Option<Vec<TaskIds>> [0.., null 0..],
        topology_description_required: bool [1..],
        endpoint_information_epoch: i32 [0..],
        partitions_by_user_endpoint: Option<Vec<EndpointToPartitions>> [0.., null 0..],
    }

    part Status {
        status_code: i8 [0..],
        status_detail: Str [0..],
    }

    part EndpointToPartitions {
        user_endpoint: Endpoint [0..],
        active_partitions: Vec<TopicPartition> [0..],
        standby_partitions: Vec<TopicPartition> [0..],
    }

    part TopicPartition {
        topic: Str [0..],
        partitions: Vec<i32> [0..],
    }
}
