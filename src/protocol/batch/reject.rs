//! Why a produced batch is refused, and how Kafka says it.
//!
//! | refusal | code | log start offset in the answer |
//! |---|---|---|
//! | no batch, two batches, format 0 or 1 | 87 INVALID_RECORD | -1 |
//! | broken sizes or compressed data, unknown format, wrong CRC | 2 CORRUPT_MESSAGE | -1 |
//! | zstd below Produce v7 | 76 UNSUPPORTED_COMPRESSION_TYPE | -1 |
//! | unknown codec | 76 UNSUPPORTED_COMPRESSION_TYPE | the real one |
//! | larger than max.message.bytes, or than its bound unpacked | 10 MESSAGE_TOO_LARGE | -1 |
//! | larger than segment.bytes | 18 RECORD_LIST_TOO_LARGE | -1 |
//! | offsets, counts, flags, sequence, record structure, keys | 87 INVALID_RECORD | the real one |
//! | timestamps | 32 INVALID_TIMESTAMP | the real one |
//! | producer id without an epoch | 47 INVALID_PRODUCER_EPOCH | the real one |
//!
//! Kafka answers -1 UNKNOWN_SERVER_ERROR to broken compressed data, unknown codecs, a batch
//! length near 2^31 and unordered offsets in a compressed batch; here they have their own codes.

use thiserror::Error;

use super::compression::DecompressError;
use super::record::RecordError;

pub(super) const CORRUPT_MESSAGE: i16 = 2;
const MESSAGE_TOO_LARGE: i16 = 10;
const RECORD_LIST_TOO_LARGE: i16 = 18;
const INVALID_TIMESTAMP: i16 = 32;
const INVALID_PRODUCER_EPOCH: i16 = 47;
const UNSUPPORTED_COMPRESSION_TYPE: i16 = 76;
const INVALID_RECORD: i16 = 87;

/// Why a batch is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Rejection {
    #[error("a produce request must carry one record batch per partition, and there is none")]
    NoBatch,
    #[error("a produce request must carry one record batch per partition, and there are more")]
    SeveralBatches,
    #[error("record format {0} is no longer accepted")]
    OldMagic(i8),
    #[error("unknown record format {0}")]
    UnknownMagic(i8),
    #[error("{0} cannot be the length of a batch")]
    BatchLength(i32),
    #[error("the checksum of the batch is wrong")]
    Checksum,
    #[error("no compression codec has the number {0}")]
    UnknownCodec(u8),
    #[error("zstd needs version 7 of the produce request, this is version {0}")]
    ZstdTooEarly(i16),
    #[error("broken compressed records: {0}")]
    Decompression(String),
    #[error("the records have more than {limit} bytes when decompressed")]
    DecompressedTooLarge { limit: usize },
    #[error("the batch has {size} bytes and max.message.bytes is {limit}")]
    TooLarge { size: usize, limit: usize },
    #[error("the batch does not fit max.message.bytes {limit} after recompression")]
    RecompressedTooLarge { limit: usize },
    #[error("the batch has {size} bytes and segment.bytes is {limit}")]
    LargerThanSegment { size: usize, limit: usize },
    #[error("a produced batch must begin at offset 0, not {0}")]
    BaseOffset(i64),
    #[error("a batch of {count} records cannot have the last offset delta {last_offset_delta}")]
    Count { count: i32, last_offset_delta: i32 },
    #[error("clients cannot write control records")]
    ControlBatch,
    #[error("producer {producer_id} sent no sequence number")]
    NoSequence { producer_id: i64 },
    #[error("producer {producer_id} sent no epoch")]
    NoEpoch { producer_id: i64 },
    #[error("{0}")]
    Structure(RecordError),
    #[error("record {index} has the offset delta {offset_delta}, which cannot be")]
    OffsetDelta { index: i32, offset_delta: i32 },
    #[error("{0} records have a timestamp that is not accepted")]
    Timestamps(usize),
    #[error("{0} records have no key and the topic is compacted")]
    Keys(usize),
}

impl Rejection {
    /// Kafka's error code.
    pub fn code(&self) -> i16 {
        match self {
            Rejection::UnknownMagic(_)
            | Rejection::BatchLength(_)
            | Rejection::Checksum
            | Rejection::Decompression(_) => CORRUPT_MESSAGE,
            Rejection::TooLarge { .. }
            | Rejection::DecompressedTooLarge { .. }
            | Rejection::RecompressedTooLarge { .. } => MESSAGE_TOO_LARGE,
            Rejection::LargerThanSegment { .. } => RECORD_LIST_TOO_LARGE,
            Rejection::Timestamps(_) => INVALID_TIMESTAMP,
            Rejection::NoEpoch { .. } => INVALID_PRODUCER_EPOCH,
            Rejection::UnknownCodec(_) | Rejection::ZstdTooEarly(_) => UNSUPPORTED_COMPRESSION_TYPE,
            Rejection::NoBatch
            | Rejection::SeveralBatches
            | Rejection::OldMagic(_)
            | Rejection::BaseOffset(_)
            | Rejection::Count { .. }
            | Rejection::ControlBatch
            | Rejection::NoSequence { .. }
            | Rejection::Structure(_)
            | Rejection::OffsetDelta { .. }
            | Rejection::Keys(_) => INVALID_RECORD,
        }
    }

    /// Whether the answer carries the partition's log start offset; -1 otherwise, for refusals
    /// that Kafka decides before it looks at the log or at single records.
    pub fn tells_log_start_offset(&self) -> bool {
        let before_the_log = matches!(
            self,
            Rejection::NoBatch
                | Rejection::SeveralBatches
                | Rejection::OldMagic(_)
                | Rejection::ZstdTooEarly(_)
        );
        let whole_batch =
            matches!(self.code(), CORRUPT_MESSAGE | MESSAGE_TOO_LARGE | RECORD_LIST_TOO_LARGE);
        !before_the_log && !whole_batch
    }
}

impl From<DecompressError> for Rejection {
    fn from(error: DecompressError) -> Self {
        match error {
            DecompressError::TooLarge { limit } => Rejection::DecompressedTooLarge { limit },
            DecompressError::Corrupt { .. } => Rejection::Decompression(error.to_string()),
        }
    }
}

/// One record that is refused: an entry of `record_errors` (Produce v8 and later).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFault {
    /// The record's position in its batch.
    pub batch_index: i32,
    pub kind: RecordFaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordFaultKind {
    #[error("a record of a compacted topic needs a key")]
    NoKey,
    #[error("the timestamp is outside the bounds that the topic sets")]
    Timestamp,
    #[error("a producer cannot send timestamps of the kind LogAppendTime")]
    LogAppendTime,
}

/// A refused batch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{error}")]
pub struct RejectedBatch {
    pub error: Rejection,
    /// Every refused record, in order, up to [`RejectedBatch::RECORD_FAULTS_MAX`]; empty when
    /// the batch is refused as a whole.
    pub record_faults: Vec<RecordFault>,
}

impl RejectedBatch {
    /// Refused records that are listed at most.
    pub const RECORD_FAULTS_MAX: usize = 100_000;
}

impl From<Rejection> for RejectedBatch {
    fn from(error: Rejection) -> Self {
        Self { error, record_faults: Vec::new() }
    }
}
