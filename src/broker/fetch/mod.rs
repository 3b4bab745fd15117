//! Fetching: sessions (KIP-227), reading a plan of partitions, waiting for more.

mod read;
mod session;
mod waiter;

pub use read::{Limits, PartitionRead, ReadPlan, Reads, Target, read_all};
pub use session::{
    Begun, Interest, Kind, News, PartitionKey, Reference, Refused, Session, SessionCache, TopicKey,
    Wanted,
};
pub use waiter::FetchWaiter;
