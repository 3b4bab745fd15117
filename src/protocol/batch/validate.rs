//! Whether a produced batch may be appended, and what has to be corrected in it first.
//!
//! The order of the checks is Kafka's, because it decides which answer a batch with several
//! faults gets: shape of the request's bytes, offset and sizes, checksum, header, every record,
//! what recompression made of it, segment size, producer epoch. The table of answers is in
//! [`super::reject`].
//!
//! Nothing is copied unless the codec changes: corrections to the header are kept beside the
//! received bytes and the checksum follows without reading a record again.
//!
//! Deliberately absent: producer sequence *continuity*, transactions and authorization. They need
//! state, and this is a pure function of the bytes and the topic's rules.

use bytes::Bytes;

use super::compression::{Codec, Compression, Inflated, Plain, Source, decompressed_bytes_max};
use super::header::{
    BatchError, BatchHeader, HEADER_BYTES, LOG_APPEND_TIME_BIT, LOG_OVERHEAD_BYTES, MAGIC,
    MAGIC_AT, NO_TIMESTAMP, TimestampType, crc_after_change, crc_ok, set_base_offset,
    set_leader_epoch,
};
use super::recompress::Rewriter;
use super::reject::{RecordFault, RecordFaultKind, RejectedBatch, Rejection};
use super::scan::{Discard, HasKey, RecordHead, ScanError, Sink, scan};

/// What `compression.type` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressionPolicy {
    /// Keep what the producer chose.
    Producer,
    /// This codec; batches that have it already are kept whatever their level.
    Fixed(Compression),
}

/// The topic's and the request's side of the decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProduceRules {
    /// Version of the produce request.
    pub api_version: i16,
    /// `max.message.bytes`.
    pub max_message_bytes: usize,
    /// `segment.bytes`.
    pub segment_bytes: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub after_max_ms: i64,
    /// Broker's wall clock, milliseconds since 1970.
    pub now_ms: i64,
    pub compression: CompressionPolicy,
    /// Whether `cleanup.policy` has `compact`: then every record needs a key.
    pub compacted: bool,
}

impl ProduceRules {
    /// Kafka's defaults for a topic, for the newest produce request.
    pub fn of_default_topic(now_ms: i64) -> Self {
        Self {
            api_version: 13,
            max_message_bytes: 1_048_588,
            segment_bytes: 1 << 30,
            timestamp_type: TimestampType::CreateTime,
            before_max_ms: i64::MAX,
            after_max_ms: 3_600_000,
            now_ms,
            compression: CompressionPolicy::Producer,
            compacted: false,
        }
    }
}

/// A batch that may be appended: a corrected header and the records as received or rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidBatch {
    header: BatchHeader,
    body: Bytes,
    max_timestamp_offset_delta: i32,
    recompressed: bool,
    log_append_time_ms: Option<i64>,
}

impl ValidBatch {
    /// A whole batch from this process itself ([`super::BatchBuilder`]): its checksum is checked,
    /// its records are taken as they are, control batches included.
    pub fn built_here(batch: Bytes) -> Result<Self, BatchError> {
        let header = BatchHeader::parse(&batch)?;
        assert!(crc_ok(&batch[..header.size_in_bytes()]), "a batch of our own has a checksum");
        Ok(Self {
            header,
            body: batch.slice(HEADER_BYTES..header.size_in_bytes()),
            max_timestamp_offset_delta: header.last_offset_delta,
            recompressed: false,
            log_append_time_ms: None,
        })
    }

    /// The header as it is to be stored, but for base offset and leader epoch.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The records, as they are to be stored behind the header.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    pub fn size_in_bytes(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }

    /// Number of records, at least 1 for a client's batch.
    pub fn record_count(&self) -> i32 {
        self.header.count
    }

    /// Largest timestamp in the batch, or the time of the append; -1 without any.
    pub fn max_timestamp(&self) -> i64 {
        self.header.max_timestamp
    }

