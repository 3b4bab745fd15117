//! What a node's configs come to: the honoured broker keys, typed, of all layers the strongest.
//!
//! Defaults of topic configs are not here: a topic's settings draw on the layers themselves.

use std::net::IpAddr;

use super::broker_keys;
use super::layers::BrokerLayers;
use super::value::{AddressLimit, Value, parse_limits};

/// Effective values of one node. Times in milliseconds, sizes in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct BrokerSettings {
    pub auto_create_topics: bool,
    pub connections_max_idle_ms: i64,
    pub default_replication_factor: i32,
    pub delete_topics: bool,
    pub fetch_max_bytes: i32,
    pub cleaner: CleanerSettings,
    pub log_retention_check_interval_ms: i64,
    pub max_connections: i32,
    pub max_connections_per_ip: i32,
    pub max_connections_per_ip_overrides: Vec<AddressLimit>,
    pub fetch_session_cache_slots: i32,
    pub max_request_partition_size_limit: i32,
    pub num_partitions: i32,
    pub producer_id_expiration_ms: i32,
    pub queued_max_requests: i32,
    pub rack: Option<String>,
    pub socket_request_max_bytes: i32,
    pub offsets_topic: InternalTopicSettings,
    pub transaction_state_topic: InternalTopicSettings,
    pub groups: GroupSettings,
}

/// How logs are compacted.
#[derive(Debug, Clone, PartialEq)]
pub struct CleanerSettings {
    pub enabled: bool,
    pub backoff_ms: i64,
    /// Memory for keys, bytes.
    pub dedupe_buffer_bytes: i64,
    /// How full that memory may be, 0 to 1.
    pub load_factor: f64,
    pub io_buffer_bytes: i32,
    /// Of the whole host; none when no limit was set.
    pub io_bytes_per_second: Option<f64>,
}

/// What bounds groups and committed offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSettings {
    pub initial_rebalance_delay_ms: i32,
    pub session_timeout_min_ms: i32,
    pub session_timeout_max_ms: i32,
    pub members_max: i32,
    pub offset_metadata_max: i32,
    pub offsets_retention_minutes: i32,
    pub retention_check_interval_ms: i64,
    pub consumer: ConsumerGroupSettings,
}

/// What holds for groups of the consumer protocol (KIP-848).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerGroupSettings {
    /// Whether there are any.
    pub is_served: bool,
    pub session_timeout_ms: GroupTime,
    pub heartbeat_interval_ms: GroupTime,
    pub assignment_interval_ms: GroupTime,
    pub members_max: i32,
    /// By name, the default first.
    pub assignors: Vec<String>,
    pub migration_policy: String,
    pub pattern_refresh_ms: i32,
}

/// A time in milliseconds that groups may set for themselves, within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupTime {
    pub usual: i32,
    pub least: i32,
    pub most: i32,
}

/// How the broker creates a topic of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InternalTopicSettings {
    pub partitions: i32,
    pub replication_factor: i32,
    pub segment_bytes: i32,
    pub min_insync_replicas: Option<i32>,
}

