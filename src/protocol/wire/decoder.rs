//! Reading a frame that nobody vouches for.
//!
//! Invariants: the position never passes the end; every length is compared with what remains
//! before it is used; a list is only given room once its count fits into what remains, and all
//! lists of one message together stay below a limit of heap bytes. What is read as text, bytes or
//! records is a slice of the frame. Whoever must not be kept for long can ask for a limit of
//! elements, too: work is in proportion to them.

use bytes::Bytes;

use super::varint::{self, VarintError};
use super::{Records, Wire};
use crate::{Str, Uuid};

/// Heap that the lists of one message may take together, unless the caller sets another limit.
pub const HEAP_BYTES_MAX: usize = 64 << 20;

/// What was wrong with the bytes, and in which field of which structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {fault}")]
pub struct DecodeError {
    pub fault: Fault,
    /// `Structure.field`, or empty where no field was begun.
    pub field: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the bytes end inside it")]
    Truncated,
    #[error("it may not be null in this version")]
    Null,
    #[error("its variable-length integer goes on too long")]
    VarintTooLong,
    #[error("its length does not fit into a string")]
    StringTooLong,
    #[error("more elements are announced than the bytes could hold")]
    CountBeyondEnd,
    #[error("its elements need more memory than one message may take")]
    HeapLimit,
    #[error("the announced size of the tagged field is not the size of its value")]
    TagSize,
    #[error("more elements than were to be read in one go")]
    ElementLimit,
    #[error("this version does not exist")]
    UnknownVersion,
    #[error("this API does not exist")]
    UnknownApi,
}

impl DecodeError {
    /// Names the field, unless one further inside has been named already.
    #[must_use]
    pub(crate) fn within(mut self, field: &'static str) -> Self {
        if self.field.is_empty() {
            self.field = field;
        }
        self
    }
}

impl From<Fault> for DecodeError {
    fn from(fault: Fault) -> Self {
        Self { fault, field: "" }
    }
}

impl From<VarintError> for DecodeError {
    fn from(error: VarintError) -> Self {
        match error {
            VarintError::Truncated => Fault::Truncated.into(),
            VarintError::TooLong => Fault::VarintTooLong.into(),
        }
    }
}

/// A position in a frame.
#[derive(Debug)]
pub struct Decoder {
    frame: Bytes,
    position: usize,
    flexible: bool,
    heap_bytes_left: usize,
    heap_bytes_max: usize,
    elements: usize,
    elements_max: usize,
}

impl Decoder {
    #[must_use]
    pub fn new(frame: Bytes) -> Self {
        Self::with_heap_limit(frame, HEAP_BYTES_MAX)
    }

    /// `heap_bytes_max` bounds what the lists of everything decoded from here may take.
    #[must_use]
    pub fn with_heap_limit(frame: Bytes, heap_bytes_max: usize) -> Self {
        let heap_bytes_left = heap_bytes_max;
        Self {
            frame,
            position: 0,
            flexible: false,
            heap_bytes_left,
            heap_bytes_max,
            elements: 0,
            elements_max: usize::MAX,
        }
    }

    /// Reads a value whose lists and tagged fields have at most so many elements together. `None`
    /// when they have more: then it is still to be read, where that takes nobody's time.
    pub fn within<T>(
        &mut self,
        elements_max: usize,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        let (position, heap_bytes_left) = (self.position, self.heap_bytes_left);
        let elements = self.elements;
        self.elements_max = elements.saturating_add(elements_max);
        let value = read(self);
        self.elements_max = usize::MAX;
        match value {
            Err(DecodeError { fault: Fault::ElementLimit, .. }) => {
                self.position = position;
                self.heap_bytes_left = heap_bytes_left;
                self.elements = elements;
                Ok(None)
            }
            value => value.map(Some),
        }
    }

