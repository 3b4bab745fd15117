//! One small file, wholly covered by one checksum.
//!
//! Law: what is opened is byte for byte what was sealed, or it is refused with the reason. A file
//! is sealed for one purpose and one format version; another purpose never opens it. Nothing here
//! touches the disk: whoever seals writes the bytes atomically (temporary file, sync, rename).
//!
//! ```text
//! 0   4   purpose   four ASCII letters
//! 4   2   version   of the payload's format, big endian
//! 6   2   zero
//! 8   8   payload length in bytes, big endian
//! 16  n   payload
//! 16+n 4  CRC-32C over everything before it, big endian
//! ```

use thiserror::Error;

/// What a sealed file is for, and which format of its payload this program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    pub letters: [u8; 4],
    pub version: u16,
}

/// Why a sealed file is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EnvelopeError {
    #[error("the file is {found} bytes long, shorter than its frame")]
    TooShort { found: usize },
    #[error("the file says it holds {expected} bytes but holds {found}")]
    Length { expected: u64, found: usize },
    #[error("the checksum is {found:08x} but the bytes give {expected:08x}")]
    Checksum { expected: u32, found: u32 },
    #[error("the file was written for another purpose ({found:?})")]
    Purpose { found: String },
    #[error("the file has format {found}, this program reads up to {newest}")]
    Newer { found: u16, newest: u16 },
    #[error("the payload is malformed: {reason}")]
    Payload { reason: &'static str },
}

impl EnvelopeError {
    /// A newer format is a refusal by name; everything else is damage.
    pub fn is_damage(&self) -> bool {
        !matches!(self, EnvelopeError::Newer { .. })
    }
}

/// Frames `payload` so that `open` can tell every changed byte.
pub fn seal(purpose: Purpose, payload: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(FRAME_BYTES + payload.len());
    let (mut sealing, head) = Sealing::begin(purpose, payload.len() as u64);
    file.extend_from_slice(&head);
    sealing.add(payload);
    file.extend_from_slice(payload);
    file.extend_from_slice(&sealing.end());
    file
}

/// Frames a payload that comes in pieces, of which only the length is known.
pub struct Sealing {
    checksum: u32,
}

impl Sealing {
    /// What stands before the payload.
    pub fn begin(purpose: Purpose, payload_bytes: u64) -> (Sealing, [u8; HEAD_BYTES]) {
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&purpose.letters);
        head[4..6].copy_from_slice(&purpose.version.to_be_bytes());
        head[8..].copy_from_slice(&payload_bytes.to_be_bytes());
        (Sealing { checksum: crc32c::crc32c(&head) }, head)
    }

    pub fn add(&mut self, piece: &[u8]) {
        self.checksum = crc32c::crc32c_append(self.checksum, piece);
    }

    /// What stands behind the payload.
    pub fn end(&self) -> [u8; 4] {
        self.checksum.to_be_bytes()
    }
}

/// The payload of a sealed file and the version it was written in.
pub fn open(purpose: Purpose, file: &[u8]) -> Result<(u16, &[u8]), EnvelopeError> {
    if file.len() < FRAME_BYTES {
        return Err(EnvelopeError::TooShort { found: file.len() });
    }
    let (covered, checksum) = file.split_at(file.len() - 4);
    let found = u32::from_be_bytes([checksum[0], checksum[1], checksum[2], checksum[3]]);
    let expected = crc32c::crc32c(covered);
    if found != expected {
        return Err(EnvelopeError::Checksum { expected, found });
    }
    let (head, payload) = covered.split_at(HEAD_BYTES);
    if head[..4] != purpose.letters {
        let found = String::from_utf8_lossy(&head[..4]).into_owned();
        return Err(EnvelopeError::Purpose { found });
    }
    let version = u16::from_be_bytes([head[4], head[5]]);
    if version > purpose.version {
        return Err(EnvelopeError::Newer { found: version, newest: purpose.version });
    }
    let mut length = [0; 8];
    length.copy_from_slice(&head[8..16]);
    let expected = u64::from_be_bytes(length);
    if expected != payload.len() as u64 {
        return Err(EnvelopeError::Length { expected, found: payload.len() });
    }
    Ok((version, payload))
}

/// Reads big-endian fields of a payload; running out of bytes is a malformed payload.
pub struct PayloadReader<'a> {
    rest: &'a [u8],
}

impl<'a> PayloadReader<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        PayloadReader { rest: payload }
    }

    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], EnvelopeError> {
        let (field, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(EnvelopeError::Payload { reason: "it ends inside a field" })?;
        self.rest = rest;
        Ok(*field)
    }

    pub fn u8(&mut self) -> Result<u8, EnvelopeError> {
        Ok(self.take::<1>()?[0])
    }

    pub fn i16(&mut self) -> Result<i16, EnvelopeError> {
        self.take().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, EnvelopeError> {
        self.take().map(i32::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, EnvelopeError> {
        self.take().map(u32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, EnvelopeError> {
        self.take().map(i64::from_be_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, EnvelopeError> {
        self.take().map(u64::from_be_bytes)
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Everything must have been read: bytes that nobody understands are damage.
    pub fn finish(self) -> Result<(), EnvelopeError> {
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(EnvelopeError::Payload { reason: "bytes are left over" }),
        }
    }
}

pub const HEAD_BYTES: usize = 16;
const FRAME_BYTES: usize = HEAD_BYTES + 4;
