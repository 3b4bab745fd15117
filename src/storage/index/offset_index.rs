//! Offset index: which batch lies where.
//!
//! Law: relative offsets and positions both rise strictly.
//!
//! ```text
//! 0  4  last offset of the batch, relative to the segment's base offset, big endian
//! 4  4  position of the batch's first byte in the segment file, big endian
//! ```

use super::{IndexDamage, relative};

/// A batch that the index knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetEntry {
    /// The batch's last offset.
    pub last_offset: i64,
    /// Where its first byte lies in the segment file.
    pub position: u32,
}

/// The offset index of one segment, in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetIndex {
    base_offset: i64,
    entries: Vec<Packed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packed {
    relative: u32,
    position: u32,
}

impl OffsetIndex {
    pub const ENTRY_BYTES: usize = 8;

    pub fn new(base_offset: i64) -> Self {
        OffsetIndex { base_offset, entries: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn entries(&self) -> impl Iterator<Item = OffsetEntry> + '_ {
        self.entries.iter().map(|entry| self.unpack(*entry))
    }

    pub fn last(&self) -> Option<OffsetEntry> {
        self.entries.last().map(|entry| self.unpack(*entry))
    }

    pub fn append(&mut self, entry: OffsetEntry) {
        let packed = Packed {
            relative: relative(self.base_offset, entry.last_offset),
            position: entry.position,
        };
        if let Some(last) = self.entries.last() {
            let rises = last.relative < packed.relative && last.position < packed.position;
            assert!(rises, "{entry:?} does not rise above {:?}", self.last());
        }
        self.entries.push(packed);
    }

    /// The last known batch that ends at or before `offset`.
    pub fn floor(&self, offset: i64) -> Option<OffsetEntry> {
        let wanted = offset.checked_sub(self.base_offset).filter(|relative| *relative >= 0)?;
        let after = self.entries.partition_point(|entry| i64::from(entry.relative) <= wanted);
        after.checked_sub(1).map(|floor| self.unpack(self.entries[floor]))
    }

    /// Forgets the batches that end at `offset` or later.
    pub fn truncate_to(&mut self, offset: i64) {
        let wanted = offset.saturating_sub(self.base_offset);
        self.entries.truncate(self.entries.partition_point(|e| i64::from(e.relative) < wanted));
    }

    /// The entries from number `from` on, as they stand in the file.
    pub fn to_file(&self, from: usize) -> Vec<u8> {
        let mut file = Vec::with_capacity((self.entries.len() - from) * Self::ENTRY_BYTES);
        for entry in &self.entries[from..] {
            file.extend_from_slice(&entry.relative.to_be_bytes());
            file.extend_from_slice(&entry.position.to_be_bytes());
        }
        file
    }

    /// Reads a whole index file of a segment whose log holds `log_bytes`.
    pub fn parse(base_offset: i64, file: &[u8], log_bytes: u64) -> Result<Self, IndexDamage> {
        let (chunks, rest) = file.as_chunks::<{ Self::ENTRY_BYTES }>();
        if !rest.is_empty() {
            let entry_bytes = Self::ENTRY_BYTES;
            return Err(IndexDamage::Ragged { bytes: file.len(), entry_bytes });
        }
        let mut entries: Vec<Packed> = Vec::with_capacity(chunks.len());
        for (number, [r0, r1, r2, r3, p0, p1, p2, p3]) in chunks.iter().copied().enumerate() {
            let packed = Packed {
                relative: u32::from_be_bytes([r0, r1, r2, r3]),
                position: u32::from_be_bytes([p0, p1, p2, p3]),
            };
            if packed.relative > i32::MAX as u32 {
                return Err(IndexDamage::OutsideOffsets { entry: number });
            }
            if u64::from(packed.position) >= log_bytes {
                return Err(IndexDamage::OutsideLog { entry: number });
            }
            if let Some(last) = entries.last()
                && (last.relative >= packed.relative || last.position >= packed.position)
            {
                return Err(IndexDamage::NotRising { entry: number });
            }
            entries.push(packed);
        }
        Ok(OffsetIndex { base_offset, entries })
    }

    fn unpack(&self, entry: Packed) -> OffsetEntry {
        OffsetEntry {
            last_offset: self.base_offset + i64::from(entry.relative),
            position: entry.position,
        }
    }
}

const _: () = assert!(size_of::<Packed>() == OffsetIndex::ENTRY_BYTES);
