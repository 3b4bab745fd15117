//! LZ4 frames, independent and linked blocks, checksums verified; written with independent
//! blocks of 64 KiB, which is what Kafka's readers understand.
//!
//! A wrong header checksum, as some clients before 2015 wrote it, is an error.

use std::io::{self, Read, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};

use super::{Bounded, Codec, Compression, DecompressError, EmptyFrames, lz4_search};

const FRAME_MAGIC: [u8; 4] = 0x184d_2204_u32.to_le_bytes();

pub(super) struct Stream<'a> {
    /// The frame being read; `None` behind the last one.
    frame: Option<FrameDecoder<Input<'a>>>,
    rest: &'a [u8],
    started: bool,
    frame_had_output: bool,
    empty: EmptyFrames,
}

/// A slice that remembers whether somebody wanted more than it had: the decoder takes a missing
/// end mark for the end of the frame, and only this tells the two apart.
struct Input<'a> {
    rest: &'a [u8],
    ran_out: bool,
}

impl Read for Input<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.ran_out |= out.len() > self.rest.len();
        self.rest.read(out)
    }
}

impl<'a> Stream<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Self {
            frame: None,
            rest: payload,
            started: false,
            frame_had_output: false,
            empty: EmptyFrames::default(),
        }
    }

    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, DecompressError> {
        loop {
            let Some(frame) = &mut self.frame else {
                if self.rest.is_empty() && self.started {
                    return Ok(0);
                }
                self.begin_frame()?;
                continue;
            };
            let read = frame.read(out).map_err(corrupt)?;
            if read > 0 {
                self.frame_had_output = true;
                return Ok(read);
            }
            self.end_frame()?;
        }
    }

    fn begin_frame(&mut self) -> Result<(), DecompressError> {
        if !self.rest.starts_with(&FRAME_MAGIC) {
            return Err(corrupt("no frame begins here"));
        }
        self.started = true;
        self.frame_had_output = false;
        self.frame = Some(FrameDecoder::new(Input { rest: self.rest, ran_out: false }));
        Ok(())
    }

    fn end_frame(&mut self) -> Result<(), DecompressError> {
        if let Some(frame) = self.frame.take() {
            let input = frame.into_inner();
            if input.ran_out {
                return Err(corrupt("the data ends inside a frame"));
            }
            self.rest = input.rest;
        }
        if !self.frame_had_output {
            self.empty.another(Codec::Lz4)?;
        }
        Ok(())
    }
}

fn corrupt(reason: impl ToString) -> DecompressError {
    DecompressError::corrupt(Codec::Lz4, reason)
}

/// Writes one frame: with the fast search at the default level, else with the deep one.
pub(in super::super) enum Encoder {
    Fast(FrameEncoder<Bounded>),
    Deep(lz4_search::Encoder),
}

impl Encoder {
    pub(super) fn new(level: i32, out: Bounded) -> Self {
        if level != Compression::LZ4_LEVEL_DEFAULT {
            return Encoder::Deep(lz4_search::Encoder::new(level, out));
        }
        let info =
            FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
        Encoder::Fast(FrameEncoder::with_frame_info(info, out))
    }

    pub(super) fn finish(self) -> io::Result<Bounded> {
        match self {
            Encoder::Fast(encoder) => encoder.finish().map_err(io::Error::from),
            Encoder::Deep(encoder) => encoder.finish(),
        }
    }
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Encoder::Fast(encoder) => encoder.write(bytes),
            Encoder::Deep(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