    /// Where the first record with that timestamp is, relative to the base offset.
    pub fn max_timestamp_offset_delta(&self) -> i32 {
        self.max_timestamp_offset_delta
    }

    /// Whether the records were written anew for `compression.type`.
    pub fn recompressed(&self) -> bool {
        self.recompressed
    }

    /// What the answer says as `log_append_time_ms`; `None` stands for -1.
    pub fn log_append_time_ms(&self) -> Option<i64> {
        self.log_append_time_ms
    }

    /// The 61 bytes to store in front of the body.
    pub fn encode_header(&self, base_offset: i64, leader_epoch: i32) -> [u8; HEADER_BYTES] {
        let mut head = self.header.encode();
        set_base_offset(&mut head, base_offset);
        set_leader_epoch(&mut head, leader_epoch);
        head
    }

    /// The whole batch, copied together.
    pub fn to_bytes(&self, base_offset: i64, leader_epoch: i32) -> Bytes {
        let mut batch = Vec::with_capacity(self.size_in_bytes());
        batch.extend_from_slice(&self.encode_header(base_offset, leader_epoch));
        batch.extend_from_slice(&self.body);
        batch.into()
    }
}

/// Decides on the record bytes of one partition in a produce request.
///
/// A null field counts as empty bytes. Takes as long as [`estimated_micros`] says and can run on
/// any thread.
pub fn validate_for_append(raw: Bytes, rules: &ProduceRules) -> Result<ValidBatch, RejectedBatch> {
    match validate_within(raw, rules, usize::MAX) {
        Some(outcome) => outcome,
        None => unreachable!("without a budget nothing is put off"),
    }
}

/// Like [`validate_for_append`], but gives up without a decision (`None`) when the records turn
/// out to have more than `budget_bytes` decompressed: then the caller starts over where it may
/// take longer. A batch that is small on the wire can be as large as the bound allows.
pub fn validate_within(
    raw: Bytes,
    rules: &ProduceRules,
    budget_bytes: usize,
) -> Option<Result<ValidBatch, RejectedBatch>> {
    let (header, batch) = match check_whole(&raw, rules) {
        Ok(found) => found,
        Err(error) => return Some(Err(error.into())),
    };
    let limit = decompressed_bytes_max(rules.max_message_bytes);
    let checked = check_records(&header, &batch, rules, limit.min(budget_bytes));
    if let Err(RejectedBatch { error: Rejection::DecompressedTooLarge { limit: hit }, .. }) =
        &checked
        && *hit == budget_bytes
        && budget_bytes < limit
    {
        return None;
    }
    Some(checked.and_then(|valid| check_result(valid, rules)))
}

/// Expected cost of [`validate_for_append`] in microseconds of one core.
///
/// From the size on the wire, the codec and the level: meant for choosing between the core's
/// loop and another thread, with [`validate_within`] as the guard against a wrong guess.
pub fn estimated_micros(raw: &[u8], rules: &ProduceRules) -> u64 {
    let Ok(header) = BatchHeader::parse_prefix(raw) else { return 1 };
    let Ok(source) = header.compression() else { return 1 };
    // Picoseconds for a byte, and how much larger records usually are when decompressed.
    let (decompress_cost, growth) = match source {
        Codec::None => (0, 1),
        Codec::Snappy => (1_000, 3),
        Codec::Lz4 => (700, 3),
        Codec::Zstd => (1_500, 5),
        Codec::Gzip => (4_000, 5),
    };
    let compress_cost = match target_of(source, rules.compression) {
        None | Some(Compression::None) => 0,
        Some(Compression::Snappy) => 4_000,
        Some(Compression::Lz4 { level: Compression::LZ4_LEVEL_DEFAULT }) => 3_000,
        Some(Compression::Lz4 { level }) => 4_000 + 2_000 * level.clamp(1, 17).pow(2) as u64,
        Some(Compression::Gzip { level: -1 }) => 40_000,
        Some(Compression::Gzip { level }) => 8_000 * level.clamp(1, 9) as u64,
        Some(Compression::Zstd { level }) => match level {
            ..=3 => 4_000,
            4..=9 => 12_000,
            10..=12 => 50_000,
            13..=16 => 500_000,
            _ => 2_000_000,
        },
    };
    let wire_bytes = raw.len() as u64;
    let bytes = wire_bytes * growth;
    let records = u64::try_from(header.count).unwrap_or(0).min(bytes / RECORD_BYTES_MIN);
    let picos = wire_bytes * 200 + bytes * (decompress_cost + compress_cost) + records * 40_000;
    1 + picos / 1_000_000
}

