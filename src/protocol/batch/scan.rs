//! One pass over the records of a batch without holding them: lengths, offsets, timestamps, keys.
//!
//! Works on a plain slice and on a decompressing stream alike, with memory for one chunk. A record
//! that lies whole in the chunk, and has nothing unusual, is read at once ([`whole`]); any other
//! piece by piece, where it is also said what is wrong with it. The same pass can hand every record
//! on to a sink that writes it anew. What a record is made of is decided here exactly as in
//! [`super::record`]; the tests hold the two against each other.

use super::compression::{DecompressError, Source};
use super::record::RecordError;
use super::varint::{self, VARLONG_BYTES_MAX, VarintError};

mod whole;

/// The fields in front of a record's key.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordHead {
    pub index: i32,
    pub attributes: u8,
    pub timestamp_delta: i64,
    pub offset_delta: i32,
    /// Bytes from the key's length to the end of the record.
    pub tail_bytes: usize,
}

/// Why a pass stopped.
#[derive(Debug)]
pub(super) enum ScanError {
    Decompress(DecompressError),
    Record(RecordError),
    /// The sink takes no more.
    SinkFull,
}

impl From<DecompressError> for ScanError {
    fn from(error: DecompressError) -> Self {
        ScanError::Decompress(error)
    }
}

/// Takes the records of a pass: first the head, then the bytes behind it in any number of pieces.
pub(super) trait Sink {
    fn head(&mut self, head: &RecordHead) -> Result<(), ScanError>;
    fn tail(&mut self, bytes: &[u8]) -> Result<(), ScanError>;
}

/// For passes that only look.
pub(super) struct Discard;

impl Sink for Discard {
    #[inline]
    fn head(&mut self, _: &RecordHead) -> Result<(), ScanError> {
        Ok(())
    }

    #[inline]
    fn tail(&mut self, _: &[u8]) -> Result<(), ScanError> {
        Ok(())
    }
}

/// Walks `count` records and nothing behind them. `each` sees every head and whether a key
/// follows.
pub(super) fn scan<S: Source, K: Sink>(
    source: &mut S,
    sink: &mut K,
    count: i32,
    mut each: impl FnMut(&RecordHead, HasKey) -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    for index in 0..count {
        let chunk = source.chunk()?;
        if let Some(whole) = whole::read(chunk, index) {
            sink.head(&whole.head)?;
            each(&whole.head, whole.has_key)?;
            sink.tail(&chunk[whole.bytes - whole.head.tail_bytes..whole.bytes])?;
            source.consume(whole.bytes);
            continue;
        }
        let mut record = Record { source, sink, index, left: usize::MAX };
        let head = record.head()?;
        record.sink.head(&head)?;
        let has_key = record.field("key length")?;
        each(&head, HasKey(has_key))?;
        record.behind_key()?;
    }
    let bytes = source.chunk()?.len();
    if bytes > 0 {
        return Err(ScanError::Record(RecordError::Trailing { count, bytes }));
    }
    Ok(())
}

/// Whether a record has a key (an empty one is a key).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HasKey(pub bool);

struct Record<'a, S, K> {
    source: &'a mut S,
    sink: &'a mut K,
    index: i32,
    /// Bytes of the record that were not read yet; without bound while its length is unknown.
    left: usize,
}

/// The encoded form of a number, for the sink.
struct Encoded {
    bytes: [u8; VARLONG_BYTES_MAX],
    used: usize,
}

