//! The bytes of an entry file.
//!
//! Law: a frame is valid only where it was written: its checksum covers the file's salt and the
//! frame's position too, so that bytes which landed elsewhere, or which somebody put into a
//! payload, are not taken for a frame.
//!
//! ```text
//! file    head, frames, zeros up to the allocated size
//! head    "CTEL" (4), format (2), zero (2), sequence of the file (8), index its entries begin
//!         with (8), allocated size (8), salt (8), CRC-32C of these 40 bytes (4)
//! frame   payload length (4), kind (1), number (8), payload, CRC-32C (4)
//! ```
//! | kind | name | number |
//! |---|---|---|
//! | 1 | entry | its index; the payload is the entry |
//! | 2 | cut | entries from this index on are gone |
//! | 3 | durable | everything before this frame is acknowledged; the last index then |
//! | 4 | continued | sequence of the file in which the log goes on |

/// The head of an entry file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Files are numbered without a gap, from 1.
    pub sequence: u64,
    /// Index that the first entry here has, unless a cut comes first.
    pub next_index: u64,
    /// The file is never shorter than this.
    pub allocated: u64,
    pub salt: u64,
}

/// Why a head is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHead {
    Damaged,
    Newer { format: u16 },
}

impl Head {
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&MAGIC);
        head[4..6].copy_from_slice(&FORMAT.to_be_bytes());
        head[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        head[16..24].copy_from_slice(&self.next_index.to_be_bytes());
        head[24..32].copy_from_slice(&self.allocated.to_be_bytes());
        head[32..40].copy_from_slice(&self.salt.to_be_bytes());
        let checksum = crc32c::crc32c(&head[..40]);
        head[40..].copy_from_slice(&checksum.to_be_bytes());
        head
    }

    pub fn decode(file: &[u8]) -> Result<Head, BadHead> {
        let head = file.first_chunk::<HEAD_BYTES>().ok_or(BadHead::Damaged)?;
        let checksum = crc32c::crc32c(&head[..40]).to_be_bytes();
        if head[40..] != checksum || head[..4] != MAGIC {
            return Err(BadHead::Damaged);
        }
        let format = u16::from_be_bytes([head[4], head[5]]);
        if format > FORMAT {
            return Err(BadHead::Newer { format });
        }
        Ok(Head {
            sequence: number_at(head, 8),
            next_index: number_at(head, 16),
            allocated: number_at(head, 24),
            salt: number_at(head, 32),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Entry = 1,
    Cut = 2,
    Durable = 3,
    Continued = 4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub kind: Kind,
    pub number: u64,
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    pub fn bytes(&self) -> usize {
        FRAME_BYTES_MIN + self.payload.len()
    }

    /// Adds the frame to what will be written at `written_at`.
    pub fn encode(&self, salt: u64, written_at: u64, out: &mut Vec<u8>) {
        let start = out.len();
        let position = written_at + start as u64;
        out.extend_from_slice(&(self.payload.len() as u32).to_be_bytes());
        out.push(self.kind as u8);
        out.extend_from_slice(&self.number.to_be_bytes());
        out.extend_from_slice(self.payload);
        let checksum = checksum(salt, position, &out[start..]);
        out.extend_from_slice(&checksum.to_be_bytes());
    }

    /// The frame at `position` of a file, if there is one.
    pub fn decode(file: &'a [u8], position: usize, salt: u64) -> Option<Frame<'a>> {
        let rest = file.get(position..)?;
        let (head, body) = rest.split_first_chunk::<13>()?;
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let kind = match head[4] {
            1 => Kind::Entry,
            2 => Kind::Cut,
            3 => Kind::Durable,
            4 => Kind::Continued,
            _ => return None,
        };
        let found = body.get(length..length.checked_add(4)?)?;
        let expected = checksum(salt, position as u64, &rest[..13 + length]);
        if found != expected.to_be_bytes() {
            return None;
        }
        Some(Frame { kind, number: number_at(head, 5), payload: &body[..length] })
    }

    /// True when, somewhere behind `position`, a frame stands that is only ever written once
    /// everything before it is durable.
    pub fn proves_durable_behind(file: &[u8], position: usize, salt: u64) -> bool {
        let durable = [0, 0, 0, 0, Kind::Durable as u8];
        let continued = [0, 0, 0, 0, Kind::Continued as u8];
        let mut at = position;
        // Frames of these kinds have no payload: four zero bytes, then the kind.
        while let Some(rest) = file.get(at..).filter(|rest| rest.len() >= FRAME_BYTES_MIN) {
            let kinds = rest[4..].iter().position(|byte| matches!(*byte, 3 | 4));
            let Some(found) = kinds else { return false };
            at += found;
            let candidate = &file[at..];
            if (candidate.starts_with(&durable) || candidate.starts_with(&continued))
                && Frame::decode(file, at, salt).is_some()
            {
                return true;
            }
            at += 1;
        }
        false
    }
}

fn checksum(salt: u64, position: u64, bytes: &[u8]) -> u32 {
    let seed = crc32c::crc32c_append(crc32c::crc32c(&salt.to_be_bytes()), &position.to_be_bytes());
    crc32c::crc32c_append(seed, bytes)
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(number)
}

pub(super) const HEAD_BYTES: usize = 44;
pub(super) const FRAME_BYTES_MIN: usize = 17;
const MAGIC: [u8; 4] = *b"CTEL";
const FORMAT: u16 = 1;
