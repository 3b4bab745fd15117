//! The assignors of the broker: who is to have which partition.
//!
//! Pure functions of the members' subscriptions and of the last target. Every partition of a topic
//! that somebody subscribes to goes to exactly one of its subscribers.

mod mixed;
mod range;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};

use protocol::{Str, Uuid};

use super::Partitions;

/// The ones that members may name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignor {
    /// Shares of one size, moving as little as possible.
    #[default]
    Uniform,
    /// Of every topic neighbouring partitions, the same ones of topics that are joined.
    Range,
}

/// A member as an assignor sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub id: &'a Str,
    pub instance_id: Option<&'a Str>,
    /// That exist and that it subscribes to.
    pub topics: &'a BTreeSet<Uuid>,
    /// What it was to have until now.
    pub target: &'a Partitions,
}

/// How many partitions a topic has.
pub(super) type Counts = BTreeMap<Uuid, i32>;

impl Assignor {
    pub fn named(name: &str) -> Option<Assignor> {
        match name {
            "uniform" => Some(Assignor::Uniform),
            "range" => Some(Assignor::Range),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Assignor::Uniform => "uniform",
            Assignor::Range => "range",
        }
    }

    /// A share for each subject, in their order.
    pub(super) fn assign(self, subjects: &[Subject<'_>], counts: &Counts) -> Vec<Partitions> {
        let alike = subjects.windows(2).all(|pair| pair[0].topics == pair[1].topics);
        match self {
            Assignor::Range => range::assign(subjects, counts),
            Assignor::Uniform if alike => uniform::assign(subjects, counts),
            Assignor::Uniform => mixed::assign(subjects, counts),
        }
    }
}
