//! The bytes of a slot's journal.
//!
//! Law: a record is believed only where it was written: its checksum covers the journal's salt, the
//! file's number and the position in the file too. Records carry sequence numbers without a gap, so
//! what an earlier lap left in a recycled file is told by its older number, and a record that is
//! missing between two others is damage. One write carries one record, and a write begins when the
//! one before it is on stable storage: only the last record can be torn.
//!
//! `journal/<slot>/state`, two equal copies of 4096 bytes; numbers are big endian everywhere:
//! ```text
//! 0   8  magic and format version
//! 8   8  number of the write
//! 16  8  salt
//! 24  4  slot
//! 28  4  number of files
//! 32  8  bytes of each file
//! 40  8  low water: records before this sequence number count no more
//! 48  4  flags: 1 the files are written in full
//! 52  4  CRC-32C over 0..52
//! ```
//! `journal/<slot>/<number>.journal`, a block of 4096 bytes that says whose it is, then records:
//! ```text
//! 0   8  magic and format version
//! 8   8  salt
//! 16  4  number of the file
//! 20  4  CRC-32C over 0..20
//! ```
//! A record begins at a multiple of 4096 bytes and is filled up with zeros to one:
//! ```text
//! 0   8  magic
//! 8   8  sequence number
//! 16  4  bytes, these included
//! 20  4  number of entries
//! 24  4  CRC-32C over salt, number of the file, position, 0..24 and 28..bytes
//! 28  n  entries
//! ```
//! An entry:
//! ```text
//! 0   16 topic id
//! 16  4  partition
//! 20  1  kind: 1 batches, 2 truncated, 3 deleted, 4 handed over
//! 21  3  zero
//! 24  8  ownership: grows with each opening of the log on this host
//! 32  8  base offset of the segment
//! 40  8  position in the segment
//! 48  8  offset of the first record
//! 56  8  offset behind the last record
//! 64  4  bytes of batches
//! 68  n  batches
//! ```

use protocol::Uuid;

use crate::segment::BLOCK;

/// What the state file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalState {
    /// Number of the write; the greater one of two copies counts.
    pub write: u64,
    pub salt: u64,
    pub slot: u32,
    pub files: u32,
    pub file_bytes: u64,
    /// Records before this one count no more.
    pub low_water: u64,
    /// Every byte of the files was written, so an overwrite allocates nothing.
    pub prewritten: bool,
}

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFormat {
    Damaged,
    Newer { format: u8 },
}

/// What an entry says of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EntryKind {
    /// Bytes that belong into the segment.
    Batches = 1,
    /// All that came before is in the segments, which are about to be cut.
    Truncated = 2,
    /// All that came before is gone with the log's directory.
    Deleted = 3,
    /// All that came before is in the segments, and another slot may go on with the log.
    HandedOver = 4,
}

/// An entry without its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHead {
    pub topic_id: Uuid,
    pub partition: i32,
    pub kind: EntryKind,
    pub ownership: u64,
    pub segment_base: i64,
    pub position: u64,
    pub base_offset: i64,
    pub end_offset: i64,
    /// Bytes of batches behind the head.
    pub length: u32,
}

/// Where a record is: what its checksum is salted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub salt: u64,
    pub file: u32,
    pub position: u64,
}

/// A record that is whole.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    pub sequence: u64,
    /// Bytes, without the zeros behind.
    pub length: usize,
    entries: u32,
    body: &'a [u8],
}

impl JournalState {
    pub fn encode(&self) -> [u8; STATE_BYTES] {
        let mut fields = [0; STATE_BYTES];
        fields[..7].copy_from_slice(&STATE_MAGIC);
        fields[7] = FORMAT;
        fields[8..16].copy_from_slice(&self.write.to_be_bytes());
        fields[16..24].copy_from_slice(&self.salt.to_be_bytes());
        fields[24..28].copy_from_slice(&self.slot.to_be_bytes());
        fields[28..32].copy_from_slice(&self.files.to_be_bytes());
        fields[32..40].copy_from_slice(&self.file_bytes.to_be_bytes());
        fields[40..48].copy_from_slice(&self.low_water.to_be_bytes());
        fields[48..52].copy_from_slice(&u32::from(self.prewritten).to_be_bytes());
        let crc = crc32c::crc32c(&fields[..STATE_CRC_AT]);
        fields[STATE_CRC_AT..].copy_from_slice(&crc.to_be_bytes());
        fields
    }

