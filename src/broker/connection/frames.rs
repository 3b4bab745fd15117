//! Frames out of a byte stream: a 4-byte big-endian length, then that many bytes.
//!
//! The buffer grows only as bytes arrive, never by the length that a client claims.

use bytes::{Bytes, BytesMut};

/// Why a byte stream cannot be followed any further.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FrameError {
    #[error("frame length {0} is not positive")]
    NotPositive(i32),
    #[error("frame length {length} exceeds socket.request.max.bytes = {limit}{}", hint(*length))]
    TooLarge { length: i32, limit: usize },
}

/// Received bytes that are not yet taken as frames.
#[derive(Default)]
pub struct FrameBuffer {
    bytes: BytesMut,
}

impl FrameBuffer {
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// Makes room for so many bytes more; what has arrived may move for it.
    pub fn reserve(&mut self, more: usize) {
        let before = self.bytes.as_ptr();
        self.bytes.reserve(more);
        if self.bytes.as_ptr() != before {
            runtime::copied(self.bytes.len());
        }
    }

    /// Bytes received of a frame that is not complete yet.
    pub fn pending(&self) -> usize {
        self.bytes.len()
    }

    /// The next complete frame without its length, or `None` until more bytes arrive.
    pub fn next_frame(&mut self, limit: usize) -> Result<Option<Bytes>, FrameError> {
        let Some(head) = self.bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = i32::from_be_bytes(*head);
        if length <= 0 {
            return Err(FrameError::NotPositive(length));
        }
        let size = length as usize;
        if size > limit {
            return Err(FrameError::TooLarge { length, limit });
        }
        if self.bytes.len() < LENGTH_BYTES + size {
            return Ok(None);
        }
        let mut frame = self.bytes.split_to(LENGTH_BYTES + size);
        Ok(Some(frame.split_off(LENGTH_BYTES).freeze()))
    }

    /// Gives back the memory of frames that are gone.
    pub fn let_go(&mut self) {
        debug_assert!(self.bytes.is_empty(), "bytes of a frame would be lost");
        self.bytes = BytesMut::new();
    }

    /// Size of the frame at hand, as far as it is known; 0 before.
    pub fn frame_bytes(&self) -> usize {
        let head = self.bytes.first_chunk::<LENGTH_BYTES>();
        head.map_or(0, |head| i32::from_be_bytes(*head).max(0) as usize)
    }

    /// How many bytes to ask the socket for: the rest of the frame at hand, in bounded steps.
    pub fn wanted(&self, step: usize) -> usize {
        match self.bytes.first_chunk::<LENGTH_BYTES>() {
            Some(head) => {
                let total = LENGTH_BYTES + i32::from_be_bytes(*head).max(0) as usize;
                // Double what has arrived, so that a large frame costs few copies on growth.
                total.saturating_sub(self.bytes.len()).clamp(step, step.max(self.bytes.len()))
            }
            None => step,
        }
    }
}

fn hint(length: i32) -> &'static str {
    match length.to_be_bytes() {
        [b'G' | b'P' | b'H', b'E' | b'O' | b'U', ..] => " (this looks like HTTP)",
        [0x16, 0x03, ..] => " (this looks like a TLS handshake)",
        _ => "",
    }
}

const LENGTH_BYTES: usize = 4;
