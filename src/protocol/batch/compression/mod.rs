//! The codecs of record batches, and the bounds under which foreign bytes are decompressed.
//!
//! Decompression is a stream of chunks: whoever reads stops at the first thing that is wrong, and
//! nothing but the chunk (and what the codec must look back on) is in memory. Where a codec has to
//! keep all of its output ([`snappy`] without framing, `zstd` frames with a wide window), output
//! is limited to [`WHOLE_OUTPUT_BYTES_MAX`]. Frames without output are legal and limited in number.
//!
//! Deliberately absent: dictionaries, and any codec that Kafka does not know.

mod gzip;
mod lz4;
mod lz4_search;
mod snappy;
mod zstd;

use std::io::{self, Write};

use thiserror::Error;

/// Chunks that decompression hands out.
const CHUNK_BYTES: usize = 64 << 10;
/// Most output of codecs and frames that cannot be decoded without keeping all of it.
pub const WHOLE_OUTPUT_BYTES_MAX: usize = 15 << 20;
/// Most frames without output in one payload.
const EMPTY_FRAMES_MAX: u32 = 1_000;
/// Bounds of [`decompressed_bytes_max`].
const DECOMPRESSED_BYTES_FLOOR: usize = 1 << 20;
const DECOMPRESSED_BYTES_CEILING: usize = 100 << 20;

/// A codec, as the attributes of a batch name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Codec {
    /// Every codec, in the order of their numbers.
    pub const ALL: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.get(usize::from(id)).copied()
    }

    /// The number in the attributes of a batch.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// Kafka's name of it, also in `compression.type` (where `none` is called `uncompressed`).
    pub fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Gzip => "gzip",
            Codec::Snappy => "snappy",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
        }
    }
}

/// A codec and how hard it shall try, within the bounds of Kafka's `compression.*.level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    /// 1 to 9; -1 is the codec's own default.
    Gzip {
        level: i32,
    },
    Snappy,
    /// 1 to 17. The default 9 means the fast search, as in Kafka; others search harder.
    Lz4 {
        level: i32,
    },
    /// -131072 to 22.
    Zstd {
        level: i32,
    },
}

impl Compression {
    pub const GZIP_LEVEL_DEFAULT: i32 = -1;
    pub const LZ4_LEVEL_DEFAULT: i32 = 9;
    pub const ZSTD_LEVEL_DEFAULT: i32 = 3;

    /// The codec at its default level.
    pub fn of(codec: Codec) -> Self {
        match codec {
            Codec::None => Compression::None,
            Codec::Gzip => Compression::Gzip { level: Self::GZIP_LEVEL_DEFAULT },
            Codec::Snappy => Compression::Snappy,
            Codec::Lz4 => Compression::Lz4 { level: Self::LZ4_LEVEL_DEFAULT },
            Codec::Zstd => Compression::Zstd { level: Self::ZSTD_LEVEL_DEFAULT },
        }
    }

    pub fn codec(self) -> Codec {
        match self {
            Compression::None => Codec::None,
            Compression::Gzip { .. } => Codec::Gzip,
            Compression::Snappy => Codec::Snappy,
            Compression::Lz4 { .. } => Codec::Lz4,
            Compression::Zstd { .. } => Codec::Zstd,
        }
    }
}

/// Why a payload could not be decompressed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecompressError {
    /// The bytes are not what the codec writes.
    #[error("broken {} data: {reason}", .codec.name())]
    Corrupt { codec: Codec, reason: String },
    /// More output than allowed.
    #[error("more than {limit} bytes when decompressed")]
    TooLarge { limit: usize },
}

impl DecompressError {
    fn corrupt(codec: Codec, reason: impl ToString) -> Self {
        DecompressError::Corrupt { codec, reason: reason.to_string() }
    }
}

/// How far a batch may grow when decompressed: ten times the largest allowed message, but
/// between 1 and 100 MiB.
pub fn decompressed_bytes_max(message_bytes_max: usize) -> usize {
    let wanted = message_bytes_max.saturating_mul(10);
    wanted.clamp(DECOMPRESSED_BYTES_FLOOR, DECOMPRESSED_BYTES_CEILING)
}

/// Decompresses a whole payload of at most `limit` bytes of output.
pub fn decompress(codec: Codec, payload: &[u8], limit: usize) -> Result<Vec<u8>, DecompressError> {
    if codec == Codec::None && payload.len() > limit {
        return Err(DecompressError::TooLarge { limit });
    }
    let mut source = Inflated::new(codec, payload, limit);
    let mut out = Vec::new();
    loop {
        let chunk = source.chunk()?;
        if chunk.is_empty() {
            return Ok(out);
        }
        out.extend_from_slice(chunk);
        let bytes = chunk.len();
        source.consume(bytes);
    }
}

/// Compresses a whole payload.
pub fn compress(compression: Compression, payload: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(compression, Vec::new(), usize::MAX, payload.len());
    // An encoder fails only at its limit, and there is none here.
    let written = encoder.write_all(payload).and_then(|()| encoder.finish());
    match written {
        Ok(out) => out,
        Err(error) => unreachable!("compressing into memory failed: {error}"),
    }
}

