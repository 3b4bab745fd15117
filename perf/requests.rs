//! What a connection sends, request by request.

use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use protocol::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use protocol::{Records, Str, Uuid};
use runtime::time::Instant;

use crate::batches::{Batch, Generator};
use crate::node::encode;

/// What all produce requests of a run have in common.
#[derive(Debug, Clone)]
pub struct Heading {
    pub topic: Str,
    pub topic_id: Uuid,
    pub version: i16,
    pub acks: i16,
}

/// What a request carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    pub batches: u64,
    pub records: u64,
    /// Of the batches.
    pub bytes: u64,
}

/// Where the requests of a connection come from.
pub enum Source {
    /// The same few requests over and over; only the correlation id changes.
    Prepared { requests: Vec<Prepared>, next: usize },
    /// Batches numbered as an idempotent producer does.
    Numbered(Box<Numbered>),
    /// Batches made on the spot, which carry the moment they were due.
    Stamped(Box<Stamped>),
}

impl Source {
    /// Requests over `partitions`, `per_request` at a time, with `batches` in turn.
    pub fn prepared(
        heading: &Heading,
        partitions: &[i32],
        per_request: usize,
        batches: &[Batch],
    ) -> Source {
        let mut turn = batches.iter().cycle();
        let requests = partitions.chunks(per_request).map(|group| {
            let pairs = group.iter().zip(&mut turn);
            let pairs =
                pairs.map(|(&index, batch)| (index, batch, Records::from(batch.whole.clone())));
            Prepared::new(heading, pairs)
        });
        Source::Prepared { requests: requests.collect(), next: 0 }
    }
}

/// A request that is ready but for its correlation id.
pub struct Prepared {
    head: Bytes,
    rest: Vec<Bytes>,
    size: Size,
}

impl Prepared {
    fn new<'a>(
        heading: &Heading,
        batches: impl Iterator<Item = (i32, &'a Batch, Records)>,
    ) -> Prepared {
        let (mut parts, size) = request(heading, 0, batches);
        let head = parts.remove(0);
        Prepared { head, rest: parts, size }
    }

    pub(crate) fn put(&self, correlation_id: i32, parts: &mut Vec<Bytes>) -> Size {
        let mut head = BytesMut::with_capacity(self.head.len());
        head.put_slice(&self.head);
        head[CORRELATION_ID_AT..CORRELATION_ID_AT + 4]
            .copy_from_slice(&correlation_id.to_be_bytes());
        parts.push(head.freeze());
        parts.extend(self.rest.iter().cloned());
        self.size
    }
}

/// An idempotent producer's batches.
pub struct Numbered {
    heading: Heading,
    producer_id: i64,
    epoch: i16,
    batches: Rc<[Batch]>,
    groups: Vec<Vec<Sequence>>,
    next_group: usize,
    next_batch: usize,
}

struct Sequence {
    partition: i32,
    next: i32,
}

impl Numbered {
    pub fn new(
        heading: Heading,
        (producer_id, epoch): (i64, i16),
        partitions: &[i32],
        per_request: usize,
        batches: Rc<[Batch]>,
    ) -> Numbered {
        let fresh = |&partition: &i32| Sequence { partition, next: 0 };
        let groups = partitions.chunks(per_request).map(|g| g.iter().map(fresh).collect());
        let groups = groups.collect();
        Numbered { heading, producer_id, epoch, batches, groups, next_group: 0, next_batch: 0 }
    }

    pub(crate) fn put(&mut self, correlation_id: i32, parts: &mut Vec<Bytes>) -> Size {
        let group = &mut self.groups[self.next_group];
        let mut chosen = Vec::with_capacity(group.len());
        for sequence in group {
            let batch = &self.batches[self.next_batch];
            self.next_batch = (self.next_batch + 1) % self.batches.len();
            let (head, body) = batch.numbered(self.producer_id, self.epoch, sequence.next);
            let next = i64::from(sequence.next) + batch.records as i64;
            sequence.next = (next % (1 << 31)) as i32;
            chosen.push((sequence.partition, batch, [head, body].into_iter().collect()));
        }
        self.next_group = (self.next_group + 1) % self.groups.len();
        let (request, size) = request(&self.heading, correlation_id, chosen.into_iter());
        parts.extend(request);
        size
    }
}

/// Batches whose records say when they were due.
pub struct Stamped {
    heading: Heading,
    run_id: u64,
    generator: Generator,
    groups: Vec<Vec<i32>>,
    next_group: usize,
}

impl Stamped {
    pub fn new(
        heading: Heading,
        run_id: u64,
        partitions: &[i32],
        per_request: usize,
        generator: Generator,
    ) -> Stamped {
        let groups = partitions.chunks(per_request).map(<[i32]>::to_vec).collect();
        Stamped { heading, run_id, generator, groups, next_group: 0 }
    }

    pub(crate) fn put(
        &mut self,
        correlation_id: i32,
        due: Instant,
        parts: &mut Vec<Bytes>,
    ) -> Size {
        let stamp = Stamp { run_id: self.run_id, due }.encode();
        let group = &self.groups[self.next_group];
        self.next_group = (self.next_group + 1) % self.groups.len();
        let timestamp = runtime::time::wall_ms();
        let batch = self.generator.batch(timestamp, Some(&stamp));
        let records = Records::from(batch.whole.clone());
        let chosen = group.iter().map(|&partition| (partition, &batch, records.clone()));
        let (request, size) = request(&self.heading, correlation_id, chosen);
        parts.extend(request);
        size
    }
}

/// What stands in front of a value, so that its reader can tell how long it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Tells runs apart: a topic may hold records of earlier ones.
    pub run_id: u64,
    pub due: Instant,
}

impl Stamp {
    pub fn encode(self) -> [u8; STAMP_BYTES] {
        let mut stamp = [0; STAMP_BYTES];
        stamp[..8].copy_from_slice(&self.run_id.to_be_bytes());
        stamp[8..].copy_from_slice(&self.due.as_nanos().to_be_bytes());
        stamp
    }

    /// `None` for a value that is too short to carry one.
    pub fn decode(value: &[u8]) -> Option<Stamp> {
        let (run_id, rest) = value.split_first_chunk::<8>()?;
        let nanos = rest.first_chunk::<8>()?;
        let due = Instant::from_nanos(u64::from_be_bytes(*nanos));
        Some(Stamp { run_id: u64::from_be_bytes(*run_id), due })
    }
}

fn request<'a>(
    heading: &Heading,
    correlation_id: i32,
    batches: impl Iterator<Item = (i32, &'a Batch, Records)>,
) -> (Vec<Bytes>, Size) {
    let mut size = Size::default();
    let partition_data = batches.map(|(index, batch, records)| {
        size.batches += 1;
        size.records += batch.records;
        size.bytes += batch.whole.len() as u64;
        PartitionProduceData { index, records: Some(records) }
    });
    let topic = TopicProduceData {
        name: heading.topic.clone(),
        topic_id: heading.topic_id,
        partition_data: partition_data.collect(),
    };
    let request = ProduceRequest {
        transactional_id: None,
        acks: heading.acks,
        timeout_ms: PRODUCE_TIMEOUT_MS,
        topic_data: vec![topic],
    };
    (encode(&request, heading.version, correlation_id).finish(), size)
}

/// Behind the size, the API key and its version.
const CORRELATION_ID_AT: usize = 8;
const PRODUCE_TIMEOUT_MS: i32 = 30_000;
/// Bytes in front of a stamped value.
pub const STAMP_BYTES: usize = 16;
