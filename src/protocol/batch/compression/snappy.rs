//! Snappy in its two forms: the framing that Java clients write, and one bare block.
//!
//! ```text
//! framed: 82 'S' 'N' 'A' 'P' 'P' 'Y' 00 | version i32 | lowest compatible version i32
//!         then (length i32 | one bare block of that length)*
//! ```
//! A bare block can only be decoded as a whole, so its output is bounded like every other
//! output that must be kept. Written is the framed form, in blocks of 32 KiB.

use std::io::{self, Write};

use snap::raw;

use super::{Bounded, Codec, DecompressError, EmptyFrames, WHOLE_OUTPUT_BYTES_MAX};

const FRAMING_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const FRAMING_HEADER_BYTES: usize = 16;
const VERSION: i32 = 1;
const BLOCK_BYTES: usize = 32 << 10;

pub(super) struct Stream<'a> {
    rest: &'a [u8],
    framed: bool,
    started: bool,
    block: Vec<u8>,
    block_start: usize,
    empty: EmptyFrames,
}

impl<'a> Stream<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        let framed = payload.len() >= FRAMING_HEADER_BYTES && payload.starts_with(&FRAMING_MAGIC);
        let rest = if framed { &payload[FRAMING_HEADER_BYTES..] } else { payload };
        let (block, empty) = (Vec::new(), EmptyFrames::default());
        Self { rest, framed, started: false, block, block_start: 0, empty }
    }

    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, DecompressError> {
        while self.block_start == self.block.len() {
            if self.rest.is_empty() && (self.framed || self.started) {
                return Ok(0);
            }
            self.started = true;
            let compressed = if self.framed { self.next_framed()? } else { self.rest };
            if !self.framed {
                self.rest = &[];
            }
            self.decode_block(compressed)?;
        }
        let bytes = out.len().min(self.block.len() - self.block_start);
        out[..bytes].copy_from_slice(&self.block[self.block_start..][..bytes]);
        self.block_start += bytes;
        Ok(bytes)
    }

    fn next_framed(&mut self) -> Result<&'a [u8], DecompressError> {
        let (length, rest) =
            self.rest.split_first_chunk().ok_or_else(|| corrupt("the data ends in a length"))?;
        let length = usize::try_from(i32::from_be_bytes(*length))
            .map_err(|_| corrupt("negative block length"))?;
        let (block, rest) =
            rest.split_at_checked(length).ok_or_else(|| corrupt("the data ends in a block"))?;
        self.rest = rest;
        Ok(block)
    }

    fn decode_block(&mut self, compressed: &[u8]) -> Result<(), DecompressError> {
        let bytes = raw::decompress_len(compressed).map_err(corrupt)?;
        if bytes > WHOLE_OUTPUT_BYTES_MAX {
            return Err(DecompressError::TooLarge { limit: WHOLE_OUTPUT_BYTES_MAX });
        }
        // No element yields more than 64 bytes from 3, so a longer claim is a lie, not a reason
        // to reserve memory.
        if bytes / 22 > compressed.len() {
            return Err(corrupt("the block is shorter than its length allows"));
        }
        if bytes == 0 {
            self.empty.another(Codec::Snappy)?;
        }
        self.block.resize(bytes, 0);
        raw::Decoder::new().decompress(compressed, &mut self.block).map_err(corrupt)?;
        self.block_start = 0;
        Ok(())
    }
}

fn corrupt(reason: impl ToString) -> DecompressError {
    DecompressError::corrupt(Codec::Snappy, reason)
}

/// Writes the framed form.
pub(in super::super) struct Encoder {
    out: Bounded,
    header_written: bool,
    pending: Vec<u8>,
    block: Vec<u8>,
    raw: raw::Encoder,
}

impl Encoder {
    pub(super) fn new(out: Bounded) -> Self {
        let (pending, block) = (Vec::with_capacity(BLOCK_BYTES), Vec::new());
        Self { out, header_written: false, pending, block, raw: raw::Encoder::new() }
    }

    pub(super) fn finish(mut self) -> io::Result<Bounded> {
        self.write_block()?;
        Ok(self.out)
    }

    fn write_block(&mut self) -> io::Result<()> {
        if !self.header_written {
            self.out.write_all(&FRAMING_MAGIC)?;
            self.out.write_all(&VERSION.to_be_bytes())?;
            self.out.write_all(&VERSION.to_be_bytes())?;
            self.header_written = true;
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        self.block.resize(raw::max_compress_len(self.pending.len()), 0);
        let bytes = self.raw.compress(&self.pending, &mut self.block).map_err(io::Error::other)?;
        self.out.write_all(&(bytes as i32).to_be_bytes())?;
        self.out.write_all(&self.block[..bytes])?;
        self.pending.clear();
        Ok(())
    }
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BLOCK_BYTES - self.pending.len());
        self.pending.extend_from_slice(&bytes[..taken]);
        if self.pending.len() == BLOCK_BYTES {
            self.write_block()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
