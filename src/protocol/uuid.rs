//! Kafka's 128-bit ids (topics, directories, client instances), written as 22 characters of
//! base64url without padding.

use std::fmt;
use std::str::FromStr;

/// An id of sixteen bytes. Ordered as its bytes are.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// What the wire carries where there is no id.
    pub const ZERO: Self = Self([0; 16]);

    #[must_use]
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

/// The text is not 22 characters of base64url that stand for sixteen bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id is 22 characters of A-Z, a-z, 0-9, - and _")]
pub struct NotAnId;

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u128::from_be_bytes(self.0);
        // 22 characters are 132 bits: the last one carries two bits of the id and four of padding.
        let mut text = [0; TEXT_CHARS];
        text[TEXT_CHARS - 1] = ALPHABET[((rest & 0b11) << 4) as usize];
        rest >>= 2;
        for place in text[..TEXT_CHARS - 1].iter_mut().rev() {
            *place = ALPHABET[(rest & 0x3f) as usize];
            rest >>= 6;
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        if text.len() != TEXT_CHARS {
            return Err(NotAnId);
        }
        let mut bits: u128 = 0;
        for (place, letter) in text.bytes().enumerate() {
            let value = ALPHABET.iter().position(|&a| a == letter).ok_or(NotAnId)? as u128;
            if place < TEXT_CHARS - 1 {
                bits = bits << 6 | value;
            } else {
                bits = bits << 2 | value >> 4;
            }
        }
        Ok(Self(bits.to_be_bytes()))
    }
}

const TEXT_CHARS: usize = 22;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
