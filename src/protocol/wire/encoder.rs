//! Writing a frame.
//!
//! Everything small goes into one growing buffer; record batches do not go through it at all. The
//! encoder notes where they belong, and [`Encoder::finish`] gives the slices of the buffer and the
//! batches in order, ready for one vectored send. A field costs no allocation of its own.
//!
//! Whoever must not be kept for long can set a limit: what goes beyond is left out, and the encoder
//! knows it.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Records, varint};

/// A frame under construction.
#[derive(Debug, Default)]
pub struct Encoder {
    buffer: BytesMut,
    /// Batches to be sent between `buffer[..position]` and `buffer[position..]`, in order.
    spliced: Vec<(usize, Bytes)>,
    spliced_bytes: usize,
    flexible: bool,
    size_prefix: bool,
    limit: Option<Limit>,
}

/// What may still be written in one go.
#[derive(Clone, Copy, Debug)]
struct Limit {
    elements_left: usize,
    bytes_max: usize,
    exceeded: bool,
}

impl Encoder {
    /// An encoder for bytes without a size in front.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with room for so many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { buffer: BytesMut::with_capacity(bytes), ..Self::default() }
    }

    /// An encoder for a frame: its size comes first, as four bytes, and does not count itself.
    /// `bytes` is an estimate of what will be written, records apart.
    #[must_use]
    pub fn framed(bytes: usize) -> Self {
        let mut buffer = BytesMut::with_capacity(SIZE_BYTES + bytes);
        buffer.put_u32(0);
        Self { buffer, size_prefix: true, ..Self::default() }
    }

    /// The same for as long as lists have at most so many elements together, in not many more than
    /// so many bytes.
    #[must_use]
    pub fn within(mut self, elements_max: usize, bytes_max: usize) -> Self {
        self.limit = Some(Limit { elements_left: elements_max, bytes_max, exceeded: false });
        self
    }

    /// Whether there was more to write than the limit allows: what was written is of no use then.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.limit.is_some_and(|limit| limit.exceeded)
    }

    /// Whether another element may be written.
    pub(crate) fn take_element(&mut self) -> bool {
        let Some(limit) = &mut self.limit else { return true };
        if limit.elements_left == 0 || self.buffer.len() > limit.bytes_max {
            limit.exceeded = true;
            return false;
        }
        limit.elements_left -= 1;
        true
    }

    /// Bytes written so far, batches and size prefix included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len() + self.spliced_bytes
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frame as slices that follow each other.
    ///
    /// # Panics
    /// If the frame is larger than its size prefix can say (2 GiB).
    #[must_use]
    pub fn finish(mut self) -> Vec<Bytes> {
        if self.size_prefix {
            let size = i32::try_from(self.len() - SIZE_BYTES);
            assert!(size.is_ok(), "a frame of {} bytes", self.len());
            self.buffer[..SIZE_BYTES].copy_from_slice(&size.unwrap_or_default().to_be_bytes());
        }
        let mut rest = self.buffer.freeze();
        let mut taken = 0;
        let mut slices = Vec::with_capacity(2 * self.spliced.len() + 1);
        for (position, batch) in self.spliced {
            if position > taken {
                slices.push(rest.split_to(position - taken));
                taken = position;
            }
            slices.push(batch);
        }
        if !rest.is_empty() {
            slices.push(rest);
        }
        slices
    }

    /// The frame in one piece; copies if there are batches in it.
    #[must_use]
    pub fn finish_contiguous(self) -> Bytes {
        if self.spliced.is_empty() && !self.size_prefix {
            return self.buffer.freeze();
        }
        let mut slices = self.finish();
        if slices.len() == 1 { slices.remove(0) } else { slices.concat().into() }
    }

    /// Takes what was written since the last call; what follows shares its memory.
    pub(crate) fn split(&mut self) -> Bytes {
        assert!(self.spliced.is_empty() && !self.size_prefix, "a frame cannot be split");
        self.buffer.split().freeze()
    }

    pub(crate) fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    pub(crate) fn is_flexible(&self) -> bool {
        self.flexible
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.buffer.put_slice(bytes);
    }

    pub(crate) fn unsigned_varint(&mut self, value: u32) {
        if value < 0x80 {
            return self.buffer.put_u8(value as u8);
        }
        let mut bytes = [0; varint::BYTES_MAX];
        let length = varint::write(value, &mut bytes);
        self.buffer.put_slice(&bytes[..length]);
    }

    fn compact_length(&mut self, length: usize) {
        assert!(length < i32::MAX as usize, "a length of {length}");
        self.unsigned_varint(length as u32 + 1);
    }

    /// Text longer than the protocol can say ends with the last character that fits. Only answers
    /// that repeat what a client sent can get there: a name of bad UTF-8 grows when it is decoded.
    pub(crate) fn string(&mut self, text: &str) {
        let text = &text[..text.floor_char_boundary(i16::MAX as usize)];
        if self.flexible {
            self.compact_length(text.len());
        } else {
            self.buffer.put_i16(text.len() as i16);
        }
        self.buffer.put_slice(text.as_bytes());
    }

    pub(crate) fn null_string(&mut self) {
        if self.flexible { self.buffer.put_u8(0) } else { self.buffer.put_i16(-1) }
    }

    /// The length of a list or of bytes.
    pub(crate) fn long_length(&mut self, length: usize) {
        if self.flexible {
            return self.compact_length(length);
        }
        assert!(length <= i32::MAX as usize, "a length of {length}");
        self.buffer.put_i32(length as i32);
    }

    pub(crate) fn null_long(&mut self) {
        if self.flexible { self.buffer.put_u8(0) } else { self.buffer.put_i32(-1) }
    }

    pub(crate) fn records(&mut self, records: &Records) {
        self.long_length(records.len());
        for chunk in records.chunks() {
            self.spliced_bytes += chunk.len();
            self.spliced.push((self.buffer.len(), chunk.clone()));
        }
    }

    /// One tagged field: tag, size, value. The size is known only after the value was written, so
    /// the value moves over by the few bytes that a size above 127 needs; tagged fields are rare
    /// and small.
    pub(crate) fn tagged_field(&mut self, tag: u32, value: impl FnOnce(&mut Self)) {
        self.unsigned_varint(tag);
        let start = self.buffer.len();
        let spliced = self.spliced.len();
        value(self);
        assert!(self.spliced.len() == spliced, "records in a tagged field");
        let length = self.buffer.len() - start;
        let mut size = [0; varint::BYTES_MAX];
        let size_bytes = varint::write(length as u32, &mut size);
        self.buffer.put_slice(&size[..size_bytes]);
        self.buffer[start..].rotate_right(size_bytes);
    }
}

const SIZE_BYTES: usize = 4;
