//! A record that lies whole in the bytes at hand, read in one go: nearly every record there is.
//!
//! Law: what is read here is what the pass piece by piece would read. Whatever is wrong, unusually
//! long or cut off gives nothing, and is left to that pass.

use super::{HasKey, RecordHead};
use crate::batch::varint::unzigzag;

pub(super) struct Whole {
    pub head: RecordHead,
    pub has_key: HasKey,
    /// From the start of its length to its end.
    pub bytes: usize,
}

#[inline]
pub(super) fn read(chunk: &[u8], index: i32) -> Option<Whole> {
    let mut front = Numbers { bytes: chunk, at: 0 };
    let length = front.length()?;
    let bytes = front.at.checked_add(length)?;
    let mut record = Numbers { bytes: chunk.get(..bytes)?, at: front.at };
    let attributes = record.byte()?;
    let timestamp_delta = unzigzag(record.number()?);
    let offset_delta = unzigzag(record.number()?) as i32;
    let tail_bytes = bytes - record.at;
    let has_key = record.field()?;
    record.field()?;
    // None is 0 in zigzag, too.
    for _ in 0..record.length()? {
        if !record.field()? {
            return None;
        }
        record.field()?;
    }
    if record.at != bytes {
        return None;
    }
    let head = RecordHead { index, attributes, timestamp_delta, offset_delta, tail_bytes };
    Some(Whole { head, has_key: HasKey(has_key), bytes })
}

/// Numbers of at most three bytes, and what they are the lengths of.
struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Numbers<'_> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// As it is written, in zigzag.
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let low = u64::from(first & 0x7f);
        let second = self.byte()?;
        if second < 0x80 {
            return Some(low | u64::from(second) << 7);
        }
        let third = self.byte()?;
        let middle = u64::from(second & 0x7f) << 7;
        (third < 0x80).then_some(low | middle | u64::from(third) << 14)
    }

    /// One that is not negative.
    #[inline]
    fn length(&mut self) -> Option<usize> {
        let raw = self.number()?;
        (raw & 1 == 0).then_some((raw >> 1) as usize)
    }

    /// A length and that many bytes; false for the length -1.
    #[inline]
    fn field(&mut self) -> Option<bool> {
        let raw = self.number()?;
        if raw == MINUS_ONE {
            return Some(false);
        }
        let length = (raw & 1 == 0).then_some((raw >> 1) as usize)?;
        // Both are far below the range of a number.
        self.at += length;
        (self.at <= self.bytes.len()).then_some(true)
    }
}

/// -1 in zigzag.
const MINUS_ONE: u64 = 1;
