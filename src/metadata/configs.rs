//! Every configuration key that Kafka 4.4 has, and what becomes of it here.
//!
//! - Tables (`topic_keys`, `broker_keys`, `group_keys`, `client_metrics_keys`) say name, kind,
//!   default, rule, documentation, and whether a key is honoured, does nothing, or is refused.
//! - `value` parses; `static_settings` holds what was given at start; `layers` says which of
//!   several values counts; `check` decides whether an override may be set.
//! - `topic_settings` and `broker_settings` are what the rest of the broker reads.
//!
//! Invariant: no value is read and ignored in silence. What does nothing says so when it is set.

mod broker_keys;
mod broker_settings;
mod check;
mod client_metrics_keys;
mod describe;
mod error;
mod group_keys;
mod key;
mod layers;
mod lookup;
mod reason;
mod served;
mod source;
mod static_settings;
mod topic_keys;
mod topic_settings;
mod value;

pub use broker_keys::broker_keys;
pub use broker_settings::{
    BrokerSettings, CleanerSettings, ConsumerGroupSettings, GroupSettings, GroupTime,
    InternalTopicSettings,
};
pub use check::{SetFor, check_broker, check_client_metrics, check_group, check_topic};
pub use describe::{
    Described, DescribedConfig, describe_all_nodes, describe_client_metrics, describe_group,
    describe_loggers, describe_node, describe_topic,
};
pub use error::ConfigError;
pub use key::{ConfigKey, Effect, Importance, Kind, Rule, Scope};
pub use layers::{BrokerLayers, Outranked, Synonym};
pub use lookup::{Family, nearest};
pub use served::{GROUPS, REPLICATION, TRANSACTIONS};
pub use source::Source;
pub use static_settings::{StaticSettings, Warning};
pub use topic_settings::{CleanupPolicy, CompressionType, TimestampType, TopicSettings};
pub use value::{AddressLimit, VALUE_BYTES_MAX, Value, ValueError};
