//! Ids from a seed: the same seed gives the same ids, different seeds give ids that never meet.

use protocol::Uuid;

/// A stream of ids (splitmix64, twice, over the halves of a 128-bit seed).
#[derive(Debug, Clone)]
pub struct RandomIds {
    high: u64,
    low: u64,
}

impl RandomIds {
    pub fn new(seed: u128) -> Self {
        Self { high: (seed >> 64) as u64, low: seed as u64 }
    }

    /// Never the zero id or one that Kafka reserves, and never one whose text begins with '-',
    /// which command lines would take for a flag.
    pub fn next_id(&mut self) -> Uuid {
        loop {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&step(&mut self.high).to_be_bytes());
            bytes[8..].copy_from_slice(&step(&mut self.low).to_be_bytes());
            let reserved = bytes[..15].iter().all(|&byte| byte == 0);
            let id = Uuid(bytes);
            if !reserved && !id.to_string().starts_with('-') {
                return id;
            }
        }
    }
}

fn step(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
