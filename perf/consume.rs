//! Connections that fetch, one request at a time each.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use protocol::batch::header::{HEADER_BYTES, crc_ok};
use protocol::batch::{BatchError, BatchHeader, Batches, Codec, RecordIter, decompress};
use protocol::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData,
};
use protocol::{ApiKey, ErrorCode};
use runtime::time::{Instant, now, within};

use crate::assignment::Share;
use crate::cluster::Cluster;
use crate::node::{Node, decode, encode};
use crate::offsets;
use crate::options::StartAt;
use crate::requests::{Size, Stamp};
use crate::stage::LoadCore;

/// How every reader of a run reads.
#[derive(Debug, Clone)]
pub struct Reading {
    pub fetch_bytes: usize,
    pub partition_bytes: usize,
    pub max_wait: Duration,
    pub sessions: bool,
    pub check_crc: bool,
    pub repeat: bool,
    pub from: StartAt,
    /// Records of this run carry its id, and their latency is taken.
    pub run_id: Option<u64>,
}

/// A connection that is ready to fetch.
pub struct Reader {
    node: Node,
    version: i16,
    cluster: Rc<Cluster>,
    reading: Rc<Reading>,
    session: Session,
    positions: BTreeMap<i32, Position>,
}

struct Position {
    start: i64,
    next: i64,
    /// The session does not know `next` yet.
    changed: bool,
}

/// A fetch session (KIP-227); `epoch` -1 means that none is kept.
struct Session {
    id: i32,
    epoch: i32,
}

impl Session {
    fn first(sessions: bool) -> Session {
        Session { id: 0, epoch: if sessions { 0 } else { -1 } }
    }
}

impl Reader {
    /// Connects and looks up where to begin.
    pub async fn open(
        cluster: Rc<Cluster>,
        reading: Rc<Reading>,
        share: &Share,
    ) -> anyhow::Result<Reader> {
        let mut node = Node::connect(cluster.address(share.node)?).await?;
        let version = node.versions.of(ApiKey::Fetch)?;
        let begin = match reading.from {
            StartAt::Earliest => offsets::EARLIEST,
            StartAt::Latest => offsets::LATEST,
        };
        let mut positions = BTreeMap::new();
        for (partition, offset) in
            offsets::list(&mut node, &cluster, &share.partitions, begin).await?
        {
            positions.insert(partition, Position { start: offset, next: offset, changed: true });
        }
        let session = Session::first(reading.sessions);
        Ok(Reader { node, version, cluster, reading, session, positions })
    }

    /// Fetches until the end, `records` were read, or `enough` says so.
    pub async fn run(mut self, core: LoadCore, records: u64, enough: impl Fn() -> bool) {
        let mut left = records;
        let mut correlation_id = FIRST_CORRELATION_ID;
        while left > 0 && !enough() {
            correlation_id += 1;
            let asked = now();
            let read = match self.fetch(&core, correlation_id, asked).await {
                Ok(Some(read)) => read,
                Ok(None) => return,
                Err(why) => return core.tally.on_error(&format!("{why:#}")),
            };
            left = left.saturating_sub(read);
        }
    }

    /// One request and its answer: the records it brought, or `None` at the end of the run.
    async fn fetch(
        &mut self,
        core: &LoadCore,
        correlation_id: i32,
        asked: Instant,
    ) -> anyhow::Result<Option<u64>> {
        let request = self.request();
        let parts = encode(&request, self.version, correlation_id).finish();
        self.node.writer.send(&parts).await.context("sending")?;
        let deadline = core.tally.window().end + self.reading.max_wait + GRACE;
        let Ok(frame) = within(deadline, self.node.frames.next()).await else { return Ok(None) };
        let (answered, answer) = decode::<FetchResponse>(frame?, self.version)?;
        let at = now();
        if answered != correlation_id {
            bail!("an answer to another request");
        }
        if answer.error_code != ErrorCode::NONE {
            core.tally.on_error(answer.error_code.name());
            self.restart_session();
            return Ok(Some(0));
        }
        self.on_session(&answer);
        let mut size = Size::default();
        for partition in answer.responses.into_iter().flat_map(|topic| topic.partitions) {
            self.on_partition(core, partition, at, &mut size)?;
        }
        if size.bytes > 0 {
            let asked = self.reading.run_id.is_none().then_some(asked);
            core.tally.on_read(size, asked, at);
        }
        let ended = core.is_over() && self.reading.run_id.is_none();
        Ok((!ended).then_some(size.records))
    }

