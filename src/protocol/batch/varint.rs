//! Zigzag varints of records: one routine for whoever checks and whoever decodes, so that the
//! two cannot disagree on where a number ends.
//!
//! At most 5 bytes for 32 bits and 10 for 64; bits beyond the width fall away, as in Kafka.

/// Longest encoding of a 32-bit number.
pub(super) const VARINT_BYTES_MAX: usize = 5;
/// Longest encoding of a 64-bit number.
pub(super) const VARLONG_BYTES_MAX: usize = 10;

/// Why no number could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VarintError {
    /// The bytes end inside the number.
    Short,
    /// More continuation bytes than the width allows.
    Long,
}

/// Reads a 32-bit number from the start of `bytes`; gives it and its length in bytes.
#[inline]
pub(super) fn read_i32(bytes: &[u8]) -> Result<(i32, usize), VarintError> {
    if let Some(&first) = bytes.first()
        && first < 0x80
    {
        return Ok((unzigzag(u64::from(first)) as i32, 1));
    }
    let (raw, used) = read_raw::<VARINT_BYTES_MAX>(bytes)?;
    Ok((unzigzag(u64::from(raw as u32)) as i32, used))
}

/// Reads a 64-bit number from the start of `bytes`; gives it and its length in bytes.
#[inline]
pub(super) fn read_i64(bytes: &[u8]) -> Result<(i64, usize), VarintError> {
    let (raw, used) = read_raw::<VARLONG_BYTES_MAX>(bytes)?;
    Ok((unzigzag(raw), used))
}

/// Appends `value`.
pub(super) fn write(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Bytes that `value` takes.
pub(super) fn len(value: i64) -> usize {
    let raw = ((value << 1) ^ (value >> 63)) as u64;
    (70 - (raw | 1).leading_zeros() as usize) / 7
}

#[inline]
fn read_raw<const BYTES_MAX: usize>(bytes: &[u8]) -> Result<(u64, usize), VarintError> {
    let mut raw = 0_u64;
    for (index, &byte) in bytes.iter().take(BYTES_MAX).enumerate() {
        raw |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((raw, index + 1));
        }
    }
    Err(if bytes.len() < BYTES_MAX { VarintError::Short } else { VarintError::Long })
}

#[inline]
pub(super) fn unzigzag(raw: u64) -> i64 {
    (raw >> 1) as i64 ^ -((raw & 1) as i64)
}