/// Bytes that come in chunks: a slice, or the output of a codec.
pub(super) trait Source {
    /// The bytes at hand; empty only at the end.
    fn chunk(&mut self) -> Result<&[u8], DecompressError>;
    /// Drops the first `bytes` of the chunk.
    fn consume(&mut self, bytes: usize);
}

/// A payload that is not compressed.
pub(super) struct Plain<'a>(pub &'a [u8]);

impl Source for Plain<'_> {
    #[inline]
    fn chunk(&mut self) -> Result<&[u8], DecompressError> {
        Ok(self.0)
    }

    #[inline]
    fn consume(&mut self, bytes: usize) {
        self.0 = &self.0[bytes..];
    }
}

enum Stream<'a> {
    Plain(&'a [u8]),
    Gzip(gzip::Stream<'a>),
    Snappy(snappy::Stream<'a>),
    Lz4(lz4::Stream<'a>),
    Zstd(zstd::Stream<'a>),
}

/// A payload on its way through a codec.
pub(super) struct Inflated<'a> {
    stream: Stream<'a>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    produced: usize,
    limit: usize,
}

impl<'a> Inflated<'a> {
    pub fn new(codec: Codec, payload: &'a [u8], limit: usize) -> Self {
        let stream = match codec {
            Codec::None => Stream::Plain(payload),
            Codec::Gzip => Stream::Gzip(gzip::Stream::new(payload)),
            Codec::Snappy => Stream::Snappy(snappy::Stream::new(payload)),
            Codec::Lz4 => Stream::Lz4(lz4::Stream::new(payload)),
            Codec::Zstd => Stream::Zstd(zstd::Stream::new(payload)),
        };
        Self { stream, buffer: vec![0; CHUNK_BYTES], start: 0, end: 0, produced: 0, limit }
    }

    fn refill(&mut self) -> Result<(), DecompressError> {
        debug_assert_eq!(self.start, self.end);
        let buffer = &mut self.buffer[..];
        let read = match &mut self.stream {
            Stream::Plain(rest) => {
                let bytes = rest.len().min(buffer.len());
                buffer[..bytes].copy_from_slice(&rest[..bytes]);
                *rest = &rest[bytes..];
                bytes
            }
            Stream::Gzip(stream) => stream.read(buffer)?,
            Stream::Snappy(stream) => stream.read(buffer)?,
            Stream::Lz4(stream) => stream.read(buffer)?,
            Stream::Zstd(stream) => stream.read(buffer)?,
        };
        self.produced += read;
        if self.produced > self.limit {
            return Err(DecompressError::TooLarge { limit: self.limit });
        }
        (self.start, self.end) = (0, read);
        Ok(())
    }
}

impl Source for Inflated<'_> {
    #[inline]
    fn chunk(&mut self) -> Result<&[u8], DecompressError> {
        if self.start == self.end {
            self.refill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    #[inline]
    fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start);
        self.start += bytes;
    }
}

/// Counts the frames of a payload that had no output.
#[derive(Default)]
struct EmptyFrames(u32);

impl EmptyFrames {
    fn another(&mut self, codec: Codec) -> Result<(), DecompressError> {
        self.0 += 1;
        if self.0 > EMPTY_FRAMES_MAX {
            return Err(DecompressError::corrupt(codec, "too many frames without content"));
        }
        Ok(())
    }
}

/// Memory that takes at most `limit` bytes in all.
pub(super) struct Bounded {
    out: Vec<u8>,
    limit: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.out.len().min(self.limit) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Compresses what is written to it, behind what `out` already held.
///
/// Fails only when the output passes its limit.
pub(super) enum Encoder {
    None(Bounded),
    Gzip(flate2::write::GzEncoder<Bounded>),
    Snappy(Box<snappy::Encoder>),
    Lz4(Box<lz4::Encoder>),
    Zstd(::zstd::stream::write::Encoder<'static, Bounded>),
}

impl Encoder {
    /// `input_bytes` is a guess of how much will be written.
    pub fn new(compression: Compression, out: Vec<u8>, limit: usize, input_bytes: usize) -> Self {
        let out = Bounded { out, limit };
        match compression {
            Compression::None => Encoder::None(out),
            Compression::Gzip { level } => Encoder::Gzip(gzip::encoder(level, out)),
            Compression::Snappy => Encoder::Snappy(Box::new(snappy::Encoder::new(out))),
            Compression::Lz4 { level } => Encoder::Lz4(Box::new(lz4::Encoder::new(level, out))),
            Compression::Zstd { level } => Encoder::Zstd(zstd::encoder(level, out, input_bytes)),
        }
    }

    /// Ends the stream and gives what `out` was plus the compressed bytes.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        let bounded = match self {
            Encoder::None(out) => out,
            Encoder::Gzip(encoder) => encoder.finish()?,
            Encoder::Snappy(encoder) => encoder.finish()?,
            Encoder::Lz4(encoder) => encoder.finish()?,
            Encoder::Zstd(encoder) => encoder.finish()?,
        };
        Ok(bounded.out)
    }
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Encoder::None(out) => out.write(bytes),
            Encoder::Gzip(encoder) => encoder.write(bytes),
            Encoder::Snappy(encoder) => encoder.write(bytes),
            Encoder::Lz4(encoder) => encoder.write(bytes),
            Encoder::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