/// Everything that is decided without looking at a record.
fn check_whole(raw: &Bytes, rules: &ProduceRules) -> Result<(BatchHeader, Bytes), Rejection> {
    let Some(size) = probe(raw)? else { return Err(Rejection::NoBatch) };
    let magic = raw[MAGIC_AT] as i8;
    if magic != MAGIC {
        return Err(Rejection::OldMagic(magic));
    }
    let codec_bits = raw.get(ATTRIBUTES_LOW_AT).map(|low| low & 0x07);
    if rules.api_version < ZSTD_API_VERSION && codec_bits == Some(Codec::Zstd.id()) {
        return Err(Rejection::ZstdTooEarly(rules.api_version));
    }
    if probe(&raw[size..])?.is_some() {
        return Err(Rejection::SeveralBatches);
    }
    let batch = raw.slice(..size);
    let Some(head) = batch.first_chunk::<HEADER_BYTES>() else {
        return Err(Rejection::BatchLength((size - LOG_OVERHEAD_BYTES) as i32));
    };
    let header = BatchHeader::read_fields(head);
    if header.base_offset != 0 {
        return Err(Rejection::BaseOffset(header.base_offset));
    }
    if size > rules.max_message_bytes {
        return Err(Rejection::TooLarge { size, limit: rules.max_message_bytes });
    }
    if !crc_ok(&batch) {
        return Err(Rejection::Checksum);
    }
    check_header(&header)?;
    Ok((header, batch))
}

/// Size of the whole batch at the start of `bytes`; `None` when they hold no whole batch.
fn probe(bytes: &[u8]) -> Result<Option<usize>, Rejection> {
    let Some((front, rest)) = bytes.split_first_chunk::<LOG_OVERHEAD_BYTES>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes([front[8], front[9], front[10], front[11]]);
    if length < OLD_BATCH_LENGTH_MIN || length > i32::MAX - LOG_OVERHEAD_BYTES as i32 {
        return Err(Rejection::BatchLength(length));
    }
    let Some(&magic) = rest.get(MAGIC_AT - LOG_OVERHEAD_BYTES) else { return Ok(None) };
    if !(0..=MAGIC).contains(&(magic as i8)) {
        return Err(Rejection::UnknownMagic(magic as i8));
    }
    let size = length as usize + LOG_OVERHEAD_BYTES;
    Ok((size <= bytes.len()).then_some(size))
}

fn check_header(header: &BatchHeader) -> Result<(), Rejection> {
    header.compression().map_err(Rejection::UnknownCodec)?;
    let (count, last_offset_delta) = (header.count, header.last_offset_delta);
    if count <= 0 || last_offset_delta != count - 1 {
        return Err(Rejection::Count { count, last_offset_delta });
    }
    if header.is_control() {
        return Err(Rejection::ControlBatch);
    }
    if header.has_producer() && header.base_sequence < 0 {
        return Err(Rejection::NoSequence { producer_id: header.producer_id });
    }
    Ok(())
}

/// The codec to change to, if it has to change.
fn target_of(source: Codec, policy: CompressionPolicy) -> Option<Compression> {
    match policy {
        CompressionPolicy::Producer => None,
        CompressionPolicy::Fixed(target) => (target.codec() != source).then_some(target),
    }
}