    /// How many elements of lists, and tagged fields, were read so far.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.elements
    }

    fn take_elements(&mut self, count: usize) -> Result<(), DecodeError> {
        let elements = self.elements.saturating_add(count);
        if elements > self.elements_max {
            return Err(Fault::ElementLimit.into());
        }
        self.elements = elements;
        Ok(())
    }

    /// Bytes not read yet.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.frame.len() - self.position
    }

    /// Heap bytes that the lists decoded so far were charged with.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.heap_bytes_max - self.heap_bytes_left
    }

    pub(crate) fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    pub(crate) fn is_flexible(&self) -> bool {
        self.flexible
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some(bytes) = self.frame[self.position..].first_chunk::<N>() else {
            return Err(Fault::Truncated.into());
        };
        self.position += N;
        Ok(*bytes)
    }

    /// A length or tag of a flexible version. Kafka keeps it in a signed integer, so what has the
    /// highest bit set is a negative one.
    pub(crate) fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        let (value, length) = varint::read(&self.frame[self.position..])?;
        self.position += length;
        Ok(value)
    }

    fn compact_length(&mut self) -> Result<i32, DecodeError> {
        Ok((self.unsigned_varint()? as i32).wrapping_sub(1))
    }

    fn slice(&mut self, length: i32) -> Result<Option<Bytes>, DecodeError> {
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        if length > self.remaining() {
            return Err(Fault::Truncated.into());
        }
        let slice = self.frame.slice(self.position..self.position + length);
        self.position += length;
        Ok(Some(slice))
    }

    /// Any negative length counts as null, as it does in Kafka.
    pub(crate) fn nullable_string(&mut self) -> Result<Option<Str>, DecodeError> {
        let length = if self.flexible {
            self.compact_length()?
        } else {
            i32::from(i16::from_be_bytes(self.take()?))
        };
        if length > i32::from(i16::MAX) {
            return Err(Fault::StringTooLong.into());
        }
        Ok(self.slice(length)?.map(Str::from_wire))
    }

    fn long_length(&mut self) -> Result<i32, DecodeError> {
        if self.flexible { self.compact_length() } else { Ok(i32::from_be_bytes(self.take()?)) }
    }

    pub(crate) fn nullable_bytes(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let length = self.long_length()?;
        self.slice(length)
    }

    pub(crate) fn nullable_records(&mut self) -> Result<Option<Records>, DecodeError> {
        Ok(self.nullable_bytes()?.map(Records::from))
    }

    pub(crate) fn uuid(&mut self) -> Result<Uuid, DecodeError> {
        Ok(Uuid(self.take()?))
    }

    pub(crate) fn nullable_list<T: Wire>(
        &mut self,
        version: i16,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        let Ok(count) = usize::try_from(self.long_length()?) else { return Ok(None) };
        let element_bytes_min = T::bytes_min(version, self.flexible).max(1);
        if count > self.remaining() / element_bytes_min {
            return Err(Fault::CountBeyondEnd.into());
        }
        self.take_elements(count)?;
        let heap_bytes = count * size_of::<T>();
        let left = self.heap_bytes_left.checked_sub(heap_bytes).ok_or(Fault::HeapLimit)?;
        self.heap_bytes_left = left;
        // Room at first for no more than the bytes that are there; a list of large elements in few
        // bytes grows while its elements really turn up.
        let room = count.min(self.remaining() / size_of::<T>().max(1) + 1);
        let mut list = Vec::with_capacity(room);
        for _ in 0..count {
            list.push(T::read(self, version)?);
        }
        Ok(Some(list))
    }

    /// Reads the tagged fields that end a structure. `known` reads the value of a tag it knows and
    /// says so; other values are stepped over. Order and repetition do not matter, as in Kafka.
    pub(crate) fn tagged_fields(
        &mut self,
        mut known: impl FnMut(u32, &mut Self) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        let count = self.unsigned_varint()?;
        if count as usize > self.remaining() {
            return Err(Fault::Truncated.into());
        }
        self.take_elements(count as usize)?;
        for _ in 0..count {
            let tag = self.unsigned_varint()?;
            let length = self.unsigned_varint()? as usize;
            if length > self.remaining() {
                return Err(Fault::Truncated.into());
            }
            let end = self.position + length;
            if known(tag, self)? {
                if self.position != end {
                    return Err(Fault::TagSize.into());
                }
            } else {
                self.position = end;
            }
        }
        Ok(())
    }
}
