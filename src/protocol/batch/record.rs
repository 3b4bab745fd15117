//! Records as views into an uncompressed batch body: nothing is copied, nothing allocated.
//!
//! The iterator yields at most the declared number of records and reports as an error whatever
//! does not add up: a record that leaves its own length, bytes behind the last record, too few
//! records. After an error it ends.

use thiserror::Error;

use super::varint::{self, VarintError};

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The body ends inside a record, or holds fewer records than were declared.
    #[error("the batch ends inside record {index}")]
    Short { index: i32 },
    /// A number or length inside the record contradicts the record's size.
    #[error("record {index} has an impossible {what}")]
    Malformed { index: i32, what: &'static str },
    /// Bytes are left behind the last declared record.
    #[error("{bytes} bytes are left behind the last of {count} records")]
    Trailing { count: i32, bytes: usize },
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Reserved by Kafka, kept as sent.
    pub attributes: i8,
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: HeaderIter<'a>,
}

/// One header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader<'a> {
    /// UTF-8 by convention; not checked.
    pub key: &'a [u8],
    pub value: Option<&'a [u8]>,
}

/// The headers of a record that was already checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderIter<'a> {
    bytes: &'a [u8],
    left: i32,
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = RecordHeader<'a>;

    fn next(&mut self) -> Option<RecordHeader<'a>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let mut parser = Parser { rest: self.bytes };
        let header = parser.header().ok()?;
        self.bytes = parser.rest;
        Some(header)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for HeaderIter<'_> {}

/// The records of an uncompressed body.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    body: &'a [u8],
    count: i32,
    index: i32,
    done: bool,
}

impl<'a> RecordIter<'a> {
    /// `body` is what lies behind the header, decompressed; `count` is the header's.
    pub fn new(body: &'a [u8], count: i32) -> Self {
        Self { body, count, index: 0, done: false }
    }

    fn finish(&mut self) -> Option<Result<RecordView<'a>, RecordError>> {
        self.done = true;
        let bytes = self.body.len();
        (bytes > 0).then_some(Err(RecordError::Trailing { count: self.count, bytes }))
    }

    fn read_one(&mut self) -> Result<RecordView<'a>, RecordError> {
        let index = self.index;
        let mut outer = Parser { rest: self.body };
        let bytes = outer.record_bytes().map_err(|fault| fault.at(index))?;
        let view = Parser { rest: bytes }.record().map_err(|fault| match fault {
            Fault::Short => RecordError::Malformed { index, what: "length" },
            fault => fault.at(index),
        })?;
        self.body = outer.rest;
        self.index += 1;
        Ok(view)
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<RecordView<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        if self.index >= self.count {
            return self.finish();
        }
        let item = self.read_one();
        self.done = item.is_err();
        Some(item)
    }
}

enum Fault {
    Short,
    Malformed(&'static str),
}

impl Fault {
    fn at(self, index: i32) -> RecordError {
        match self {
            Fault::Short => RecordError::Short { index },
            Fault::Malformed(what) => RecordError::Malformed { index, what },
        }
    }
}

impl From<VarintError> for Fault {
    fn from(error: VarintError) -> Self {
        match error {
            VarintError::Short => Fault::Short,
            VarintError::Long => Fault::Malformed("number of too many bytes"),
        }
    }
}

struct Parser<'a> {
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    fn record_bytes(&mut self) -> Result<&'a [u8], Fault> {
        let length = self.varint()?;
        if length < 0 {
            return Err(Fault::Malformed("length"));
        }
        self.take(length as usize)
    }

    fn record(mut self) -> Result<RecordView<'a>, Fault> {
        let attributes = self.take(1)?[0] as i8;
        let (timestamp_delta, used) = varint::read_i64(self.rest)?;
        self.rest = &self.rest[used..];
        let offset_delta = self.varint()?;
        let key = self.nullable("key length")?;
        let value = self.nullable("value length")?;
        let left = self.varint()?;
        if left < 0 || left as usize > self.rest.len() {
            return Err(Fault::Malformed("header count"));
        }
        let headers = HeaderIter { bytes: self.rest, left };
        for _ in 0..left {
            self.header()?;
        }
        if !self.rest.is_empty() {
            return Err(Fault::Malformed("length"));
        }
        Ok(RecordView { attributes, timestamp_delta, offset_delta, key, value, headers })
    }

    fn header(&mut self) -> Result<RecordHeader<'a>, Fault> {
        let key = self.nullable("header key length")?;
        let key = key.ok_or(Fault::Malformed("header key length"))?;
        let value = self.nullable("header value length")?;
        Ok(RecordHeader { key, value })
    }

    fn nullable(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, Fault> {
        match self.varint()? {
            -1 => Ok(None),
            length if length < 0 => Err(Fault::Malformed(what)),
            length => self.take(length as usize).map(Some),
        }
    }

    fn varint(&mut self) -> Result<i32, Fault> {
        let (value, used) = varint::read_i32(self.rest)?;
        self.rest = &self.rest[used..];
        Ok(value)
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        let (head, rest) = self.rest.split_at_checked(bytes).ok_or(Fault::Short)?;
        self.rest = rest;
        Ok(head)
    }
}
