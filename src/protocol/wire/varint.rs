//! Variable-length integers, seven bits a byte, lowest first: lengths and tags of flexible
//! versions, and the deltas inside record batches.
//!
//! One routine reads them all. It never looks further than the number of bytes a value may have,
//! so a run of continuation bits costs ten steps, not the buffer.

/// Bytes of the longest 32-bit and 64-bit values.
pub const U32_BYTES_MAX: usize = 5;
pub const U64_BYTES_MAX: usize = 10;

/// Why no integer could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarintError {
    /// The bytes ended inside the integer.
    Truncated,
    /// The integer goes on after its last permitted byte.
    TooLong,
}

/// Reads an unsigned integer of at most `bytes_max` bytes; gives it and how many bytes it took.
/// Bits above the 64th are dropped, as Kafka drops them.
pub fn read(bytes: &[u8], bytes_max: usize) -> Result<(u64, usize), VarintError> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().take(bytes_max).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index as u32);
        if byte < 0x80 {
            return Ok((value, index + 1));
        }
    }
    Err(if bytes.len() < bytes_max { VarintError::Truncated } else { VarintError::TooLong })
}

/// Writes an unsigned integer into the front of `target`; gives how many bytes it took.
pub fn write(mut value: u64, target: &mut [u8; U64_BYTES_MAX]) -> usize {
    let mut length = 0;
    while value >= 0x80 {
        target[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    target[length] = value as u8;
    length + 1
}

/// Signed integers travel as 0, -1, 1, -2, … so that small ones of either sign stay short.
#[must_use]
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[must_use]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