    fn decode(copy: &[u8]) -> Result<JournalState, BadFormat> {
        let fields: &[u8; STATE_BYTES] = copy.first_chunk().ok_or(BadFormat::Damaged)?;
        let crc = crc32c::crc32c(&fields[..STATE_CRC_AT]);
        if fields[STATE_CRC_AT..] != crc.to_be_bytes() || fields[..7] != STATE_MAGIC {
            return Err(BadFormat::Damaged);
        }
        if fields[7] != FORMAT {
            return Err(BadFormat::Newer { format: fields[7] });
        }
        Ok(JournalState {
            write: u64_at(fields, 8),
            salt: u64_at(fields, 16),
            slot: u32_at(fields, 24),
            files: u32_at(fields, 28),
            file_bytes: u64_at(fields, 32),
            low_water: u64_at(fields, 40),
            prewritten: u32_at(fields, 48) & 1 != 0,
        })
    }

    /// The newest whole copy of a state file. Both are written before anything relies on what is
    /// new in them, so one is enough.
    pub fn newest(file: &[u8]) -> Result<JournalState, BadFormat> {
        let mut newest: Option<JournalState> = None;
        for copy in file.chunks(BLOCK).take(2) {
            match JournalState::decode(copy) {
                Ok(state) if newest.is_none_or(|known| known.write < state.write) => {
                    newest = Some(state);
                }
                Err(newer @ BadFormat::Newer { .. }) => return Err(newer),
                _ => {}
            }
        }
        newest.ok_or(BadFormat::Damaged)
    }
}

/// The first bytes of a journal file.
pub fn file_head(salt: u64, file: u32) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..7].copy_from_slice(&FILE_MAGIC);
    head[7] = FORMAT;
    head[8..16].copy_from_slice(&salt.to_be_bytes());
    head[16..20].copy_from_slice(&file.to_be_bytes());
    let crc = crc32c::crc32c(&head[..20]);
    head[20..].copy_from_slice(&crc.to_be_bytes());
    head
}

impl EntryHead {
    pub fn encode(&self) -> [u8; ENTRY_HEAD_BYTES] {
        let mut head = [0; ENTRY_HEAD_BYTES];
        head[..16].copy_from_slice(&self.topic_id.0);
        head[16..20].copy_from_slice(&self.partition.to_be_bytes());
        head[20] = self.kind as u8;
        head[24..32].copy_from_slice(&self.ownership.to_be_bytes());
        head[32..40].copy_from_slice(&self.segment_base.to_be_bytes());
        head[40..48].copy_from_slice(&self.position.to_be_bytes());
        head[48..56].copy_from_slice(&self.base_offset.to_be_bytes());
        head[56..64].copy_from_slice(&self.end_offset.to_be_bytes());
        head[64..].copy_from_slice(&self.length.to_be_bytes());
        head
    }

    pub fn decode(bytes: &[u8]) -> Option<EntryHead> {
        let head: &[u8; ENTRY_HEAD_BYTES] = bytes.first_chunk()?;
        let kind = match head[20] {
            1 => EntryKind::Batches,
            2 => EntryKind::Truncated,
            3 => EntryKind::Deleted,
            4 => EntryKind::HandedOver,
            _ => return None,
        };
        let mut topic_id = [0; 16];
        topic_id.copy_from_slice(&head[..16]);
        Some(EntryHead {
            topic_id: Uuid(topic_id),
            partition: u32_at(head, 16) as i32,
            kind,
            ownership: u64_at(head, 24),
            segment_base: u64_at(head, 32) as i64,
            position: u64_at(head, 40),
            base_offset: u64_at(head, 48) as i64,
            end_offset: u64_at(head, 56) as i64,
            length: u32_at(head, 64),
        })
    }
}

