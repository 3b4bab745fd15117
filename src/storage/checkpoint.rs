//! What a log knows about itself without reading its records: a file of two slots.
//!
//! Law: a write goes to the slot that does not hold the newest state, in one durable write; so
//! whatever a crash leaves, one whole slot is there, at most one write old. The log start offset
//! is written to both slots before anything relies on it, so damage to one of them cannot make it
//! fall. A checkpoint is never ahead of the segments: it is written when what it speaks of is on
//! stable storage.
//!
//! Two slots of 4096 bytes each, integers big endian:
//! ```text
//! 0    8  magic and format version
//! 8    8  sequence number of the write
//! 16  16  topic id
//! 32   4  partition
//! 36   4  flags: 1 clean, 2 possibly short, 4 relaxed, 8 thinned
//! 40   8  incarnation of the host that wrote it
//! 48   8  log start offset
//! 56   8  recovery point: base offset of its segment
//! 64   8  recovery point: position in that segment
//! 72   8  recovery point: offset
//! 80   4  recovery point: leader epoch of the batch before it, −1 when none
//! 84   4  entries of that segment's offset index that lie before it
//! 88   4  entries of that segment's time index that lie before it
//! 92   4  CRC-32C of those entries of the offset index
//! 96   4  CRC-32C of those entries of the time index
//! 100  4  slot whose journal may hold what is not in the segments, plus one; 0 for none
//! 104  8  offset of the producer snapshot to start from, −1 when none
//! 112  4  CRC-32C over 0..112
//! ```
//! A checkpoint that names a journal has format 2, so that a program which knows of no journals
//! refuses the log instead of opening it without its last batches.

use runtime::file::{ALIGNMENT, AlignedBuf, Block};
use thiserror::Error;

use crate::segment::IndexSums;

/// Name of the file in the log's directory.
pub const CHECKPOINT_FILE_NAME: &str = "checkpoint";
/// Bytes of the file.
pub const CHECKPOINT_BYTES: u64 = 2 * SLOT_BYTES as u64;

/// Up to here the log is known to be whole, and was on stable storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryPoint {
    pub segment_base: i64,
    pub position: u64,
    pub offset: i64,
    /// Leader epoch of the batch before it; −1 when there is none.
    pub epoch: i32,
    pub offset_entries: u32,
    pub time_entries: u32,
    /// Checksums of those entries.
    pub index_sums: IndexSums,
}

impl RecoveryPoint {
    /// An empty log that begins at `offset`.
    pub fn at_start(offset: i64) -> RecoveryPoint {
        RecoveryPoint {
            segment_base: offset,
            position: 0,
            offset,
            epoch: -1,
            offset_entries: 0,
            time_entries: 0,
            index_sums: IndexSums::default(),
        }
    }
}

/// The state of a log at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub topic_id: [u8; 16],
    pub partition: i32,
    /// The log was closed in order and ends at its recovery point.
    pub clean: bool,
    /// A recovery had to cut a batch that was there but not whole: the log may lack its last
    /// acknowledged batch. Stays until someone who knows better clears it.
    pub possibly_short: bool,
    /// Behind the recovery point the page cache was trusted, so a power loss may have left holes.
    pub relaxed: bool,
    /// Segments were compacted once: offsets may be missing between batches.
    pub thinned: bool,
    pub incarnation: i64,
    pub log_start_offset: i64,
    pub recovery_point: RecoveryPoint,
    pub producers_offset: i64,
    /// The slot whose journal may hold batches that the segments lack.
    pub journal: Option<u32>,
}

/// Why neither slot can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CheckpointError {
    #[error("both copies of the checkpoint are damaged")]
    Damaged,
    #[error("the checkpoint has format {found}, this program knows up to {FORMAT_JOURNALED}")]
    Format { found: u8 },
}

/// Position and content of the next write.
pub struct SlotWrite {
    pub position: u64,
    pub block: Block,
}

/// What a checkpoint file says.
#[derive(Clone, Copy, Debug)]
pub struct Newest {
    /// Sequence number of the write.
    pub sequence: u64,
    pub checkpoint: Checkpoint,
    /// False when the other slot is damaged: it may have held a newer state, in which the log was
    /// not closed or ended elsewhere. Then only what is written to both slots can be believed.
    pub is_certain: bool,
    /// Both slots have the same log start, so at least one durable write speaks of it.
    pub is_settled: bool,
}

impl Checkpoint {
    /// The write that makes this the newest state; `sequence` is one more than the last one's.
    pub fn slot_write(&self, sequence: u64) -> SlotWrite {
        let mut slot = AlignedBuf::zeroed(SLOT_BYTES);
        slot[..FIELD_BYTES].copy_from_slice(&self.encode(sequence));
        let position = (sequence % 2) * SLOT_BYTES as u64;
        SlotWrite { position, block: slot.freeze() }
    }

    /// A whole new file that holds this state: all of it allocated by the one write.
    pub fn first_file(&self, sequence: u64) -> Block {
        let mut file = AlignedBuf::zeroed(CHECKPOINT_BYTES as usize);
        let at = (sequence % 2) as usize * SLOT_BYTES;
        file[at..at + FIELD_BYTES].copy_from_slice(&self.encode(sequence));
        file.freeze()
    }

