//! The words that records and snapshots are written in: little-endian base-128 integers, length
//! first for everything that varies. This crate's own format, on disk and between hosts only.
//!
//! Invariants: every read is checked against what is left, every length against a named limit,
//! and nothing is allocated from a length before the bytes are known to be there. There are no
//! checksums here: the log that carries a record has one.

use protocol::{HostId, SlotIndex, Str, Uuid};

/// Why bytes are not what this crate wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    #[error("{wanted} bytes are wanted where {left} are left")]
    Short { wanted: usize, left: usize },
    #[error("an integer runs over more bytes than its type has room for")]
    IntegerTooLong,
    #[error("{value} does not fit the field {field}")]
    OutOfRange { field: &'static str, value: i64 },
    #[error("{field} has {count} entries where {limit} are the most")]
    TooMany { field: &'static str, count: u64, limit: u64 },
    #[error("text is not UTF-8")]
    NotUtf8,
    #[error("{count} bytes follow the end of a {what}")]
    TrailingBytes { what: &'static str, count: usize },
    #[error("{what} of kind {kind}, version {version} was written by a newer release")]
    Newer { what: &'static str, kind: u64, version: u64 },
    #[error("these bytes are not a {what}")]
    Foreign { what: &'static str },
}

/// Text longer than this is in no record.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn unsigned(&mut self, mut value: u64) {
        while value > 0x7f {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    pub(crate) fn signed(&mut self, value: i64) {
        self.unsigned(((value << 1) ^ (value >> 63)) as u64);
    }

    pub(crate) fn flag(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    pub(crate) fn text(&mut self, text: &str) {
        assert!(text.len() <= TEXT_BYTES_MAX, "text of {} bytes in a record", text.len());
        self.unsigned(text.len() as u64);
        self.raw(text.as_bytes());
    }

    pub(crate) fn optional_text(&mut self, text: Option<&str>) {
        self.flag(text.is_some());
        if let Some(text) = text {
            self.text(text);
        }
    }

    pub(crate) fn block(&mut self, block: &[u8]) {
        self.unsigned(block.len() as u64);
        self.raw(block);
    }

    pub(crate) fn uuid(&mut self, id: Uuid) {
        self.raw(&id.0);
    }

    pub(crate) fn host(&mut self, host: HostId) {
        self.signed(i64::from(host.0));
    }

    pub(crate) fn slot(&mut self, slot: SlotIndex) {
        self.unsigned(u64::from(slot.0));
    }
}

#[derive(Debug)]
pub(crate) struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// Asserts that everything was read.
    pub(crate) fn finish(self, what: &'static str) -> Result<(), CodecError> {
        match self.left.len() {
            0 => Ok(()),
            count => Err(CodecError::TrailingBytes { what, count }),
        }
    }

    pub(crate) fn raw(&mut self, wanted: usize) -> Result<&'a [u8], CodecError> {
        let Some((head, rest)) = self.left.split_at_checked(wanted) else {
            return Err(CodecError::Short { wanted, left: self.left.len() });
        };
        self.left = rest;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, CodecError> {
        Ok(self.raw(1)?[0])
    }

    pub(crate) fn unsigned(&mut self) -> Result<u64, CodecError> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(CodecError::IntegerTooLong);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(CodecError::IntegerTooLong)
    }

    pub(crate) fn signed(&mut self) -> Result<i64, CodecError> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(crate) fn int<T: TryFrom<i64>>(&mut self, field: &'static str) -> Result<T, CodecError> {
        let value = self.signed()?;
        T::try_from(value).map_err(|_| CodecError::OutOfRange { field, value })
    }

    pub(crate) fn flag(&mut self) -> Result<bool, CodecError> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(CodecError::OutOfRange { field: "flag", value: i64::from(value) }),
        }
    }

    /// A number of entries, refused above `limit` and where not even a byte each is left.
    pub(crate) fn count(&mut self, field: &'static str, limit: usize) -> Result<usize, CodecError> {
        let count = self.unsigned()?;
        let limit = limit.min(self.left.len()) as u64;
        if count > limit {
            return Err(CodecError::TooMany { field, count, limit });
        }
        Ok(count as usize)
    }

    pub(crate) fn text(&mut self) -> Result<Str, CodecError> {
        let length = self.count("text", TEXT_BYTES_MAX)?;
        let text = std::str::from_utf8(self.raw(length)?).map_err(|_| CodecError::NotUtf8)?;
        Ok(Str::from(text.to_owned()))
    }

    pub(crate) fn optional_text(&mut self) -> Result<Option<Str>, CodecError> {
        Ok(if self.flag()? { Some(self.text()?) } else { None })
    }

    pub(crate) fn block(&mut self) -> Result<&'a [u8], CodecError> {
        let length = self.count("block", usize::MAX)?;
        self.raw(length)
    }

    pub(crate) fn uuid(&mut self) -> Result<Uuid, CodecError> {
        let mut id = [0; 16];
        id.copy_from_slice(self.raw(16)?);
        Ok(Uuid(id))
    }

    pub(crate) fn host(&mut self) -> Result<HostId, CodecError> {
        self.int("host id").map(HostId)
    }

    pub(crate) fn slot(&mut self) -> Result<SlotIndex, CodecError> {
        let slot = self.unsigned()?;
        u16::try_from(slot)
            .map(SlotIndex)
            .map_err(|_| CodecError::OutOfRange { field: "slot", value: slot as i64 })
    }
}
