//! Gzip: any number of members one behind the other, nothing behind the last.

use std::io::Read;

use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use super::{Bounded, Codec, DecompressError, EmptyFrames};

pub(super) struct Stream<'a> {
    /// The member being read; `None` behind the last one.
    member: Option<GzDecoder<&'a [u8]>>,
    member_had_output: bool,
    empty: EmptyFrames,
}

impl<'a> Stream<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Self {
            member: Some(GzDecoder::new(payload)),
            member_had_output: false,
            empty: EmptyFrames::default(),
        }
    }

    pub fn read(&mut self, out: &mut [u8]) -> Result<usize, DecompressError> {
        while let Some(member) = &mut self.member {
            let read =
                member.read(out).map_err(|error| DecompressError::corrupt(Codec::Gzip, error))?;
            if read > 0 {
                self.member_had_output = true;
                return Ok(read);
            }
            if !self.member_had_output {
                self.empty.another(Codec::Gzip)?;
            }
            let rest = *member.get_ref();
            self.member = (!rest.is_empty()).then(|| GzDecoder::new(rest));
            self.member_had_output = false;
        }
        Ok(0)
    }
}

pub(super) fn encoder(level: i32, out: Bounded) -> GzEncoder<Bounded> {
    let level = match u32::try_from(level) {
        Ok(level) => flate2::Compression::new(level.min(9)),
        Err(_) => flate2::Compression::default(),
    };
    GzEncoder::new(out, level)
}