impl BrokerSettings {
    pub fn resolve(layers: &BrokerLayers<'_>) -> Self {
        let from = Strongest { layers };
        Self {
            auto_create_topics: from.flag("auto.create.topics.enable"),
            connections_max_idle_ms: from.long("connections.max.idle.ms"),
            default_replication_factor: from.int("default.replication.factor"),
            delete_topics: from.flag("delete.topic.enable"),
            fetch_max_bytes: from.int("fetch.max.bytes"),
            cleaner: CleanerSettings {
                enabled: from.flag("log.cleaner.enable"),
                backoff_ms: from.long("log.cleaner.backoff.ms"),
                dedupe_buffer_bytes: from.long("log.cleaner.dedupe.buffer.size"),
                load_factor: from.fraction("log.cleaner.io.buffer.load.factor"),
                io_buffer_bytes: from.int("log.cleaner.io.buffer.size"),
                io_bytes_per_second: Some(from.fraction("log.cleaner.io.max.bytes.per.second"))
                    .filter(|limit| *limit < f64::MAX),
            },
            log_retention_check_interval_ms: from.long("log.retention.check.interval.ms"),
            max_connections: from.int("max.connections"),
            max_connections_per_ip: from.int("max.connections.per.ip"),
            max_connections_per_ip_overrides: from
                .text("max.connections.per.ip.overrides")
                .and_then(|text| parse_limits(&text))
                .unwrap_or_default(),
            fetch_session_cache_slots: from.int("max.incremental.fetch.session.cache.slots"),
            max_request_partition_size_limit: from.int("max.request.partition.size.limit"),
            num_partitions: from.int("num.partitions"),
            producer_id_expiration_ms: from.int("producer.id.expiration.ms"),
            queued_max_requests: from.int("queued.max.requests"),
            rack: from.text("broker.rack").filter(|rack| !rack.is_empty()),
            socket_request_max_bytes: from.int("socket.request.max.bytes"),
            offsets_topic: InternalTopicSettings {
                partitions: from.int("offsets.topic.num.partitions"),
                replication_factor: from.int("offsets.topic.replication.factor"),
                segment_bytes: from.int("offsets.topic.segment.bytes"),
                min_insync_replicas: None,
            },
            transaction_state_topic: InternalTopicSettings {
                partitions: from.int("transaction.state.log.num.partitions"),
                replication_factor: from.int("transaction.state.log.replication.factor"),
                segment_bytes: from.int("transaction.state.log.segment.bytes"),
                min_insync_replicas: Some(from.int("transaction.state.log.min.isr")),
            },
            groups: GroupSettings {
                initial_rebalance_delay_ms: from.int("group.initial.rebalance.delay.ms"),
                session_timeout_min_ms: from.int("group.min.session.timeout.ms"),
                session_timeout_max_ms: from.int("group.max.session.timeout.ms"),
                members_max: from.int("group.max.size"),
                offset_metadata_max: from.int("offset.metadata.max.bytes"),
                offsets_retention_minutes: from.int("offsets.retention.minutes"),
                retention_check_interval_ms: from.long("offsets.retention.check.interval.ms"),
                consumer: ConsumerGroupSettings::resolve(&from),
            },
        }
    }

    /// How many connections an address may have open.
    pub fn connections_of(&self, address: IpAddr) -> i32 {
        let own = self.max_connections_per_ip_overrides.iter().find(|it| it.address == address);
        own.map_or(self.max_connections_per_ip, |it| it.connections)
    }
}

impl ConsumerGroupSettings {
    fn resolve(from: &Strongest<'_>) -> Self {
        let protocols = from.list("group.coordinator.rebalance.protocols");
        Self {
            is_served: protocols.iter().any(|it| it == "consumer"),
            session_timeout_ms: GroupTime {
                usual: from.int("group.consumer.session.timeout.ms"),
                least: from.int("group.consumer.min.session.timeout.ms"),
                most: from.int("group.consumer.max.session.timeout.ms"),
            },
            heartbeat_interval_ms: GroupTime {
                usual: from.int("group.consumer.heartbeat.interval.ms"),
                least: from.int("group.consumer.min.heartbeat.interval.ms"),
                most: from.int("group.consumer.max.heartbeat.interval.ms"),
            },
            assignment_interval_ms: GroupTime {
                usual: from.int("group.consumer.assignment.interval.ms"),
                least: from.int("group.consumer.min.assignment.interval.ms"),
                most: from.int("group.consumer.max.assignment.interval.ms"),
            },
            members_max: from.int("group.consumer.max.size"),
            assignors: from.list("group.consumer.assignors"),
            migration_policy: from.text("group.consumer.migration.policy").unwrap_or_default(),
            pattern_refresh_ms: from.int("group.consumer.regex.refresh.interval.ms"),
        }
    }
}

struct Strongest<'a> {
    layers: &'a BrokerLayers<'a>,
}

impl Strongest<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        match broker_keys::find(name) {
            Some(key) => self.layers.value(key),
            None => panic!("there is no broker config {name}"),
        }
    }

    fn long(&self, name: &str) -> i64 {
        match self.value(name) {
            Some(Value::Whole(value)) => value,
            other => panic!("the broker config {name} is {other:?}, no whole number"),
        }
    }

    fn int(&self, name: &str) -> i32 {
        // The parser keeps the values of such keys within 32 bits.
        self.long(name) as i32
    }

    fn fraction(&self, name: &str) -> f64 {
        match self.value(name) {
            Some(Value::Fraction(value)) => value,
            other => panic!("the broker config {name} is {other:?}, no fraction"),
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.value(name) == Some(Value::Boolean(true))
    }

    fn list(&self, name: &str) -> Vec<String> {
        let text = self.text(name).unwrap_or_default();
        let each = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        each.map(str::to_owned).collect()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(|value| value.to_string())
    }
}
