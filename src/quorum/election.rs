//! The election timeout of a member, as a function of its seed.
//!
//! The Raft implementation draws a timeout from a global random source at every change of term or
//! role. A simulation that must repeat itself cannot have that, and neither can it notice each
//! draw. So the drawn value is replaced after every call by one that is computed: from the seed,
//! the member, the term and the number of elections this member began. No draw of the
//! implementation is ever looked at, and setting the computed value again changes nothing.
//!
//! Law: `ticks_min` ≤ timeout < 2 × `ticks_min`; another term or another round gives another draw.

use crate::records::MemberId;

pub(crate) struct ElectionTimeout {
    seed: u64,
    ticks_min: u32,
    rounds: u64,
}

impl ElectionTimeout {
    pub(crate) fn new(seed: u64, member: MemberId, ticks_min: u32) -> Self {
        ElectionTimeout { seed: mixed(seed ^ mixed(member.get())), ticks_min, rounds: 0 }
    }

    /// This member's patience has ended once more.
    pub(crate) fn on_election_begun(&mut self) {
        self.rounds += 1;
    }

    /// Ticks of silence after which the member stands for election.
    pub(crate) fn ticks(&self, term: u64) -> usize {
        let draw = mixed(self.seed ^ mixed(term) ^ mixed(!self.rounds));
        (u64::from(self.ticks_min) + draw % u64::from(self.ticks_min)) as usize
    }
}

/// The finaliser of splitmix64: every bit of the input reaches every bit of the output.
fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
