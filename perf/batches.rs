//! The record batches that are sent, built before the clock starts.
//!
//! A batch is kept as header and body apart: an idempotent producer numbers each one anew, and only
//! the header changes by that. Contents are drawn from a fixed seed, so that two runs send the same
//! bytes; the alphabet has 64 letters, so that codecs find something to do.

use bytes::Bytes;
use protocol::batch::header::{HEADER_BYTES, crc_of};
use protocol::batch::{BatchBuilder, BatchHeader, Codec, Compression, NewRecord};

use crate::options::{PayloadArgs, SizeRange};

/// How records and batches look.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub record_size: SizeRange,
    pub key_size: Option<usize>,
    pub fill: Fill,
    pub codec: Codec,
}

/// When a batch is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    Records(usize),
    /// Before compression; at least one record.
    Bytes(usize),
}

impl Shape {
    /// `fallback` says how full a batch is when the arguments do not.
    pub fn of(args: &PayloadArgs, fallback: Fill) -> Shape {
        let fill = match (args.records_per_batch, args.batch_bytes) {
            (Some(records), _) => Fill::Records(records.max(1)),
            (None, Some(bytes)) => Fill::Bytes(bytes),
            (None, None) => fallback,
        };
        Shape { record_size: args.record_size, key_size: args.key_size, fill, codec: args.codec }
    }
}

/// A finished batch.
#[derive(Debug, Clone)]
pub struct Batch {
    pub whole: Bytes,
    pub header: BatchHeader,
    pub records: u64,
}

impl Batch {
    fn new(whole: Bytes, header: BatchHeader) -> Batch {
        let records = u64::from(header.count.unsigned_abs());
        Batch { whole, header, records }
    }

    /// Header and body of the same batch as the given producer would send it.
    pub fn numbered(&self, producer_id: i64, epoch: i16, base_sequence: i32) -> (Bytes, Bytes) {
        let body = self.whole.slice(HEADER_BYTES..);
        let header =
            BatchHeader { producer_id, producer_epoch: epoch, base_sequence, ..self.header };
        let mut head = header.encode();
        // The checksum runs over the tail of the header and then over the body.
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head[CHECKED_FROM..]), &body);
        head[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
        (Bytes::copy_from_slice(&head), body)
    }
}

/// Draws records.
pub struct Generator {
    shape: Shape,
    random: u64,
    value: Vec<u8>,
    key: Vec<u8>,
}

impl Generator {
    pub fn new(shape: Shape, seed: u64) -> Generator {
        Generator { shape, random: seed | 1, value: Vec::new(), key: Vec::new() }
    }

    /// `count` different batches whose records carry `timestamp`, in ms since 1970.
    pub fn batches(&mut self, count: usize, timestamp: i64) -> Vec<Batch> {
        (0..count).map(|_| self.batch(timestamp, None)).collect()
    }

    /// One batch; `stamp` is put in front of every value.
    pub fn batch(&mut self, timestamp: i64, stamp: Option<&[u8]>) -> Batch {
        let mut builder = BatchBuilder::new(Compression::of(self.shape.codec));
        loop {
            self.draw(stamp);
            let more = match self.shape.fill {
                Fill::Records(records) => (builder.count() as usize) < records,
                Fill::Bytes(bytes) => {
                    let record = self.value.len() + self.key.len() + RECORD_OVERHEAD_BYTES;
                    builder.count() == 0 || builder.uncompressed_bytes() + record <= bytes
                }
            };
            if !more {
                break;
            }
            let key = self.shape.key_size.map(|_| self.key.as_slice());
            builder.append(&NewRecord { timestamp, key, value: Some(&self.value), headers: &[] });
        }
        let whole = builder.build();
        match BatchHeader::parse(&whole) {
            Ok(header) => {
                debug_assert_eq!(header.crc, crc_of(&whole));
                Batch::new(whole, header)
            }
            Err(broken) => unreachable!("a batch that was just built: {broken}"),
        }
    }

    fn draw(&mut self, stamp: Option<&[u8]>) {
        let SizeRange { min, max } = self.shape.record_size;
        let size = min + (self.next() as usize) % (max - min + 1);
        let stamp = stamp.unwrap_or_default();
        self.value.clear();
        self.value.extend_from_slice(stamp);
        self.value.resize(size.max(stamp.len()), 0);
        let mut value = std::mem::take(&mut self.value);
        self.fill(&mut value[stamp.len()..]);
        self.value = value;
        let mut key = std::mem::take(&mut self.key);
        key.resize(self.shape.key_size.unwrap_or(0), 0);
        self.fill(&mut key);
        self.key = key;
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for eight in bytes.chunks_mut(8) {
            let mut random = self.next();
            for byte in eight {
                *byte = ALPHABET[random as usize % ALPHABET.len()];
                random >>= 8;
            }
        }
    }

    /// Marsaglia's xorshift64*.
    fn next(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const CRC_AT: usize = protocol::batch::header::CRC_AT;
const CHECKED_FROM: usize = CRC_AT + 4;
/// Lengths and deltas of a record, at most.
const RECORD_OVERHEAD_BYTES: usize = 16;
