//! The table of keys: exact hashes, a limit that holds, growth that loses nothing.

use storage::compaction::keys::{Full, KeyMap, SLOT_BYTES, sip_128};

/// Vectors of the reference implementation: key 00..0f, input of 0, 1, 2, … bytes.
#[test]
fn hashes_are_siphash_2_4_of_128_bits() {
    let seed = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
    let vectors: [(&[u8], [u8; 16]); 2] = [
        (
            &[],
            [
                0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55,
                0x02, 0x93,
            ],
        ),
        (
            &[0],
            [
                0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22,
                0xfc, 0x45,
            ],
        ),
    ];
    for (input, expected) in vectors {
        let [first, second] = sip_128(seed, input);
        let found: Vec<u8> = [first.to_le_bytes(), second.to_le_bytes()].concat();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_full_table_takes_known_keys_only() {
    let mut map = KeyMap::new([1, 2], 10 * SLOT_BYTES, 0.5);
    for key in 0..5_u8 {
        assert_eq!(map.put(&[key], i64::from(key)), Ok(()));
    }
    assert_eq!((map.count(), map.room()), (5, 0));
    assert_eq!(map.put(&[9], 9), Err(Full));
    assert_eq!(map.put(&[3], 30), Ok(()));
    assert_eq!(map.get(&[3]), Some(30));
    assert_eq!(map.get(&[9]), None);
}

#[test]
fn growth_loses_no_key() {
    let mut map = KeyMap::new([3, 4], 1200 * SLOT_BYTES, 0.9);
    for key in 0..1000_u32 {
        map.put(&key.to_be_bytes(), i64::from(key) * 7).unwrap();
    }
    let map = map.grown(4000 * SLOT_BYTES, 0.9);
    assert_eq!(map.count(), 1000);
    assert!(map.room() >= 2000);
    for key in 0..1000_u32 {
        assert_eq!(map.get(&key.to_be_bytes()), Some(i64::from(key) * 7));
    }
}
