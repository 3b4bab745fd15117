//! The record batches of one partition in a message, as slices of the buffers that hold them.

use std::fmt;

use bytes::Bytes;

/// Bytes in one or more pieces. Decoding gives one piece, a slice of the frame; a fetch answer can
/// be put together of as many as the log has buffers. Equal when the bytes are, however cut.
#[derive(Clone, Default)]
pub struct Records {
    first: Bytes,
    rest: Vec<Bytes>,
}

impl Records {
    /// Adds a piece behind the others; nothing is copied.
    pub fn push(&mut self, chunk: Bytes) {
        if self.first.is_empty() {
            self.first = chunk;
        } else if !chunk.is_empty() {
            self.rest.push(chunk);
        }
    }

    /// Bytes in all pieces together.
    #[must_use]
    pub fn len(&self) -> usize {
        self.chunks().map(Bytes::len).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The pieces in order; none of them is empty.
    pub fn chunks(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.first).chain(&self.rest).filter(|chunk| !chunk.is_empty())
    }

    /// The bytes in one piece; copies only if there are several.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        if self.rest.is_empty() {
            return self.first;
        }
        let mut whole = Vec::with_capacity(self.len());
        self.chunks().for_each(|chunk| whole.extend_from_slice(chunk));
        whole.into()
    }
}

impl From<Bytes> for Records {
    fn from(bytes: Bytes) -> Self {
        Self { first: bytes, rest: Vec::new() }
    }
}

impl FromIterator<Bytes> for Records {
    fn from_iter<I: IntoIterator<Item = Bytes>>(chunks: I) -> Self {
        let mut records = Self::default();
        chunks.into_iter().for_each(|chunk| records.push(chunk));
        records
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.chunks().flatten().zip(other.chunks().flatten()).all(|(a, b)| a == b)
    }
}

impl Eq for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Records({} bytes)", self.len())
    }
}