    fn request(&mut self) -> FetchRequest {
        let mut partitions = Vec::new();
        for (&partition, position) in &mut self.positions {
            if self.session.epoch > 0 && !position.changed {
                continue;
            }
            position.changed = false;
            partitions.push(FetchPartition {
                partition,
                fetch_offset: position.next,
                partition_max_bytes: wire_size(self.reading.partition_bytes),
                ..FetchPartition::default()
            });
        }
        let topic = FetchTopic {
            topic: self.cluster.topic.clone(),
            topic_id: self.cluster.topic_id,
            partitions,
        };
        FetchRequest {
            max_wait_ms: self.reading.max_wait.as_millis().min(i32::MAX as u128) as i32,
            min_bytes: 1,
            max_bytes: wire_size(self.reading.fetch_bytes),
            session_id: self.session.id,
            session_epoch: self.session.epoch,
            topics: if topic.partitions.is_empty() { Vec::new() } else { vec![topic] },
            ..FetchRequest::default()
        }
    }

    fn on_session(&mut self, answer: &FetchResponse) {
        if self.session.epoch < 0 {
            return;
        }
        if answer.session_id == 0 {
            // The broker keeps none: name everything again next time.
            return self.restart_session();
        }
        self.session.id = answer.session_id;
        self.session.epoch = self.session.epoch.checked_add(1).unwrap_or(1);
    }

    fn restart_session(&mut self) {
        self.session = Session::first(self.reading.sessions);
        self.positions.values_mut().for_each(|position| position.changed = true);
    }

    fn on_partition(
        &mut self,
        core: &LoadCore,
        answer: PartitionData,
        at: Instant,
        size: &mut Size,
    ) -> anyhow::Result<()> {
        let Some(position) = self.positions.get_mut(&answer.partition_index) else {
            bail!("an answer about a partition that was not asked for");
        };
        if answer.error_code != ErrorCode::NONE {
            core.tally.on_error(answer.error_code.name());
            if answer.error_code == ErrorCode::OFFSET_OUT_OF_RANGE {
                position.next = answer.log_start_offset.max(0);
            }
            position.changed = true;
            return Ok(());
        }
        let records = answer.records.unwrap_or_default().into_bytes();
        if !records.is_empty() {
            let reading = &self.reading;
            position.next = take(core, reading, records, position.next, at, size)?;
            position.changed = true;
        }
        if self.reading.repeat && position.next >= answer.high_watermark {
            position.changed |= position.next != position.start;
            position.next = position.start;
        }
        Ok(())
    }
}

/// Counts the batches of a partition from `offset` on; where to read on.
fn take(
    core: &LoadCore,
    reading: &Reading,
    records: Bytes,
    offset: i64,
    at: Instant,
    size: &mut Size,
) -> anyhow::Result<i64> {
    let mut next = offset;
    for batch in Batches::of(records) {
        let (header, bytes) = match batch {
            Ok(batch) => batch,
            // An answer may end inside a batch.
            Err(BatchError::Short { .. } | BatchError::Incomplete { .. }) => break,
            Err(broken) => return Err(broken).context("in a fetch answer"),
        };
        if reading.check_crc && !crc_ok(&bytes) {
            core.tally.on_error("a batch with a wrong checksum");
        }
        next = next.max(header.next_offset());
        size.batches += 1;
        size.records += u64::from(header.count.unsigned_abs());
        size.bytes += bytes.len() as u64;
        if let Some(run_id) = reading.run_id {
            take_stamps(core, run_id, &header, &bytes, at)?;
        }
    }
    Ok(next)
}

fn take_stamps(
    core: &LoadCore,
    run_id: u64,
    header: &BatchHeader,
    batch: &Bytes,
    at: Instant,
) -> anyhow::Result<()> {
    let codec = header.compression().map_err(|id| anyhow::anyhow!("unknown codec {id}"))?;
    let payload = &batch[HEADER_BYTES..];
    let inflated;
    let body = if codec == Codec::None {
        payload
    } else {
        inflated = decompress(codec, payload, INFLATED_BYTES_MAX)?;
        &inflated
    };
    for record in RecordIter::new(body, header.count) {
        let stamp = Stamp::decode(record?.value.unwrap_or_default());
        if let Some(stamp) = stamp.filter(|stamp| stamp.run_id == run_id) {
            core.tally.on_delivered(stamp.due, at);
        }
    }
    Ok(())
}

fn wire_size(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

const FIRST_CORRELATION_ID: i32 = 1 << 16;
/// How much longer than agreed an answer may take at the end of a run.
const GRACE: Duration = Duration::from_secs(30);
const INFLATED_BYTES_MAX: usize = 64 << 20;
