//! What the broker behind the configs can do yet. One switch per ability: turning it on makes the
//! values that need it acceptable everywhere.

/// Groups of the consumer protocol (KIP-848), and their keys.
pub const GROUPS: bool = true;
/// Transactions, and their keys.
pub const TRANSACTIONS: bool = false;
/// Copies of a partition on several hosts, and elections among them.
pub const REPLICATION: bool = false;
