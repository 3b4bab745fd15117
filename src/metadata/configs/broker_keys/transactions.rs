//! Transactions.

use super::super::key::{ConfigKey, Kind};
use super::super::reason;
use super::super::served::TRANSACTIONS;

pub(super) static TRANSACTIONS_KEYS: &[ConfigKey] = &[
    ConfigKey::new("add.partitions.to.txn.retry.backoff.max.ms", Kind::Int, "100")
        .at_least(0)
        .high()
        .needs(TRANSACTIONS, reason::TRANSACTIONS)
        .doc("How long the broker tries again to add a partition to a transaction."),
    ConfigKey::new("add.partitions.to.txn.retry.backoff.ms", Kind::Int, "20")
        .at_least(1)
        .high()
        .needs(TRANSACTIONS, reason::TRANSACTIONS)
        .doc("How long it rests between two such tries."),
    ConfigKey::new(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        Kind::Int,
        "10000",
    )
    .at_least(1)
    .low()
    .needs(TRANSACTIONS, reason::TRANSACTIONS)
    .doc("How often transactions are looked at for those whose time is over."),
    ConfigKey::new("transaction.max.timeout.ms", Kind::Int, "900000")
        .at_least(1)
        .high()
        .needs(TRANSACTIONS, reason::TRANSACTIONS)
        .doc("The longest that a transaction may stay open."),
    ConfigKey::new("transaction.partition.verification.enable", Kind::Boolean, "true")
        .low()
        .cluster_wide()
        .needs(TRANSACTIONS, reason::TRANSACTIONS)
        .doc(
            "Whether the first write to a partition is checked to belong to an open \
             transaction.",
        ),
    ConfigKey::new(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Kind::Int,
        "3600000",
    )
    .at_least(1)
    .low()
    .needs(TRANSACTIONS, reason::TRANSACTIONS)
    .doc("How often transactional ids are looked at for those that may go."),
    ConfigKey::new("transaction.state.log.load.buffer.size", Kind::Int, "5242880")
        .at_least(1)
        .high()
        .needs(TRANSACTIONS, reason::TRANSACTIONS)
        .doc("How much is read at once when a coordinator loads its transactions."),
    ConfigKey::new("transaction.state.log.min.isr", Kind::Int, "2")
        .at_least(1)
        .high()
        .doc("How many replicas have to hold a write of transaction state."),
    ConfigKey::new("transaction.state.log.num.partitions", Kind::Int, "50")
        .at_least(1)
        .high()
        .doc("How many partitions the topic of transaction state is created with."),
    ConfigKey::new("transaction.state.log.replication.factor", Kind::Short, "3")
        .at_least(1)
        .high()
        .doc("On how many hosts transaction state is kept; never more than there are."),
    ConfigKey::new("transaction.state.log.segment.bytes", Kind::Int, "104857600")
        .at_least(1)
        .high()
        .doc("How large segments of the topic of transaction state grow."),
    ConfigKey::new("transaction.two.phase.commit.enable", Kind::Boolean, "false")
        .low()
        .inert(reason::TRANSACTIONS)
        .doc("Whether transactions may be prepared by an outside coordinator and stay open."),
    ConfigKey::new("transactional.id.expiration.ms", Kind::Int, "604800000")
        .at_least(1)
        .high()
        .needs(TRANSACTIONS, reason::TRANSACTIONS)
        .doc("After how long without use a transactional id is forgotten."),
];
