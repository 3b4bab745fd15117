//! Consumer groups and their committed offsets, as a value.
//!
//! A [`Coordinator`] is the state of one partition of the topic of committed offsets. Its verbs
//! take the world as an argument and give answers and records; the records are what a restart
//! replays. Waiting requests are named by tickets: their answers come out of whichever verb, or
//! passing of time, completes them.
//!
//! Law: committed offsets change only by replay. Of a classic group, what a record says (members,
//! assignment, generation) is what replay makes of it again; who is waiting and which timers run
//! is lost with the process, and clients start that rebalance anew, as in Kafka. Every answer
//! holds only once all records that came out before it are durable: the caller sees to that.
//!
//! What may be long comes out in pieces, so that whoever asks can let others run in between: the
//! end of a group, of what was committed for a topic, and the sweep of old offsets.
//!
//! Groups of the consumer protocol hold nothing else: all that a record does not say of them is
//! made anew by the next heartbeats (KIP-848). The two kinds share offsets, an id, and the way from
//! one to the other.
//!
//! Absent on purpose: clocks, storage, transactions.

#![forbid(unsafe_code)]

mod census;
mod classic;
mod consumer;
mod consumer_verbs;
mod coordinator;
mod describe;
mod expiry;
mod leaving;
mod offsets;
mod subscription;
mod timers;
mod world;

pub use census::GroupCount;
pub use consumer::Assignor;
pub use coordinator::{Coordinator, DurableState, ReplayError};
pub use expiry::Sweep;
pub use offsets::{CommittedOffset, Place};
pub use world::{
    Caller, ConsumerGroupSettings, GroupSettings, GroupTiming, Migration, Output, Record, Reply,
    Ticket, World,
};
