//! Record batches: Kafka's format v2 ("magic 2"), the only one that is written here.
//!
//! ```text
//! offset  size  field                     covered by the checksum
//!      0     8  base offset               no   stamped by the leader
//!      8     4  batch length              no   bytes behind this field
//!     12     4  partition leader epoch    no   stamped by the leader
//!     16     1  magic = 2                 no
//!     17     4  CRC-32C                   -    of everything from byte 21 to the end
//!     21     2  attributes                yes  bits 0-2 codec, 3 LogAppendTime, 4 transactional,
//!                                              5 control, 6 delete horizon; others are kept
//!     23     4  last offset delta         yes
//!     27     8  base timestamp            yes
//!     35     8  max timestamp             yes
//!     43     8  producer id               yes
//!     51     2  producer epoch            yes
//!     53     4  base sequence             yes
//!     57     4  record count              yes
//!     61     -  records, as one stream compressed by the codec
//! ```
//! A record is `length, attributes, timestamp delta, offset delta, key, value, headers`, all
//! lengths and deltas zigzag varints; -1 is the length of a null key or value.
//!
//! What holds in the whole module: nothing is allocated from a count or length that was not
//! checked against bytes at hand; nothing recurses; decompression is a bounded stream; no clock,
//! no I/O. The types here know no request: the broker answers with the codes that [`Rejection`]
//! and [`BatchError`] name.

pub mod builder;
pub mod compression;
pub mod header;
pub mod iterate;
mod recompress;
pub mod record;
mod reject;
mod scan;
mod thin;
mod validate;
mod varint;

pub use builder::{BatchBuilder, NewRecord};
pub use compression::{
    Codec, Compression, DecompressError, compress, decompress, decompressed_bytes_max,
};
pub use header::{BatchError, BatchHeader, HEADER_BYTES, TimestampType};
pub use iterate::{Batches, split_first};
pub use record::{HeaderIter, RecordError, RecordHeader, RecordIter, RecordView};
pub use reject::{RecordFault, RecordFaultKind, RejectedBatch, Rejection};
pub use thin::{emptied, thinned};
pub use validate::{
    CompressionPolicy, ProduceRules, ValidBatch, estimated_micros, validate_for_append,
    validate_within,
};
