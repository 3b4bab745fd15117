//! A committed offset as it stands in its record, without a copy: a start reads millions of them.
//!
//! Law: what is read here is what the declared structures say of the same bytes. Whatever is not
//! as it is written today is left to them.

use super::{OFFSET, OffsetCommitKey, OffsetCommitValue, VALUE_VERSION};

/// Which committed offset a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetKey<'a> {
    pub group: &'a str,
    pub topic: &'a str,
    pub partition: i32,
}

/// What was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetValue<'a> {
    pub offset: i64,
    /// Of the last record read; −1 if unknown.
    pub leader_epoch: i32,
    pub metadata: &'a str,
    /// Milliseconds since 1970.
    pub commit_timestamp: i64,
    /// When the client wanted it forgotten; −1 to go by the broker's retention.
    pub expire_timestamp: i64,
}

impl<'a> OffsetKey<'a> {
    /// `None` for the key of another record, and for one that is not as usual.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        if rest.i16()? != OFFSET {
            return None;
        }
        Some(OffsetKey { group: rest.text()?, topic: rest.text()?, partition: rest.i32()? })
    }
}

impl<'a> From<&'a OffsetCommitKey> for OffsetKey<'a> {
    fn from(key: &'a OffsetCommitKey) -> Self {
        OffsetKey { group: &key.group, topic: &key.topic, partition: key.partition }
    }
}

impl<'a> OffsetValue<'a> {
    /// `None` for a value of another version, and for one that is not as usual.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        if rest.i16()? != VALUE_VERSION {
            return None;
        }
        Some(OffsetValue {
            offset: rest.i64()?,
            leader_epoch: rest.i32()?,
            metadata: rest.text()?,
            commit_timestamp: rest.i64()?,
            expire_timestamp: -1,
        })
    }
}

impl<'a> From<&'a OffsetCommitValue> for OffsetValue<'a> {
    fn from(value: &'a OffsetCommitValue) -> Self {
        OffsetValue {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: &value.metadata,
            commit_timestamp: value.commit_timestamp,
            expire_timestamp: value.expire_timestamp,
        }
    }
}

/// Bytes that are read from the front.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn i16(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    /// `None` for null, and for what is not UTF-8.
    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.i16()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        str::from_utf8(text).ok()
    }
}