fn check_records(
    header: &BatchHeader,
    batch: &Bytes,
    rules: &ProduceRules,
    limit: usize,
) -> Result<ValidBatch, RejectedBatch> {
    let codec = header.compression().map_err(Rejection::UnknownCodec)?;
    let payload = &batch[HEADER_BYTES..];
    let target = target_of(codec, rules.compression);
    let mut survey = Survey::new(header, rules, target);
    let Some(target) = target else {
        match codec {
            Codec::None => survey.run(&mut Plain(payload), &mut Discard)?,
            codec => survey.run(&mut Inflated::new(codec, payload, limit), &mut Discard)?,
        }
        return Ok(survey.keep(batch));
    };
    let mut rewriter = Rewriter::new(header, target, rules.max_message_bytes);
    survey.run(&mut Inflated::new(codec, payload, limit), &mut rewriter)?;
    let (timestamp_type, max_timestamp) = (rules.timestamp_type, survey.final_max_timestamp());
    let rebuilt = rewriter.finish(header, target.codec().id(), timestamp_type, max_timestamp);
    let (header, batch) =
        rebuilt.ok_or(Rejection::RecompressedTooLarge { limit: rules.max_message_bytes })?;
    Ok(ValidBatch {
        header,
        body: Bytes::from(batch).slice(HEADER_BYTES..),
        recompressed: true,
        ..survey.keep(&Bytes::from_static(&[0; HEADER_BYTES]))
    })
}

/// What is learned in one pass over the records.
struct Survey<'a> {
    header: &'a BatchHeader,
    rules: &'a ProduceRules,
    /// Offsets are given anew: what the client wrote does not matter.
    renumbers: bool,
    compressed: bool,
    max_timestamp: i64,
    max_timestamp_at: i32,
    faults: Vec<RecordFault>,
    fault_count: usize,
    timestamp_fault: bool,
}

impl<'a> Survey<'a> {
    fn new(header: &'a BatchHeader, rules: &'a ProduceRules, to: Option<Compression>) -> Self {
        Self {
            header,
            rules,
            renumbers: to.is_some(),
            compressed: header.compression() != Ok(Codec::None),
            max_timestamp: NO_TIMESTAMP,
            max_timestamp_at: header.last_offset_delta,
            faults: Vec::new(),
            fault_count: 0,
            timestamp_fault: false,
        }
    }

