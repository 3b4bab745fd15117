//! The newest offset of each key in a stretch of a log.
//!
//! Law: a key is known by a 128-bit keyed hash (SipHash-2-4) under a seed of each round's own, so
//! that nobody can send two keys that are taken for one. The table never holds more entries than
//! its limit; whoever wants to add one more is told, and cleans what is mapped so far.

/// Table of hashes and offsets, open addressing with linear probing.
pub struct KeyMap {
    seed: [u64; 2],
    slots: Vec<Slot>,
    len: usize,
    limit: usize,
}

#[derive(Clone, Copy)]
struct Slot {
    hash: [u64; 2],
    /// −1 in a free slot.
    offset: i64,
}

/// The table holds as many keys as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl KeyMap {
    /// A table of at most `bytes`, of which `load` may be in use (0 to 1); room for one key at
    /// least.
    pub fn new(seed: [u64; 2], bytes: usize, load: f64) -> KeyMap {
        let count = (bytes / SLOT_BYTES).max(2);
        let limit = ((count as f64 * load) as usize).clamp(1, count - 1);
        KeyMap { seed, slots: vec![Slot::FREE; count], len: 0, limit }
    }

    /// Keys that are in it.
    pub fn count(&self) -> usize {
        self.len
    }

    /// Keys that still fit.
    pub fn room(&self) -> usize {
        self.limit - self.len
    }

    /// The table's keys in a table of `bytes`.
    pub fn grown(self, bytes: usize, load: f64) -> KeyMap {
        let mut grown = KeyMap::new(self.seed, bytes, load);
        assert!(grown.limit >= self.len, "a table does not shrink");
        for slot in self.slots.iter().filter(|slot| slot.offset >= 0) {
            let at = grown.find(slot.hash);
            grown.slots[at] = *slot;
        }
        grown.len = self.len;
        grown
    }

    /// The key's newest offset is now `offset`.
    pub fn put(&mut self, key: &[u8], offset: i64) -> Result<(), Full> {
        assert!(offset >= 0, "offsets are not negative");
        let hash = sip_128(self.seed, key);
        let at = self.find(hash);
        let slot = &mut self.slots[at];
        if slot.offset < 0 {
            if self.len >= self.limit {
                return Err(Full);
            }
            self.len += 1;
        }
        *slot = Slot { hash, offset: offset.max(slot.offset) };
        Ok(())
    }

    /// The key's newest offset; none when the mapped stretch does not have the key.
    pub fn get(&self, key: &[u8]) -> Option<i64> {
        let slot = self.slots[self.find(sip_128(self.seed, key))];
        (slot.offset >= 0).then_some(slot.offset)
    }

    /// The slot that has the hash, or the free one where it belongs.
    fn find(&self, hash: [u64; 2]) -> usize {
        let count = self.slots.len();
        let mut at = ((u128::from(hash[0]) * count as u128) >> 64) as usize;
        while self.slots[at].offset >= 0 && self.slots[at].hash != hash {
            at += 1;
            if at == count {
                at = 0;
            }
        }
        at
    }
}

impl Slot {
    const FREE: Slot = Slot { hash: [0; 2], offset: -1 };
}

/// SipHash-2-4 with 128 bits of output (Aumasson, Bernstein).
pub fn sip_128(seed: [u64; 2], bytes: &[u8]) -> [u64; 2] {
    let [k0, k1] = seed;
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        absorb(&mut v, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = bytes.len() as u8;
    absorb(&mut v, u64::from_le_bytes(last));
    v[2] ^= 0xee;
    (0..4).for_each(|_| mix(&mut v));
    let first = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    (0..4).for_each(|_| mix(&mut v));
    [first, v[0] ^ v[1] ^ v[2] ^ v[3]]
}

fn absorb(v: &mut [u64; 4], word: u64) {
    v[3] ^= word;
    mix(v);
    mix(v);
    v[0] ^= word;
}

fn mix(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

/// Memory of one key.
pub const SLOT_BYTES: usize = size_of::<Slot>();
const _: () = assert!(SLOT_BYTES == 24);
