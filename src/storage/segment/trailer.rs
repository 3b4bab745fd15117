//! The mark behind the last commit of a segment that is still written to.
//!
//! Law: a strict commit ends with this mark in the last 32 bytes of its last block, and the next
//! commit overwrites it (a batch is longer than a mark, so no commit can step over it). A commit
//! begins only when the one before it is on stable storage, so where a valid mark stands,
//! everything before its *start* was on stable storage once. That is what tells damage from a torn
//! write: a bad batch before a mark's start was whole once; only one behind it can belong to the
//! commit that a power loss cut short (its sectors land in any order, the mark perhaps first). What
//! the slot's journal has of a commit is durable before it, and the mark's start lies behind that.
//!
//! A sealed segment is cut to its batches, so a mark never meets another reader of the format.
//!
//! ```text
//! 0   8  magic
//! 8   8  end position: first byte behind the batches of the commit, big endian
//! 16  8  start position of the commit, big endian
//! 24  4  zero
//! 28  4  CRC-32C over the segment's salt and bytes 0..28, big endian
//! ```

use super::BLOCK;

/// Bytes of a mark.
pub const TRAILER_BYTES: usize = 32;

/// What a mark says: the commit wrote `start..end` of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    pub start_position: u64,
    pub end_position: u64,
}

/// Binds marks to one segment of one partition, so that a payload that looks like a mark of
/// another segment is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailerSalt(u32);

impl TrailerSalt {
    /// For bytes in which no mark is looked for.
    pub const NONE: TrailerSalt = TrailerSalt(0);

    pub fn new(topic_id: [u8; 16], partition: i32, segment_base: i64) -> TrailerSalt {
        let mut salt = crc32c::crc32c(&topic_id);
        salt = crc32c::crc32c_append(salt, &partition.to_be_bytes());
        TrailerSalt(crc32c::crc32c_append(salt, &segment_base.to_be_bytes()))
    }
}

/// Length of the blocks that hold `used` bytes and a mark.
pub fn blocks_with_trailer(used: usize) -> usize {
    (used + TRAILER_BYTES).next_multiple_of(BLOCK)
}

/// Whether `block` ends with what could be the mark of some segment.
pub fn ends_like_a_mark(block: &[u8]) -> bool {
    block.last_chunk::<TRAILER_BYTES>().is_some_and(|mark| mark[..8] == MAGIC)
}

impl Trailer {
    /// Writes the mark into the last bytes of `blocks`.
    pub fn put(&self, salt: TrailerSalt, blocks: &mut [u8]) {
        assert!(blocks.len().is_multiple_of(BLOCK) && !blocks.is_empty());
        assert!(self.start_position <= self.end_position);
        let at = blocks.len() - TRAILER_BYTES;
        let mark = &mut blocks[at..];
        mark[..8].copy_from_slice(&MAGIC);
        mark[8..16].copy_from_slice(&self.end_position.to_be_bytes());
        mark[16..24].copy_from_slice(&self.start_position.to_be_bytes());
        mark[24..28].fill(0);
        let crc = crc32c::crc32c_append(salt.0, &mark[..28]);
        mark[28..].copy_from_slice(&crc.to_be_bytes());
    }

    /// The mark at the end of `block`, which starts at `block_position` of the segment.
    pub fn find(salt: TrailerSalt, block: &[u8], block_position: u64) -> Option<Trailer> {
        let mark: &[u8; TRAILER_BYTES] = block.last_chunk()?;
        if mark[..8] != MAGIC || mark[24..28] != [0; 4] {
            return None;
        }
        let crc = crc32c::crc32c_append(salt.0, &mark[..28]);
        if mark[28..] != crc.to_be_bytes() {
            return None;
        }
        let [start_position, end_position] = [&mark[16..24], &mark[8..16]]
            .map(|field| field.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        let room = block_position + (block.len() - TRAILER_BYTES) as u64;
        // A mark shares its block with the end it names, or had to move to the next one.
        let near = end_position <= room && end_position + (BLOCK as u64) > room;
        (near && start_position <= end_position).then_some(Trailer { start_position, end_position })
    }
}

const MAGIC: [u8; 8] = *b"\xffctmark\n";
const _: () = assert!(TRAILER_BYTES < 61, "a batch header must be longer than a mark");