    fn run<S: Source, K: Sink>(
        &mut self,
        source: &mut S,
        sink: &mut K,
    ) -> Result<(), RejectedBatch> {
        let mut offset_fault = None;
        let walked = scan(source, sink, self.header.count, |head, has_key| {
            if offset_fault.is_none() && self.is_misplaced(head) {
                let (index, offset_delta) = (head.index, head.offset_delta);
                offset_fault = Some(Rejection::OffsetDelta { index, offset_delta });
            }
            self.look_at(head, has_key);
            Ok(())
        });
        match walked {
            Ok(()) => {}
            Err(ScanError::Record(error)) => return Err(Rejection::Structure(error).into()),
            Err(ScanError::Decompress(error)) => return Err(Rejection::from(error).into()),
            Err(ScanError::SinkFull) => {
                let limit = self.rules.max_message_bytes;
                return Err(Rejection::RecompressedTooLarge { limit }.into());
            }
        }
        if self.fault_count > 0 {
            return Err(self.reject_records());
        }
        offset_fault.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Offsets inside a compressed batch must count up by one, since nobody corrects them there.
    /// In a plain batch Kafka accepts any; here only those that stay inside the batch.
    fn is_misplaced(&self, head: &RecordHead) -> bool {
        if self.renumbers {
            false
        } else if self.compressed {
            head.offset_delta != head.index
        } else {
            !(0..=self.header.last_offset_delta).contains(&head.offset_delta)
        }
    }

    #[inline]
    fn look_at(&mut self, head: &RecordHead, has_key: HasKey) {
        let timestamp = self.header.base_timestamp.wrapping_add(head.timestamp_delta);
        if self.rules.compacted && !has_key.0 {
            self.fault(head.index, RecordFaultKind::NoKey);
        } else if let Some(kind) = self.timestamp_fault_of(timestamp) {
            self.timestamp_fault = true;
            self.fault(head.index, kind);
        } else if timestamp > self.max_timestamp {
            self.max_timestamp = timestamp;
            self.max_timestamp_at = head.index;
        }
    }

    /// Differences wrap as they do in Kafka, so that the ends of the 64-bit range count as far
    /// in the future and not as near.
    fn timestamp_fault_of(&self, timestamp: i64) -> Option<RecordFaultKind> {
        let rules = self.rules;
        if rules.timestamp_type == TimestampType::CreateTime && timestamp != NO_TIMESTAMP {
            let age = rules.now_ms.wrapping_sub(timestamp);
            let outside = age > rules.before_max_ms || age.wrapping_neg() > rules.after_max_ms;
            outside.then_some(RecordFaultKind::Timestamp)
        } else {
            let forbidden = self.header.timestamp_type() == TimestampType::LogAppendTime;
            forbidden.then_some(RecordFaultKind::LogAppendTime)
        }
    }

    #[cold]
    fn fault(&mut self, batch_index: i32, kind: RecordFaultKind) {
        self.fault_count += 1;
        if self.faults.len() < RejectedBatch::RECORD_FAULTS_MAX {
            self.faults.push(RecordFault { batch_index, kind });
        }
    }

    fn reject_records(&mut self) -> RejectedBatch {
        let error = if self.timestamp_fault {
            Rejection::Timestamps(self.fault_count)
        } else {
            Rejection::Keys(self.fault_count)
        };
        RejectedBatch { error, record_faults: std::mem::take(&mut self.faults) }
    }

    fn final_max_timestamp(&self) -> i64 {
        match self.rules.timestamp_type {
            TimestampType::CreateTime => self.max_timestamp,
            TimestampType::LogAppendTime => self.rules.now_ms,
        }
    }

    /// The received batch with its header corrected.
    fn keep(&self, batch: &Bytes) -> ValidBatch {
        let mut header = *self.header;
        header.max_timestamp = self.final_max_timestamp();
        let stamped = self.rules.timestamp_type == TimestampType::LogAppendTime;
        if stamped {
            header.attributes |= LOG_APPEND_TIME_BIT;
        } else {
            header.attributes &= !LOG_APPEND_TIME_BIT;
        }
        if header != *self.header {
            header.crc = crc_after_change(self.header, &header, &batch[HEADER_BYTES..]);
        }
        ValidBatch {
            header,
            body: batch.slice(HEADER_BYTES..),
            max_timestamp_offset_delta: if stamped { 0 } else { self.max_timestamp_at },
            recompressed: false,
            log_append_time_ms: stamped.then_some(self.rules.now_ms),
        }
    }
}

/// What can only be judged when the batch has its final size.
fn check_result(valid: ValidBatch, rules: &ProduceRules) -> Result<ValidBatch, RejectedBatch> {
    let size = valid.size_in_bytes();
    if valid.recompressed && size > rules.max_message_bytes {
        return Err(Rejection::RecompressedTooLarge { limit: rules.max_message_bytes }.into());
    }
    if size > rules.segment_bytes {
        return Err(Rejection::LargerThanSegment { size, limit: rules.segment_bytes }.into());
    }
    let header = valid.header();
    if header.has_producer() && header.producer_epoch < 0 {
        return Err(Rejection::NoEpoch { producer_id: header.producer_id }.into());
    }
    Ok(valid)
}

/// Smallest batch length of the formats before 2, below which no size is believed.
const OLD_BATCH_LENGTH_MIN: i32 = 14;
/// The byte of the attributes that names the codec.
const ATTRIBUTES_LOW_AT: usize = super::header::ATTRIBUTES_AT + 1;
/// Length, attributes, two deltas, two nulls and no headers.
const RECORD_BYTES_MIN: u64 = 7;
/// First produce version that may carry zstd.
const ZSTD_API_VERSION: i16 = 7;