impl<S: Source, K: Sink> Record<'_, S, K> {
    fn head(&mut self) -> Result<RecordHead, ScanError> {
        let (length, _) = self.number(varint::read_i32)?;
        self.left = usize::try_from(length).map_err(|_| self.malformed("length"))?;
        let (attributes, _) = self.number(read_byte)?;
        let (timestamp_delta, _) = self.number(varint::read_i64)?;
        let (offset_delta, _) = self.number(varint::read_i32)?;
        let (index, tail_bytes) = (self.index, self.left);
        Ok(RecordHead { index, attributes, timestamp_delta, offset_delta, tail_bytes })
    }

    fn behind_key(&mut self) -> Result<(), ScanError> {
        self.field("value length")?;
        let headers = self.tail_number()?;
        if headers < 0 || headers as usize > self.left {
            return Err(self.malformed("header count"));
        }
        for _ in 0..headers {
            if !self.field("header key length")? {
                return Err(self.malformed("header key length"));
            }
            self.field("header value length")?;
        }
        if self.left > 0 {
            return Err(self.malformed("length"));
        }
        Ok(())
    }

    /// A length and that many bytes; false for the length -1.
    #[inline]
    fn field(&mut self, what: &'static str) -> Result<bool, ScanError> {
        let length = self.tail_number()?;
        if length == -1 {
            return Ok(false);
        }
        let length = usize::try_from(length).map_err(|_| self.malformed(what))?;
        self.pass(length)?;
        Ok(true)
    }

    #[inline]
    fn tail_number(&mut self) -> Result<i32, ScanError> {
        let (number, encoded) = self.number(varint::read_i32)?;
        self.sink.tail(&encoded.bytes[..encoded.used])?;
        Ok(number)
    }

    fn pass(&mut self, bytes: usize) -> Result<(), ScanError> {
        if bytes > self.left {
            return Err(self.malformed("length"));
        }
        self.left -= bytes;
        let mut wanted = bytes;
        while wanted > 0 {
            let chunk = self.source.chunk()?;
            if chunk.is_empty() {
                return Err(self.short());
            }
            let taken = wanted.min(chunk.len());
            self.sink.tail(&chunk[..taken])?;
            self.source.consume(taken);
            wanted -= taken;
        }
        Ok(())
    }

    #[inline]
    fn number<T>(
        &mut self,
        read: impl Fn(&[u8]) -> Result<(T, usize), VarintError>,
    ) -> Result<(T, Encoded), ScanError> {
        let chunk = self.source.chunk()?;
        let (number, encoded) = match read(chunk) {
            Ok((number, used)) => {
                let mut encoded = Encoded { bytes: [0; VARLONG_BYTES_MAX], used };
                encoded.bytes[..used].copy_from_slice(&chunk[..used]);
                self.source.consume(used);
                (number, encoded)
            }
            Err(VarintError::Short) => self.number_across_chunks(read)?,
            Err(VarintError::Long) => return Err(self.malformed(TOO_LONG)),
        };
        if encoded.used > self.left {
            return Err(self.malformed("length"));
        }
        self.left -= encoded.used;
        Ok((number, encoded))
    }

    #[cold]
    fn number_across_chunks<T>(
        &mut self,
        read: impl Fn(&[u8]) -> Result<(T, usize), VarintError>,
    ) -> Result<(T, Encoded), ScanError> {
        let mut encoded = Encoded { bytes: [0; VARLONG_BYTES_MAX], used: 0 };
        loop {
            let chunk = self.source.chunk()?;
            let Some(&byte) = chunk.first() else { return Err(self.short()) };
            self.source.consume(1);
            encoded.bytes[encoded.used] = byte;
            encoded.used += 1;
            match read(&encoded.bytes[..encoded.used]) {
                Ok((number, _)) => return Ok((number, encoded)),
                Err(VarintError::Short) => {}
                Err(VarintError::Long) => return Err(self.malformed(TOO_LONG)),
            }
        }
    }

    fn malformed(&self, what: &'static str) -> ScanError {
        ScanError::Record(RecordError::Malformed { index: self.index, what })
    }

    fn short(&self) -> ScanError {
        ScanError::Record(RecordError::Short { index: self.index })
    }
}

fn read_byte(bytes: &[u8]) -> Result<(u8, usize), VarintError> {
    bytes.first().map(|&byte| (byte, 1)).ok_or(VarintError::Short)
}

const TOO_LONG: &str = "number of too many bytes";