    /// The newest whole state of a file.
    pub fn newest(file: &[u8]) -> Result<Newest, CheckpointError> {
        let mut newest: Option<Newest> = None;
        let (mut whole, mut unwritten) = (0, 0);
        let mut log_starts = Vec::with_capacity(2);
        for slot in file.chunks(SLOT_BYTES).take(2) {
            match Checkpoint::decode(slot) {
                Ok((sequence, checkpoint)) => {
                    whole += 1;
                    log_starts.push(checkpoint.log_start_offset);
                    if newest.is_none_or(|known| known.sequence < sequence) {
                        let (is_certain, is_settled) = (false, false);
                        newest = Some(Newest { sequence, checkpoint, is_certain, is_settled });
                    }
                }
                Err(error @ CheckpointError::Format { .. }) => return Err(error),
                Err(CheckpointError::Damaged) if slot.iter().all(|byte| *byte == 0) => {
                    unwritten += 1;
                }
                Err(CheckpointError::Damaged) => {}
            }
        }
        let mut newest = newest.ok_or(CheckpointError::Damaged)?;
        // The other slot stays unwritten up to the second write.
        newest.is_certain = whole == 2 || (unwritten == 1 && newest.sequence == 1);
        newest.is_settled = newest.is_certain && log_starts.windows(2).all(|two| two[0] == two[1]);
        Ok(newest)
    }

    /// The bytes at the start of a slot.
    pub fn encode(&self, sequence: u64) -> [u8; FIELD_BYTES] {
        let mut fields = [0; FIELD_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            fields[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let point = &self.recovery_point;
        put(&MAGIC);
        put(&[if self.journal.is_some() { FORMAT_JOURNALED } else { FORMAT }]);
        put(&sequence.to_be_bytes());
        put(&self.topic_id);
        put(&self.partition.to_be_bytes());
        put(&self.flags().to_be_bytes());
        put(&self.incarnation.to_be_bytes());
        put(&self.log_start_offset.to_be_bytes());
        put(&point.segment_base.to_be_bytes());
        put(&point.position.to_be_bytes());
        put(&point.offset.to_be_bytes());
        put(&point.epoch.to_be_bytes());
        put(&point.offset_entries.to_be_bytes());
        put(&point.time_entries.to_be_bytes());
        put(&point.index_sums.offsets.to_be_bytes());
        put(&point.index_sums.times.to_be_bytes());
        put(&self.journal.map_or(0, |slot| slot + 1).to_be_bytes());
        put(&self.producers_offset.to_be_bytes());
        let crc = crc32c::crc32c(&fields[..CRC_AT]);
        fields[CRC_AT..].copy_from_slice(&crc.to_be_bytes());
        fields
    }

    /// The state in one slot, and the sequence number of its write.
    pub fn decode(slot: &[u8]) -> Result<(u64, Checkpoint), CheckpointError> {
        let fields: &[u8; FIELD_BYTES] = slot.first_chunk().ok_or(CheckpointError::Damaged)?;
        let crc = crc32c::crc32c(&fields[..CRC_AT]);
        if fields[CRC_AT..] != crc.to_be_bytes() || fields[..7] != MAGIC {
            return Err(CheckpointError::Damaged);
        }
        if fields[7] != FORMAT && fields[7] != FORMAT_JOURNALED {
            return Err(CheckpointError::Format { found: fields[7] });
        }
        let mut topic_id = [0; 16];
        topic_id.copy_from_slice(&fields[16..32]);
        let flags = int4(fields, 36);
        let recovery_point = RecoveryPoint {
            segment_base: int8(fields, 56),
            position: int8(fields, 64) as u64,
            offset: int8(fields, 72),
            epoch: int4(fields, 80),
            offset_entries: int4(fields, 84) as u32,
            time_entries: int4(fields, 88) as u32,
            index_sums: IndexSums {
                offsets: int4(fields, 92) as u32,
                times: int4(fields, 96) as u32,
            },
        };
        let checkpoint = Checkpoint {
            topic_id,
            partition: int4(fields, 32),
            clean: flags & 1 != 0,
            possibly_short: flags & 2 != 0,
            relaxed: flags & 4 != 0,
            thinned: flags & 8 != 0,
            incarnation: int8(fields, 40),
            log_start_offset: int8(fields, 48),
            recovery_point,
            producers_offset: int8(fields, 104),
            journal: (int4(fields, 100) as u32).checked_sub(1),
        };
        Ok((int8(fields, 8) as u64, checkpoint))
    }

    fn flags(&self) -> i32 {
        i32::from(self.clean)
            | i32::from(self.possibly_short) << 1
            | i32::from(self.relaxed) << 2
            | i32::from(self.thinned) << 3
    }
}

fn int8(fields: &[u8; FIELD_BYTES], at: usize) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&fields[at..at + 8]);
    i64::from_be_bytes(bytes)
}

fn int4(fields: &[u8; FIELD_BYTES], at: usize) -> i32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&fields[at..at + 4]);
    i32::from_be_bytes(bytes)
}

pub const SLOT_BYTES: usize = 4096;
const CRC_AT: usize = 112;
pub const FIELD_BYTES: usize = CRC_AT + 4;
const MAGIC: [u8; 7] = *b"\xffctstat";
const FORMAT: u8 = 1;
const FORMAT_JOURNALED: u8 = 2;
const _: () = assert!(SLOT_BYTES.is_multiple_of(ALIGNMENT));
