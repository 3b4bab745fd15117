//! A sealed file opens as it was sealed, or not at all.

use storage::envelope::{EnvelopeError, Purpose, open, seal};

const PURPOSE: Purpose = Purpose { letters: *b"TEST", version: 3 };

#[test]
fn what_was_sealed_opens() {
    for payload in [&b""[..], b"x", &[0; 10_000]] {
        assert_eq!(open(PURPOSE, &seal(PURPOSE, payload)), Ok((3, payload)));
    }
}

#[test]
fn every_flipped_bit_and_every_missing_byte_is_noticed() {
    let file = seal(PURPOSE, b"some payload");
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut flipped = file.clone();
            flipped[at] ^= 1 << bit;
            assert!(open(PURPOSE, &flipped).is_err(), "bit {bit} of byte {at}");
        }
        assert!(open(PURPOSE, &file[..at]).is_err(), "cut to {at} bytes");
    }
    let mut longer = file.clone();
    longer.push(0);
    assert!(open(PURPOSE, &longer).is_err());
}

#[test]
fn another_purpose_and_a_newer_format_are_refused_by_name() {
    let other = Purpose { letters: *b"OTHR", version: 3 };
    let found = "OTHR".to_owned();
    assert_eq!(open(PURPOSE, &seal(other, b"x")), Err(EnvelopeError::Purpose { found }));
    let newer = Purpose { version: 4, ..PURPOSE };
    let refused = EnvelopeError::Newer { found: 4, newest: 3 };
    assert!(!refused.is_damage());
    assert_eq!(open(PURPOSE, &seal(newer, b"x")), Err(refused));
    assert_eq!(open(newer, &seal(PURPOSE, b"x")), Ok((3, &b"x"[..])));
}
