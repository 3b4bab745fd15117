//! Committed offsets read without a copy, against what the declared structures say of the bytes.

use protocol::group_records::{Key, OffsetCommitKey, OffsetCommitValue, OffsetKey, OffsetValue};
use protocol::{Str, Uuid};

use crate::entropy::Entropy;

const ROUNDS: u64 = 20_000;

#[test]
fn what_is_written_is_read_back() {
    for seed in 0..ROUNDS {
        let entropy = &mut Entropy::new(seed, 0);
        let (key, value) = (key(entropy), value(entropy));
        let bytes = Key::Offset(key.clone()).encode();
        assert_eq!(OffsetKey::parse(&bytes), Some(OffsetKey::from(&key)), "seed {seed}");
        let bytes = value.encode();
        let read = OffsetValue::parse(&bytes);
        match value.expire_timestamp {
            -1 => assert_eq!(read, Some(OffsetValue::from(&value)), "seed {seed}"),
            // Of an older version, which is left to the declared structure.
            _ => assert_eq!(read, None, "seed {seed}"),
        }
    }
}

#[test]
fn damaged_bytes_are_not_read_as_anything_else() {
    let mut read_all_the_same = 0;
    for seed in 0..ROUNDS {
        let entropy = &mut Entropy::new(seed, 1);
        let bytes = damaged(&Key::Offset(key(entropy)).encode(), entropy);
        if let Some(read) = OffsetKey::parse(&bytes) {
            let Ok(Key::Offset(known)) = Key::decode(bytes.clone().into()) else {
                panic!("seed {seed}: {read:?}");
            };
            assert_eq!(read, OffsetKey::from(&known), "seed {seed}");
            read_all_the_same += 1;
        }
        let bytes = damaged(&value(entropy).encode(), entropy);
        if let Some(read) = OffsetValue::parse(&bytes) {
            let known = OffsetCommitValue::decode(bytes.clone().into()).unwrap();
            assert_eq!(read, OffsetValue::from(&known), "seed {seed}");
        }
    }
    assert!(read_all_the_same > 100, "{read_all_the_same}");
}

#[test]
fn other_records_are_not_taken_for_offsets() {
    for kind in (0..20_i16).filter(|kind| *kind != 1) {
        let mut bytes = kind.to_be_bytes().to_vec();
        bytes.extend([0; 20]);
        assert_eq!(OffsetKey::parse(&bytes), None, "{kind}");
    }
}

/// A byte changed, or the end cut off.
fn damaged(bytes: &[u8], entropy: &mut Entropy) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = entropy.below(bytes.len() as u64) as usize;
    match entropy.once_in(2) {
        true => bytes.truncate(at),
        false => bytes[at] ^= 1 << entropy.below(8),
    }
    bytes
}

fn key(entropy: &mut Entropy) -> OffsetCommitKey {
    let partition = entropy.next() as i32;
    OffsetCommitKey { group: text(entropy), topic: text(entropy), partition }
}

fn value(entropy: &mut Entropy) -> OffsetCommitValue {
    OffsetCommitValue {
        offset: entropy.next() as i64,
        leader_epoch: entropy.next() as i32,
        metadata: text(entropy),
        commit_timestamp: entropy.next() as i64,
        expire_timestamp: if entropy.once_in(4) { entropy.below(1 << 40) as i64 } else { -1 },
        topic_id: Uuid::ZERO,
    }
}

fn text(entropy: &mut Entropy) -> Str {
    let letters = ["a", "ß", "漢", "🦀", "-", "z"];
    let length = entropy.below(40);
    let text: String =
        (0..length).map(|_| letters[entropy.below(letters.len() as u64) as usize]).collect();
    Str::from(text)
}
