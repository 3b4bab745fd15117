//! An LZ4 encoder that searches chains of earlier positions for the longest match: what the
//! levels other than the default mean. Pure Rust, one frame of independent 64 KiB blocks.
//!
//! The rules of the format that it keeps: a match is 4 bytes or longer and at most 65,535 bytes
//! away; the last 5 bytes of a block are literals; no match begins in its last 12 bytes.

use std::io::{self, Write};

use super::Bounded;

const BLOCK_BYTES: usize = 64 << 10;
/// Magic, version 1 with independent blocks, blocks of 64 KiB, checksum of the two.
const FRAME_HEADER: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
const END_MARK: [u8; 4] = [0; 4];
const STORED_BIT: u32 = 1 << 31;

const MATCH_BYTES_MIN: usize = 4;
const LAST_LITERALS: usize = 5;
const LAST_MATCH_DISTANCE: usize = 12;
const HASH_BITS: u32 = 14;
/// A match that ends the search for a better one.
const GOOD_MATCH_BYTES: usize = 1 << 10;
const LEVEL_MAX: u32 = 17;

pub(in super::super) struct Encoder {
    out: Bounded,
    header_written: bool,
    pending: Vec<u8>,
    block: Vec<u8>,
    search: Search,
}

impl Encoder {
    pub(super) fn new(level: i32, out: Bounded) -> Self {
        let level = level.max(1).unsigned_abs().min(LEVEL_MAX);
        Self {
            out,
            header_written: false,
            pending: Vec::with_capacity(BLOCK_BYTES),
            block: Vec::new(),
            search: Search::new(4 * level * level),
        }
    }

    pub(super) fn finish(mut self) -> io::Result<Bounded> {
        self.write_block()?;
        self.out.write_all(&END_MARK)?;
        Ok(self.out)
    }

    fn write_block(&mut self) -> io::Result<()> {
        if !self.header_written {
            self.out.write_all(&FRAME_HEADER)?;
            self.header_written = true;
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        self.block.clear();
        self.search.compress(&self.pending, &mut self.block);
        let (size, bytes) = if self.block.len() < self.pending.len() {
            (self.block.len() as u32, &self.block)
        } else {
            (self.pending.len() as u32 | STORED_BIT, &self.pending)
        };
        self.out.write_all(&size.to_le_bytes())?;
        self.out.write_all(bytes)?;
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

#[derive(Clone, Copy)]
struct Match {
    from: usize,
    bytes: usize,
}

/// Earlier positions by the hash of their first four bytes, newest first. Positions are stored
/// plus one; 0 ends a chain.
struct Search {
    /// Positions that one search visits at most.
    attempts: u32,
    newest: Vec<u32>,
    older: Vec<u32>,
    /// Positions below it are in the chains.
    inserted: usize,
}

impl Search {
    fn new(attempts: u32) -> Self {
        let (newest, older) = (vec![0; 1 << HASH_BITS], vec![0; BLOCK_BYTES]);
        Self { attempts, newest, older, inserted: 0 }
    }

    fn compress(&mut self, block: &[u8], out: &mut Vec<u8>) {
        debug_assert!(block.len() <= BLOCK_BYTES);
        self.newest.fill(0);
        self.inserted = 0;
        let match_end = block.len().saturating_sub(LAST_MATCH_DISTANCE);
        let (mut at, mut literals_from) = (0, 0);
        while at < match_end {
            let Some(mut best) = self.longest(block, at) else {
                at += 1;
                continue;
            };
            // One byte later may match longer: then this byte is a literal.
            while at + 1 < match_end
                && let Some(later) = self.longest(block, at + 1)
                && later.bytes > best.bytes
            {
                at += 1;
                best = later;
            }
            write_sequence(out, &block[literals_from..at], Some((at - best.from, best.bytes)));
            at += best.bytes;
            literals_from = at;
        }
        write_sequence(out, &block[literals_from..], None);
    }

    fn longest(&mut self, block: &[u8], at: usize) -> Option<Match> {
        while self.inserted < at {
            let hash = hash_at(block, self.inserted);
            self.older[self.inserted] = self.newest[hash];
            self.newest[hash] = self.inserted as u32 + 1;
            self.inserted += 1;
        }
        let bytes_max = block.len() - LAST_LITERALS - at;
        let mut best: Option<Match> = None;
        let mut candidate = self.newest[hash_at(block, at)];
        for _ in 0..self.attempts {
            let Some(from) = (candidate as usize).checked_sub(1) else { break };
            // Only chains can lead past `at` itself, after a look one byte ahead.
            if from < at && at - from <= usize::from(u16::MAX) {
                let bytes = common_prefix(&block[from..], &block[at..at + bytes_max]);
                if bytes >= MATCH_BYTES_MIN && best.is_none_or(|best| bytes > best.bytes) {
                    best = Some(Match { from, bytes });
                    if bytes == bytes_max || bytes >= GOOD_MATCH_BYTES {
                        break;
                    }
                }
            }
            candidate = self.older[from];
        }
        best
    }
}

fn hash_at(block: &[u8], at: usize) -> usize {
    let bytes = [block[at], block[at + 1], block[at + 2], block[at + 3]];
    (u32::from_le_bytes(bytes).wrapping_mul(2_654_435_761) >> (32 - HASH_BITS)) as usize
}

fn common_prefix(earlier: &[u8], here: &[u8]) -> usize {
    earlier.iter().zip(here).take_while(|(a, b)| a == b).count()
}

/// One token with its literals and, except at the end of a block, its match.
fn write_sequence(out: &mut Vec<u8>, literals: &[u8], found: Option<(usize, usize)>) {
    let extra = found.map_or(0, |(_, bytes)| bytes - MATCH_BYTES_MIN);
    let token = (literals.len().min(15) << 4) | extra.min(15);
    out.push(token as u8);
    if literals.len() >= 15 {
        write_length(out, literals.len() - 15);
    }
    out.extend_from_slice(literals);
    if let Some((distance, _)) = found {
        out.extend_from_slice(&(distance as u16).to_le_bytes());
        if extra >= 15 {
            write_length(out, extra - 15);
        }
    }
}

fn write_length(out: &mut Vec<u8>, mut rest: usize) {
    while rest >= 255 {
        out.push(255);
        rest -= 255;
    }
    out.push(rest as u8);
}
