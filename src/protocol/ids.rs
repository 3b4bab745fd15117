//! The ids and positions that the inside of the broker passes around, each a type of its own.
//!
//! Messages carry plain integers as Kafka's schemas do; a handler names them with these types at
//! the door. A host is one process, a slot one core of it, and clients see each slot as a node:
//! `node = host × 1000 + slot`.

use std::fmt;

use crate::Uuid;

/// How many slots a host can number; the factor between a host id and its first node id.
pub const SLOTS_PER_HOST: i32 = 1000;

/// A broker as clients see it: one slot of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i32);

/// A `coretide serve` process, stable over restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub i32);

/// One core's worth of broker inside a host, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotIndex(pub u16);

/// What tells a topic from an earlier or later one of the same name (KIP-516).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub Uuid);

/// The identity of an idempotent or transactional producer (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerId(pub i64);

/// The incarnation of a producer id; a newer one fences the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerEpoch(pub i16);

/// The term of a partition's leader (KIP-101); it only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaderEpoch(pub i32);

/// The position of a record in a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub i64);

impl NodeId {
    /// The node that stands for this slot of this host.
    #[must_use]
    pub fn of(host: HostId, slot: SlotIndex) -> Self {
        assert!(host.0 >= 0 && i32::from(slot.0) < SLOTS_PER_HOST, "{host:?} {slot:?}");
        Self(host.0 * SLOTS_PER_HOST + i32::from(slot.0))
    }

    /// The host this node is a slot of. Clients use negative ids for "none": these have no host.
    #[must_use]
    pub fn host(self) -> HostId {
        HostId(self.0.div_euclid(SLOTS_PER_HOST))
    }

    #[must_use]
    pub fn slot(self) -> SlotIndex {
        let slot = self.0.rem_euclid(SLOTS_PER_HOST);
        SlotIndex(u16::try_from(slot).unwrap_or(0))
    }
}

impl ProducerId {
    /// What a batch carries that comes from a producer without idempotence.
    pub const NONE: Self = Self(-1);
}

impl ProducerEpoch {
    pub const NONE: Self = Self(-1);
}

impl LeaderEpoch {
    /// What a peer sends that does not know the epoch or does not want it checked.
    pub const NONE: Self = Self(-1);
}

macro_rules! shown_as_its_number {
    ($($id:ident)*) => { $(
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    )* };
}

shown_as_its_number!(NodeId HostId SlotIndex TopicId ProducerId ProducerEpoch LeaderEpoch Offset);
