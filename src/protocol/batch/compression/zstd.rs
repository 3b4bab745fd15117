//! Zstandard: any number of frames, skippable ones included, without dictionaries.
//!
//! A frame names the window that its decoder must remember. Up to 8 MiB (what every level below
//! 20 asks for) it is decoded as a stream of any allowed length. Wider windows, up to Kafka's
//! 128 MiB, are decoded too, but only so far that the window cannot fill.

use ::zstd::stream::raw::{CParameter, DParameter, Decoder, InBuffer, Operation, OutBuffer};
use ::zstd::stream::write;

use super::{Bounded, Codec, DecompressError, EmptyFrames, WHOLE_OUTPUT_BYTES_MAX};

const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Widest window that is streamed.
const STREAMED_WINDOW_LOG_MAX: u32 = 23;
/// Narrowest window that is written.
const ENCODED_WINDOW_LOG_MIN: u32 = 12;
/// Widest window at all, and what the format's own tools accept by default.
const WINDOW_LOG_MAX: u32 = 27;

pub(super) struct Stream<'a> {
    decoder: Option<Decoder<'static>>,
    rest: &'a [u8],
    /// Output of the frame being read; `None` between frames.
    frame: Option<Frame>,
    empty: EmptyFrames,
}

struct Frame {
    produced: usize,
    output_bytes_max: usize,
}

impl<'a> Stream<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Self { decoder: None, rest: payload, frame: None, empty: EmptyFrames::default() }
    }

    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, DecompressError> {
        loop {
            if self.frame.is_none() {
                if self.rest.is_empty() && self.decoder.is_some() {
                    return Ok(0);
                }
                self.begin_frame()?;
            }
            let produced = self.step(out)?;
            if produced > 0 {
                return Ok(produced);
            }
        }
    }

    fn begin_frame(&mut self) -> Result<(), DecompressError> {
        let output_bytes_max = if is_wide(self.rest) { WHOLE_OUTPUT_BYTES_MAX } else { usize::MAX };
        if self.decoder.is_none() {
            let mut decoder = Decoder::new().map_err(corrupt)?;
            decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(corrupt)?;
            self.decoder = Some(decoder);
        }
        self.frame = Some(Frame { produced: 0, output_bytes_max });
        Ok(())
    }

    /// One call into the decoder. Ends the frame when the decoder says that it is whole.
    fn step(&mut self, out: &mut [u8]) -> Result<usize, DecompressError> {
        let (Some(decoder), Some(frame)) = (&mut self.decoder, &mut self.frame) else {
            unreachable!("a step is taken only inside a frame");
        };
        let mut input = InBuffer::around(self.rest);
        let mut output = OutBuffer::around(out);
        let wanted = decoder.run(&mut input, &mut output).map_err(corrupt)?;
        let (consumed, produced) = (input.pos(), output.pos());
        self.rest = &self.rest[consumed..];
        frame.produced += produced;
        if frame.produced > frame.output_bytes_max {
            return Err(DecompressError::TooLarge { limit: frame.output_bytes_max });
        }
        if wanted == 0 {
            if frame.produced == 0 {
                self.empty.another(Codec::Zstd)?;
            }
            self.frame = None;
        } else if consumed == 0 && produced == 0 {
            return Err(corrupt("the data ends inside a frame"));
        }
        Ok(produced)
    }
}

/// Whether the frame at the start of `bytes` asks for a window that is not streamed.
fn is_wide(bytes: &[u8]) -> bool {
    let Some(head) = bytes.strip_prefix(&FRAME_MAGIC) else { return false };
    let Some((&descriptor, fields)) = head.split_first() else { return false };
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let exponent = fields.first().map_or(0, |window| u32::from(window >> 3));
        let mantissa = fields.first().map_or(0, |window| window & 7);
        let window_log = 10 + exponent;
        return window_log > STREAMED_WINDOW_LOG_MAX
            || (window_log == STREAMED_WINDOW_LOG_MAX && mantissa > 0);
    }
    // The window is the content itself, whose size follows the dictionary id.
    let id_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let Some(field) = fields.get(id_bytes..id_bytes + size_bytes) else { return false };
    let size = field.iter().rev().fold(0_u64, |size, &byte| size << 8 | u64::from(byte));
    size > 1 << STREAMED_WINDOW_LOG_MAX
}

fn corrupt(reason: impl ToString) -> DecompressError {
    DecompressError::corrupt(Codec::Zstd, reason)
}

/// The window, and with it the encoder's tables, is no larger than `input_bytes` call for: on its
/// own the library would set up hundreds of megabytes for the highest levels.
pub(super) fn encoder(
    level: i32,
    out: Bounded,
    input_bytes: usize,
) -> write::Encoder<'static, Bounded> {
    let wanted = input_bytes.max(1).next_power_of_two().ilog2();
    let window_log = wanted.clamp(ENCODED_WINDOW_LOG_MIN, STREAMED_WINDOW_LOG_MAX);
    let encoder = write::Encoder::new(out, level).and_then(|mut encoder| {
        encoder.set_parameter(CParameter::WindowLog(window_log)).map(|()| encoder)
    });
    match encoder {
        Ok(encoder) => encoder,
        // The library clamps the level and knows the parameter; what is left is memory.
        Err(error) => panic!("zstd could not set up an encoder: {error}"),
    }
}