/// Completes the record at the start of `blocks`, whose entries stand behind `RECORD_HEAD_BYTES`
/// and end at `length`.
pub fn seal_record(blocks: &mut [u8], place: Place, sequence: u64, length: usize, entries: u32) {
    assert!((RECORD_HEAD_BYTES..=blocks.len()).contains(&length));
    assert!(blocks.len() <= RECORD_BYTES_MAX);
    assert!(place.position.is_multiple_of(BLOCK as u64) && place.position > 0);
    blocks[..8].copy_from_slice(&RECORD_MAGIC);
    blocks[8..16].copy_from_slice(&sequence.to_be_bytes());
    blocks[16..20].copy_from_slice(&(length as u32).to_be_bytes());
    blocks[20..24].copy_from_slice(&entries.to_be_bytes());
    let crc = checksum(place, &blocks[..length]);
    blocks[24..28].copy_from_slice(&crc.to_be_bytes());
}

impl<'a> RecordView<'a> {
    /// The record at the start of `bytes`, if one was written whole in this very place.
    pub fn at(bytes: &'a [u8], place: Place) -> Option<RecordView<'a>> {
        if bytes.get(..8)? != RECORD_MAGIC {
            return None;
        }
        let head: &[u8; RECORD_HEAD_BYTES] = bytes.first_chunk()?;
        let length = u32_at(head, 16) as usize;
        if length < RECORD_HEAD_BYTES || length > bytes.len() {
            return None;
        }
        if u32_at(head, 24) != checksum(place, &bytes[..length]) {
            return None;
        }
        Some(RecordView {
            sequence: u64_at(head, 8),
            length,
            entries: u32_at(head, 20),
            body: &bytes[RECORD_HEAD_BYTES..length],
        })
    }

    /// Bytes of the file that it takes.
    pub fn blocks(&self) -> usize {
        self.length.next_multiple_of(BLOCK)
    }

    /// Its entries; none when they do not add up, which a right checksum rules out.
    pub fn entries(&self) -> Option<Vec<(EntryHead, &'a [u8])>> {
        let mut rest = self.body;
        let mut entries = Vec::new();
        for _ in 0..self.entries {
            let head = EntryHead::decode(rest)?;
            rest = &rest[ENTRY_HEAD_BYTES..];
            let (batches, behind) = rest.split_at_checked(head.length as usize)?;
            entries.push((head, batches));
            rest = behind;
        }
        rest.is_empty().then_some(entries)
    }
}

fn checksum(place: Place, record: &[u8]) -> u32 {
    let seed = crc32c::crc32c(&place.salt.to_be_bytes());
    let seed = crc32c::crc32c_append(seed, &place.file.to_be_bytes());
    let seed = crc32c::crc32c_append(seed, &place.position.to_be_bytes());
    let seed = crc32c::crc32c_append(seed, &record[..24]);
    crc32c::crc32c_append(seed, &record[RECORD_HEAD_BYTES..])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(number)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(number)
}

/// The most that one record takes.
pub const RECORD_BYTES_MAX: usize = crate::log::CHUNK_BYTES_MAX;
pub const RECORD_HEAD_BYTES: usize = 28;
pub const ENTRY_HEAD_BYTES: usize = 68;
pub const HEAD_BYTES: usize = 24;
const STATE_CRC_AT: usize = 52;
const STATE_BYTES: usize = STATE_CRC_AT + 4;
const STATE_MAGIC: [u8; 7] = *b"\xffctjsta";
const FILE_MAGIC: [u8; 7] = *b"\xffctjfil";
const RECORD_MAGIC: [u8; 8] = *b"\xffctjrec\n";
const FORMAT: u8 = 1;
