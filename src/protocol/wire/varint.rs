//! The variable-length integers of flexible versions: lengths and tags, seven bits a byte, lowest
//! first.
//!
//! Reading never looks further than the five bytes a 32-bit value may have, so a run of
//! continuation bits costs five steps, not the buffer. Bits above the 32nd fall away, as in Kafka.

/// Bytes of the longest value.
pub(super) const BYTES_MAX: usize = 5;

/// Why no integer could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VarintError {
    /// The bytes ended inside the integer.
    Truncated,
    /// The integer goes on after its last permitted byte.
    TooLong,
}

/// Reads an integer from the front of `bytes`; gives it and how many bytes it took.
pub(super) fn read(bytes: &[u8]) -> Result<(u32, usize), VarintError> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(BYTES_MAX).enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((value, index + 1));
        }
    }
    Err(if bytes.len() < BYTES_MAX { VarintError::Truncated } else { VarintError::TooLong })
}

/// Writes an integer into the front of `target`; gives how many bytes it took.
pub(super) fn write(mut value: u32, target: &mut [u8; BYTES_MAX]) -> usize {
    let mut length = 0;
    while value >= 0x80 {
        target[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    target[length] = value as u8;
    length + 1
}
