//! The keys of a broker: Kafka 4.4's, by area, and those of older releases that are known by name.

mod cluster;
mod groups;
mod log;
mod network;
mod oauth;
mod remote;
mod security;
mod share;
mod transactions;

use super::key::ConfigKey;

/// Every area's table; each is in the order of its names.
static AREAS: &[&[ConfigKey]] = &[
    cluster::CLUSTER_KEYS,
    groups::GROUPS_KEYS,
    log::LOG_KEYS,
    network::NETWORK_KEYS,
    oauth::OAUTH_KEYS,
    remote::REMOTE_KEYS,
    security::SECURITY_KEYS,
    share::SHARE_KEYS,
    transactions::TRANSACTIONS_KEYS,
];

/// Every broker key, by area.
pub fn broker_keys() -> impl Iterator<Item = &'static ConfigKey> {
    AREAS.iter().copied().flatten()
}

pub(super) fn find(name: &str) -> Option<&'static ConfigKey> {
    AREAS.iter().find_map(|keys| {
        let place = keys.binary_search_by(|key| key.name.cmp(name)).ok()?;
        Some(&keys[place])
    })
}

/// Keys of releases before 4.0, which a configuration file may still have, and why they do nothing.
pub(super) static RETIRED: &[(&str, &str)] = &[
    ("broker.id.generation.enable", NUMBERED),
    ("control.plane.listener.name", "the controller has no listener of its own"),
    ("controlled.shutdown.max.retries", "a host that stops always hands over first"),
    ("controlled.shutdown.retry.backoff.ms", "a host that stops always hands over first"),
    ("delegation.token.master.key", "delegation tokens are not served"),
    ("inter.broker.protocol.version", "hosts agree on what they speak by themselves"),
    ("leader.imbalance.per.broker.percentage", "leaders are balanced by `coretide rebalance`"),
    ("log.message.downconversion.enable", "there are no clients left that need old formats"),
    ("log.message.format.version", "there is one record format"),
    ("log.message.timestamp.difference.max.ms", SPLIT_WINDOW),
    ("offsets.commit.required.acks", "offsets are always written with acks=all"),
    ("password.encoder.cipher.algorithm", NO_SECRETS),
    ("password.encoder.iterations", NO_SECRETS),
    ("password.encoder.key.length", NO_SECRETS),
    ("password.encoder.keyfactory.algorithm", NO_SECRETS),
    ("password.encoder.old.secret", NO_SECRETS),
    ("password.encoder.secret", NO_SECRETS),
    ("reserved.broker.max.id", NUMBERED),
    ("zookeeper.clientCnxnSocket", NO_ZOOKEEPER),
    ("zookeeper.connect", NO_ZOOKEEPER),
    ("zookeeper.connection.timeout.ms", NO_ZOOKEEPER),
    ("zookeeper.max.in.flight.requests", NO_ZOOKEEPER),
    ("zookeeper.metadata.migration.enable", NO_ZOOKEEPER),
    ("zookeeper.metadata.migration.min.batch.size", NO_ZOOKEEPER),
    ("zookeeper.session.timeout.ms", NO_ZOOKEEPER),
    ("zookeeper.set.acl", NO_ZOOKEEPER),
];

const NO_ZOOKEEPER: &str = "there is no ZooKeeper: metadata is in the hosts' own quorum";
const NO_SECRETS: &str = "no passwords are kept in metadata";
const NUMBERED: &str = "hosts are numbered with --host-id";
const SPLIT_WINDOW: &str =
    "log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms replace it";
