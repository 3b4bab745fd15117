//! The keys of a subscription to client metrics. They are kept and shown; nothing is collected.

use super::key::{ConfigKey, Kind, Rule};
use super::reason;

/// In the order of their names.
pub static CLIENT_METRICS_KEYS: &[ConfigKey] = &[
    ConfigKey::new("interval.ms", Kind::Int, "300000")
        .rule(Rule::Between(100, 3_600_000))
        .inert(reason::TELEMETRY)
        .doc("How often clients send their metrics."),
    ConfigKey::new("match", Kind::List, "")
        .inert(reason::TELEMETRY)
        .doc("Which clients are asked: name=pattern for a property of theirs, or all when empty."),
    ConfigKey::new("metrics", Kind::List, "")
        .inert(reason::TELEMETRY)
        .doc("Beginnings of the names of metrics that are asked for; * asks for all."),
];

/// The properties of a client that `match` can name.
pub(super) const MATCHABLE: &[&str] = &[
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];
